// SPDX-License-Identifier: LGPL-2.1-or-later
// WeirSrtp and fanoutsink with sockets on the loopback interface, against libsrtp.
#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gio/gio.h>
#include <gst/check/gstharness.h>
#include <srtp2/srtp.h>

#include "net/estimate.h"

#define PATIENCE_MS 30000
#define KEY_BYTES 30
#define GCM_KEY_BYTES 28
#define LEN 200
#define SSRC 0x01020304
#define LOT 50

static const gchar *const profiles[] = { "AES_CM_128_HMAC_SHA1_80", "AEAD_AES_128_GCM" };

typedef struct {
  gboolean gcm;
  guint8 keys[2][KEY_BYTES]; // of the sender and of the reader
  GObject *object;
  gchar *token;
  int fd;
  gint port;
  srtp_t in, out; // of the reader
} Reader;

static srtp_t
open_session (const guint8 *key, gboolean gcm, srtp_ssrc_type_t type)
{
  srtp_policy_t policy = { .ssrc = { .type = type }, .key = (guint8 *) key, .window_size = 128 };
  srtp_t session;

  if (gcm) {
    srtp_crypto_policy_set_aes_gcm_128_16_auth (&policy.rtp);
    srtp_crypto_policy_set_aes_gcm_128_16_auth (&policy.rtcp);
  } else {
    srtp_crypto_policy_set_rtp_default (&policy.rtp);
    srtp_crypto_policy_set_rtcp_default (&policy.rtcp);
  }
  g_assert_cmpint (srtp_create (&session, &policy), ==, srtp_err_status_ok);
  return session;
}

static GObject *
make_object (const gchar *profile, const guint8 *send, gsize send_len, const guint8 *receive,
    gsize receive_len)
{
  GBytes *send_key = g_bytes_new (send, send_len),
         *receive_key = g_bytes_new (receive, receive_len);
  GObject *object = g_object_new (g_type_from_name ("WeirSrtp"), "destination", "127.0.0.1",
      "profile", profile, "send-key", send_key, "receive-key", receive_key, NULL);

  g_bytes_unref (send_key);
  g_bytes_unref (receive_key);
  return object;
}

static void
reader_open_with (Reader *self, gboolean gcm, guint8 seed)
{
  gsize key_bytes = gcm ? GCM_KEY_BYTES : KEY_BYTES;
  struct sockaddr_in address = { .sin_family = AF_INET,
    .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
  socklen_t len = sizeof address;

  for (guint i = 0; i < KEY_BYTES; i++) {
    self->keys[0][i] = (guint8) (seed + i);
    self->keys[1][i] = (guint8) (seed * 3 + i);
  }
  self->gcm = gcm;
  self->object = make_object (profiles[gcm], self->keys[0], key_bytes, self->keys[1], key_bytes);
  g_object_get (self->object, "token", &self->token, NULL);
  g_assert_nonnull (self->token);
  self->fd = socket (AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  g_assert_cmpint (bind (self->fd, (struct sockaddr *) &address, len), ==, 0);
  g_assert_cmpint (getsockname (self->fd, (struct sockaddr *) &address, &len), ==, 0);
  self->port = ntohs (address.sin_port);
  self->in = open_session (self->keys[0], gcm, ssrc_any_inbound);
  self->out = open_session (self->keys[1], gcm, ssrc_any_outbound);
}

static void
reader_open (Reader *self, guint8 seed)
{
  reader_open_with (self, FALSE, seed);
}

static void
reader_close (Reader *self)
{
  g_clear_object (&self->object);
  g_free (self->token);
  close (self->fd);
  srtp_dealloc (self->in);
  srtp_dealloc (self->out);
}

static int
receive (const Reader *self, guint8 *data, gsize size)
{
  struct pollfd pfd = { .fd = self->fd, .events = POLLIN };

  return poll (&pfd, 1, PATIENCE_MS) == 1 ? (int) recv (self->fd, data, size, 0) : -1;
}

// ---- the sink ----

static GstHarness *
make_sink (void)
{
  GstHarness *h = gst_harness_new ("fanoutsink");

  g_object_set (h->element, "sync", FALSE, "async", FALSE, NULL);
  gst_harness_set_src_caps_str (h, "application/x-rtp");
  gst_harness_play (h);
  return h;
}

static void
add (GstHarness *h, const gchar *host, gint port)
{
  g_signal_emit_by_name (h->element, "add", host, port);
}

static guint8
byte_at (guint n, guint i)
{
  return (guint8) (n * 31 + i * 7);
}

static void
push (GstHarness *h, guint n)
{
  guint8 *data = g_malloc (LEN);

  for (guint i = 12; i < LEN; i++)
    data[i] = byte_at (n, i);
  data[0] = 0x80;
  data[1] = 0xe0;
  GST_WRITE_UINT16_BE (data + 2, n);
  GST_WRITE_UINT32_BE (data + 4, n);
  GST_WRITE_UINT32_BE (data + 8, SSRC);
  g_assert_cmpint (gst_harness_push (h, gst_buffer_new_wrapped (data, LEN)), ==, GST_FLOW_OK);
}

// Receives packet `n`, and checks that it is encrypted. Returns its sequence number.
static guint16
expect (const Reader *reader, guint n)
{
  guint8 data[2048];
  int len = receive (reader, data, sizeof data);

  g_assert_cmpint (len, ==, LEN + 10);
  g_assert_false (data[100] == byte_at (n, 100) && data[101] == byte_at (n, 101)
                  && data[102] == byte_at (n, 102) && data[103] == byte_at (n, 103));
  g_assert_cmpint (srtp_unprotect (reader->in, data, &len), ==, srtp_err_status_ok);
  g_assert_cmpint (len, ==, LEN);
  g_assert_cmpuint (GST_READ_UINT32_BE (data + 4), ==, n);
  for (guint i = 12; i < LEN; i++)
    g_assert_cmpuint (data[i], ==, byte_at (n, i));
  return GST_READ_UINT16_BE (data + 2);
}

// ---- tests ----

// The reader's rollover counter begins with 0 near the end of the stream's numbers, too, and
// follows the wraps.
static void
test_long_stream (void)
{
  GstHarness *h = make_sink ();
  Reader reader;
  guint first = 65000, n = first;

  reader_open (&reader, 1);
  add (h, reader.token, reader.port);
  for (guint lot = 0; lot < 100000 / LOT; lot++) {
    for (guint i = 0; i < LOT; i++)
      push (h, n + i);
    for (guint i = 0; i < LOT; i++, n++)
      g_assert_cmpuint (expect (&reader, n), ==, (guint16) (n - 32768));
  }
  gst_harness_teardown (h);
  reader_close (&reader);
}

static void
test_keys_differ (void)
{
  GstHarness *h = make_sink ();
  Reader a, b;
  guint8 data[2048];
  int len;

  reader_open (&a, 1);
  reader_open (&b, 2);
  g_assert_cmpstr (a.token, !=, b.token);
  add (h, a.token, a.port);
  add (h, b.token, b.port);
  push (h, 1);
  expect (&a, 1);
  expect (&b, 1);
  push (h, 2);
  expect (&a, 2);
  len = receive (&b, data, sizeof data);
  g_assert_cmpint (srtp_unprotect (a.in, data, &len), !=, srtp_err_status_ok);
  gst_harness_teardown (h);
  reader_close (&a);
  reader_close (&b);
}

static void
test_returning_reader (void)
{
  GstHarness *h = make_sink ();
  GstStructure *plan;
  Reader reader;
  guint seq;

  reader_open (&reader, 1);
  for (guint n = 40000; n < 40010; n++) {
    if (n == 40000) {
      push (h, 39999);
      g_signal_emit_by_name (h->element, "plan", reader.token, reader.port, &plan);
      g_assert_true (gst_structure_get_uint (plan, "seq", &seq));
      g_assert_cmpuint (seq, ==, n - 32768);
      gst_structure_free (plan);
      add (h, reader.token, reader.port);
    }
    push (h, n);
    g_assert_cmpuint (expect (&reader, n), ==, n - 32768);
  }
  g_signal_emit_by_name (h->element, "remove", reader.token, reader.port);
  add (h, reader.token, reader.port);
  push (h, 40010);
  g_assert_cmpuint (expect (&reader, 40010), ==, 40010 - 32768);
  g_signal_emit_by_name (reader.object, "next-seq", 5, &seq);
  g_assert_cmpuint (seq, ==, 40011 - 32768);
  gst_harness_teardown (h);
  reader_close (&reader);
}

// A reader whose keys are gone must not get the stream in the clear.
static void
test_unknown_token (void)
{
  GstHarness *h = make_sink ();
  GstStructure *stats;
  Reader reader;

  reader_open (&reader, 1);
  g_clear_object (&reader.object);
  add (h, reader.token, reader.port);
  g_signal_emit_by_name (h->element, "get-stats", reader.token, reader.port, &stats);
  g_assert_cmpint (gst_structure_n_fields (stats), ==, 0);
  gst_structure_free (stats);
  gst_harness_teardown (h);
  reader_close (&reader);
}

static void
test_wrong_keys (void)
{
  static const gsize good[] = { KEY_BYTES, GCM_KEY_BYTES, 0 };
  static const gchar *const names[] = { "AES_CM_128_HMAC_SHA1_80", "AEAD_AES_128_GCM",
    "AES_CM_256_HMAC_SHA1_80" };
  guint8 key[KEY_BYTES + 1] = { 0 };

  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    for (gsize len = 1; len <= sizeof key; len++) {
      GObject *object = make_object (names[i], key, len, key, len);
      gchar *token = NULL;

      g_object_get (object, "token", &token, NULL);
      g_assert_true ((token != NULL) == (len == good[i]));
      g_free (token);
      g_object_unref (object);
    }
  }
}

static void
test_sent_reports (void)
{
  static const guint8 report[] = { 0x81, 200, 0, 12, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
    0, 0, 0, 2, 0, 0, 0, 3, 9, 9, 9, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0 };
  GstHarness *h = make_sink ();
  Reader reader;
  guint8 data[2048];
  int len;

  reader_open (&reader, 1);
  add (h, reader.token, reader.port);
  gst_harness_push (h, gst_buffer_new_memdup (report, sizeof report));
  len = receive (&reader, data, sizeof data);
  g_assert_cmpint (len, ==, sizeof report + 14);
  g_assert_cmpint (memcmp (data + 8, report + 8, 16), !=, 0);
  g_assert_cmpint (srtp_unprotect_rtcp (reader.in, data, &len), ==, srtp_err_status_ok);
  g_assert_cmpmem (data, len, report, sizeof report);

  // What is neither RTP nor RTCP is not sent.
  gst_harness_push (h, gst_buffer_new_memdup ("hello", 5));
  push (h, 7);
  expect (&reader, 7);
  gst_harness_teardown (h);
  reader_close (&reader);
}

static gint
unprotect (const Reader *reader, guint8 *data, guint size)
{
  gint len;

  g_signal_emit_by_name (reader->object, "unprotect", data, size, &len);
  return len;
}

static void
test_received_reports (void)
{
  guint8 report[64], sealed[64], copy[64];
  Reader reader;
  int len;

  reader_open (&reader, 1);
  for (guint8 ssrc = 1; ssrc < 100; ssrc++) {
    const guint8 plain[8] = { 0x80, 201, 0, 1, 0, 0, 0, ssrc };

    memcpy (sealed, plain, sizeof plain);
    len = sizeof plain;
    g_assert_cmpint (srtp_protect_rtcp (reader.out, sealed, &len), ==, srtp_err_status_ok);
    for (int i = 0; i < len; i++) {
      memcpy (copy, sealed, sizeof copy);
      copy[i] ^= 1;
      g_assert_cmpint (unprotect (&reader, copy, (guint) len), ==, -1);
      g_assert_cmpint (unprotect (&reader, copy, (guint) i), ==, -1);
    }
    memcpy (report, sealed, sizeof report);
    g_assert_cmpint (unprotect (&reader, report, (guint) len), ==, sizeof plain);
    g_assert_cmpmem (report, sizeof plain, plain, sizeof plain);
    memcpy (report, sealed, sizeof report); // a replay
    g_assert_cmpint (unprotect (&reader, report, (guint) len), ==, -1);
  }
  reader_close (&reader);
}

// ---- streams with headers of their own ----

static gchar *
add_stream (const Reader *reader, const gchar *fields)
{
  GstStructure *stream = gst_structure_from_string (fields, NULL);
  gchar *token = NULL;

  g_assert_nonnull (stream);
  g_signal_emit_by_name (reader->object, "add-stream", stream, &token);
  gst_structure_free (stream);
  return token;
}

static gchar *
add_stream_with (const Reader *reader, guint ssrc, guint pt, const guint8 *extensions, gsize len)
{
  GBytes *bytes = g_bytes_new (extensions, len);
  GstStructure *stream = gst_structure_new ("stream", "ssrc", G_TYPE_UINT, ssrc, "payload-type",
      G_TYPE_UINT, pt, "extensions", G_TYPE_BYTES, bytes, NULL);
  gchar *token = NULL;

  g_signal_emit_by_name (reader->object, "add-stream", stream, &token);
  gst_structure_free (stream);
  g_bytes_unref (bytes);
  return token;
}

// Checks that a packet from the socket is packet `n` with the header of a stream.
static void
check_own (const Reader *reader, guint8 *data, int len, guint n, guint ssrc, guint8 pt)
{
  static const guint8 extension[] = { 0xbe, 0xde, 0, 1, 0x52, 0, 0, 0 };

  g_assert_cmpint (len, ==, LEN + (int) sizeof extension + (reader->gcm ? 16 : 10));
  g_assert_cmpint (srtp_unprotect (reader->in, data, &len), ==, srtp_err_status_ok);
  g_assert_cmpint (len, ==, LEN + sizeof extension);
  g_assert_cmphex (data[0], ==, 0x90);
  g_assert_cmphex (data[1], ==, 0x80 | pt);
  g_assert_cmpuint (GST_READ_UINT32_BE (data + 4), ==, n);
  g_assert_cmphex (GST_READ_UINT32_BE (data + 8), ==, ssrc);
  g_assert_cmpmem (data + 12, sizeof extension, extension, sizeof extension);
  for (guint i = 12; i < LEN; i++)
    g_assert_cmpuint (data[i + sizeof extension], ==, byte_at (n, i));
}

// One key, two tracks, each with its header.
static void
test_streams (void)
{
  static const guint8 delay[] = { 0x52, 0, 0, 0 };

  for (gboolean gcm = FALSE; gcm <= TRUE; gcm++) {
    GstHarness *h[2] = { make_sink (), make_sink () };
    gchar *tokens[2];
    Reader reader;

    reader_open_with (&reader, gcm, 1);
    for (guint i = 0; i < 2; i++) {
      tokens[i] = add_stream_with (&reader, 0x10 + i, 100 + i, delay, sizeof delay);
      g_assert_nonnull (tokens[i]);
      add (h[i], tokens[i], reader.port);
    }
    for (guint n = 65500; n < 65600; n++) {
      for (guint i = 0; i < 2; i++) {
        guint8 data[2048];
        int len;

        push (h[i], n);
        len = receive (&reader, data, sizeof data);
        g_assert_cmpuint (GST_READ_UINT16_BE (data + 2), ==, (guint16) (n - 32768));
        check_own (&reader, data, len, n, 0x10 + i, (guint8) (100 + i));
      }
    }
    for (guint i = 0; i < 2; i++) {
      gst_harness_teardown (h[i]);
      g_free (tokens[i]);
    }
    reader_close (&reader);
  }
}

static void
test_wrong_streams (void)
{
  static const gchar *const wrong[] = {
    "s, ssrc=(uint)5",
    "s, payload-type=(uint)96",
    "s, ssrc=(uint)0, payload-type=(uint)96",
    "s, ssrc=(uint)5, payload-type=(uint)128",
    "s, ssrc=(uint)5, payload-type=(uint)96, rtx-ssrc=(uint)5, rtx-payload-type=(uint)97",
    "s, ssrc=(uint)5, payload-type=(uint)96, rtx-ssrc=(uint)6, rtx-payload-type=(uint)200",
    "s, ssrc=(uint)5, payload-type=(uint)96, extensions=(string)none",
    "s, ssrc=(uint)5, payload-type=(uint)96, transport-id=(uint)15",
    "s, ssrc=(uint)1, payload-type=(uint)96", // in use
    "s, ssrc=(uint)2, payload-type=(uint)96", // in use, by retransmissions
    "s, ssrc=(uint)5, payload-type=(uint)96, rtx-ssrc=(uint)1, rtx-payload-type=(uint)97",
  };
  static const guint8 elements[][25] = {
    { 0x53, 0, 0, 0 },    // cut
    { 0x52, 0, 0, 0, 1 }, // an element of id 0 with a length
    { 0xf0, 0 },          // a reserved id
    { 0 },                // too long
  };
  static const gsize lengths[] = { 4, 5, 2, 25 };
  Reader reader;
  gchar *token;

  reader_open (&reader, 1);
  token = add_stream (&reader, "s, ssrc=(uint)1, payload-type=(uint)96, rtx-ssrc=(uint)2, "
                               "rtx-payload-type=(uint)97");
  g_assert_nonnull (token);
  g_free (token);
  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++)
    g_assert_null (add_stream (&reader, wrong[i]));
  for (guint i = 0; i < G_N_ELEMENTS (lengths); i++)
    g_assert_null (add_stream_with (&reader, 5, 96, elements[i], lengths[i]));
  for (guint i = 0; i < 100; i++) {
    token = add_stream_with (&reader, 10 + i, 96, NULL, 0);
    g_assert_true ((token != NULL) == (i < 31));
    g_free (token);
  }
  reader_close (&reader);
}

static void
test_new_destination (void)
{
  struct sockaddr_in there = { .sin_family = AF_INET, .sin_addr.s_addr = htonl (0x7f000002) };
  socklen_t len = sizeof there;
  GstHarness *h = make_sink ();
  Reader reader;

  reader_open (&reader, 1);
  add (h, reader.token, reader.port);
  push (h, 1);
  g_assert_cmpuint (expect (&reader, 1), ==, 1);
  close (reader.fd);
  reader.fd = socket (AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  g_assert_cmpint (bind (reader.fd, (struct sockaddr *) &there, len), ==, 0);
  g_assert_cmpint (getsockname (reader.fd, (struct sockaddr *) &there, &len), ==, 0);
  g_signal_emit_by_name (reader.object, "set-destination", "127.0.0.2");
  g_signal_emit_by_name (h->element, "remove", reader.token, reader.port);
  add (h, reader.token, ntohs (there.sin_port));
  push (h, 2);
  g_assert_cmpuint (expect (&reader, 2), ==, 2);
  gst_harness_teardown (h);
  reader_close (&reader);
}

// As WebRTC has it over TCP.
static void
test_connection (void)
{
  static const guint8 delay[] = { 0x52, 0, 0, 0 };
  GstHarness *h = make_sink ();
  GObject *connection;
  GSocket *socket;
  Reader reader;
  gchar *token, *destination;
  int fds[2];

  reader_open_with (&reader, TRUE, 1);
  g_assert_cmpint (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), ==, 0);
  socket = g_socket_new_from_fd (fds[0], NULL);
  connection = g_object_new (g_type_from_name ("WeirConnection"), "socket", socket, NULL);
  g_object_get (connection, "token", &destination, NULL);
  g_signal_emit_by_name (reader.object, "set-destination", destination);
  token = add_stream_with (&reader, 0x10, 100, delay, sizeof delay);
  add (h, token, 0);
  for (guint n = 1; n < 100; n++) {
    guint8 data[2048];

    push (h, n);
    g_assert_cmpint (recv (fds[1], data, 2, MSG_WAITALL), ==, 2);
    g_assert_cmpint (GST_READ_UINT16_BE (data), ==, LEN + 8 + 16);
    g_assert_cmpint (recv (fds[1], data, LEN + 8 + 16, MSG_WAITALL), ==, LEN + 8 + 16);
    check_own (&reader, data, LEN + 8 + 16, n, 0x10, 100);
  }
  gst_harness_teardown (h);
  g_object_unref (connection);
  g_object_unref (socket);
  close (fds[1]);
  g_free (token);
  g_free (destination);
  reader_close (&reader);
}

// ---- retransmissions ----

static guint
resend (GstHarness *h, const gchar *token, gint port, guint16 first, guint n)
{
  GArray *seqs = g_array_new (FALSE, FALSE, sizeof first);
  GBytes *bytes;
  guint n_sent;

  for (; n > 0; n--, first++)
    g_array_append_val (seqs, first);
  bytes = g_bytes_new (seqs->data, seqs->len * sizeof first);
  g_signal_emit_by_name (h->element, "resend", token, port, bytes, (guint64) 0, &n_sent);
  g_bytes_unref (bytes);
  g_array_unref (seqs);
  return n_sent;
}

static void
expect_stats (GstHarness *h, const gchar *token, gint port, guint64 resent, guint64 refused)
{
  guint64 got_resent, got_refused;
  GstStructure *stats;

  g_signal_emit_by_name (h->element, "get-stats", token, port, &stats);
  g_assert_true (gst_structure_get_uint64 (stats, "resent", &got_resent));
  g_assert_true (gst_structure_get_uint64 (stats, "resend-refused", &got_refused));
  g_assert_cmpuint (got_resent, ==, resent);
  g_assert_cmpuint (got_refused, ==, refused);
  gst_structure_free (stats);
}

// Pushes packets from `first` on and asks for the last ones again, until the machine does both
// within the second for which packets are kept. Returns the number of the first packet of the last
// lot.
static guint
push_and_resend (GstHarness *h, const Reader *reader, const gchar *token, guint first, guint lost)
{
  for (;; first += LOT) {
    gint64 began_us = g_get_monotonic_time ();
    guint8 data[2048];
    guint16 seq = 0;
    guint n;

    for (guint i = 0; i < LOT; i++) {
      push (h, first + i);
      receive (reader, data, sizeof data);
      seq = GST_READ_UINT16_BE (data + 2);
    }
    n = resend (h, token, reader->port, (guint16) (seq + 1 - lost), lost);
    if (g_get_monotonic_time () - began_us < G_USEC_PER_SEC / 2) {
      g_assert_cmpuint (n, ==, lost);
      return first;
    }
    while (n-- > 0)
      receive (reader, data, sizeof data);
  }
}

// With numbers of their own (RFC 4588).
static void
test_rtx (void)
{
  const guint lost = 9;

  for (gboolean gcm = FALSE; gcm <= TRUE; gcm++) {
    GstHarness *h = make_sink ();
    guint8 data[2048];
    guint first, next = 0;
    Reader reader;
    gchar *token;

    reader_open_with (&reader, gcm, 1);
    token = add_stream (&reader, "s, ssrc=(uint)16, payload-type=(uint)100, rtx-ssrc=(uint)17, "
                                 "rtx-payload-type=(uint)101");
    add (h, token, reader.port);
    first = push_and_resend (h, &reader, token, 65000, lost) + LOT - lost;
    for (guint n = 0; n < lost; n++) {
      int len = receive (&reader, data, sizeof data);

      g_assert_cmpint (len, ==, LEN + 2 + (gcm ? 16 : 10));
      g_assert_cmpint (srtp_unprotect (reader.in, data, &len), ==, srtp_err_status_ok);
      g_assert_cmphex (data[1], ==, 0x80 | 101);
      if (n > 0)
        g_assert_cmpuint (GST_READ_UINT16_BE (data + 2), ==, next);
      next = GST_READ_UINT16_BE (data + 2) + 1;
      g_assert_cmpuint (GST_READ_UINT32_BE (data + 4), ==, first + n);
      g_assert_cmpuint (GST_READ_UINT32_BE (data + 8), ==, 17);
      g_assert_cmpuint (GST_READ_UINT16_BE (data + 12), ==, first + n - 32768);
      for (guint i = 12; i < LEN; i++)
        g_assert_cmpuint (data[i + 2], ==, byte_at (first + n, i));
    }
    g_assert_cmpuint (resend (h, token, reader.port, 1, 3), ==, 0);
    push (h, first + lost);
    receive (&reader, data, sizeof data);
    g_assert_cmpuint (GST_READ_UINT16_BE (data + 2), ==, first + lost - 32768);
    expect_stats (h, token, reader.port, lost, 3);
    gst_harness_teardown (h);
    g_free (token);
    reader_close (&reader);
  }
}

// Without an SSRC for them, retransmissions are the same packets, also after their numbers have
// wrapped.
static void
test_same_again (void)
{
  GstHarness *h = make_sink ();
  gboolean probes = TRUE;
  guint8 data[2048];
  Reader reader;
  gchar *token;

  reader_open_with (&reader, TRUE, 1);
  token = add_stream (&reader, "s, ssrc=(uint)16, payload-type=(uint)100");
  add (h, token, reader.port);
  for (guint n = 32700; n < 98300; n++) {
    int len;

    push (h, n);
    len = receive (&reader, data, sizeof data);
    if (n % 7 != 0)
      g_assert_cmpint (srtp_unprotect (reader.in, data, &len), ==, srtp_err_status_ok);
  }
  push_and_resend (h, &reader, token, 98300, 5);
  for (guint n = 0; n < 5; n++) {
    int len = receive (&reader, data, sizeof data);

    g_assert_cmpint (len, ==, LEN + 16);
    g_assert_cmpint (srtp_unprotect (reader.in, data, &len), ==, srtp_err_status_ok);
    g_assert_cmpint (len, ==, LEN);
  }
  g_assert_cmpuint (resend (h, reader.token, reader.port, 1, 1), ==, 0); // no such reader
  g_signal_emit_by_name (h->element, "probe", token, reader.port, (guint64) 1000000, 200u, &probes);
  g_assert_false (probes); // the reader would drop them
  gst_harness_teardown (h);
  g_free (token);
  reader_close (&reader);
}

// Takes a packet with the header of a stream that has transport-wide numbers. Returns the number.
static guint
take_transport (const Reader *reader, guint ssrc)
{
  static const guint8 extension[] = { 0xbe, 0xde, 0, 2, 0x52, 0, 0, 0, 0x31 };
  guint8 data[2048];
  int len = receive (reader, data, sizeof data);

  g_assert_cmpint (srtp_unprotect (reader->in, data, &len), ==, srtp_err_status_ok);
  g_assert_cmphex (GST_READ_UINT32_BE (data + 8), ==, ssrc);
  g_assert_cmpmem (data + 12, sizeof extension, extension, sizeof extension);
  g_assert_cmphex (data[12 + 11], ==, 0);
  return (guint) data[12 + 9] << 8 | data[12 + 10]; // not aligned
}

static gchar *
add_transport_stream (const Reader *reader, guint ssrc, guint rtx_ssrc)
{
  static const guint8 delay[] = { 0x52, 0, 0, 0 };
  GBytes *bytes = g_bytes_new_static (delay, sizeof delay);
  GstStructure *stream = gst_structure_new ("stream", "ssrc", G_TYPE_UINT, ssrc, "payload-type",
      G_TYPE_UINT, 100, "rtx-ssrc", G_TYPE_UINT, rtx_ssrc, "rtx-payload-type", G_TYPE_UINT,
      rtx_ssrc ? 101 : 0, "extensions", G_TYPE_BYTES, bytes, "transport-id", G_TYPE_UINT, 3, NULL);
  gchar *token = NULL;

  g_signal_emit_by_name (reader->object, "add-stream", stream, &token);
  g_assert_nonnull (token);
  gst_structure_free (stream);
  g_bytes_unref (bytes);
  return token;
}

// All streams of an object share one row of numbers, and so do retransmissions.
static void
test_transport_numbers (void)
{
  GstHarness *h[2] = { make_sink (), make_sink () };
  gchar *tokens[2];
  Reader reader;
  guint next = 0;

  reader_open_with (&reader, TRUE, 1);
  for (guint i = 0; i < 2; i++) {
    tokens[i] = add_transport_stream (&reader, 0x10 + i, i == 0 ? 0x20 : 0);
    add (h[i], tokens[i], reader.port);
  }
  for (guint n = 100; n < 150; n++) {
    for (guint i = 0; i < 2; i++, next++) {
      push (h[i], n);
      g_assert_cmpuint (take_transport (&reader, 0x10 + i), ==, next);
    }
  }
  // None are sent again on a machine that takes more than a second for this.
  for (guint n = resend (h[0], tokens[0], reader.port, 140, 5); n > 0; n--, next++)
    g_assert_cmpuint (take_transport (&reader, 0x20), ==, next);
  // The same packet must not be sent with another number.
  g_assert_cmpuint (resend (h[1], tokens[1], reader.port, 140, 5), ==, 0);
  push (h[1], 150);
  g_assert_cmpuint (take_transport (&reader, 0x11), ==, next);
  for (guint i = 0; i < 2; i++) {
    gst_harness_teardown (h[i]);
    g_free (tokens[i]);
  }
  reader_close (&reader);
}

// Pushes packet 40000 with the marker as the only sign of its own, and an extension. Checks what
// the reader gets in its place.
static void
push_extension (GstHarness *h, const Reader *reader, const guint8 *extension, gsize len,
    const guint8 *expected, gsize expected_len, guint16 seq)
{
  static const guint8 payload[] = { 1, 2, 3 };
  guint8 data[128] = { (guint8) (len > 0 ? 0x90 : 0x80), 0xe0, 40000 >> 8, 40000 & 0xff };
  guint8 *pushed;

  GST_WRITE_UINT16_BE (data + 2, 40000 + seq);
  GST_WRITE_UINT32_BE (data + 8, SSRC);
  if (len > 0)
    memcpy (data + 12, extension, len);
  memcpy (data + 12 + len, payload, sizeof payload);
  pushed = g_memdup2 (data, 12 + len + sizeof payload);
  g_assert_cmpint (gst_harness_push (h, gst_buffer_new_wrapped (pushed, 12 + len + sizeof payload)),
      ==, GST_FLOW_OK);
  g_assert_cmpint (receive (reader, data, sizeof data), ==, 12 + expected_len + sizeof payload);
  g_assert_cmphex (data[0], ==, 0x90);
  g_assert_cmphex (data[1], ==, 0xe0);
  g_assert_cmpuint (GST_READ_UINT16_BE (data + 2), ==, 40000 - 32768 + seq);
  g_assert_cmphex (GST_READ_UINT32_BE (data + 8), ==, SSRC);
  g_assert_cmpmem (data + 12, expected_len, expected, expected_len);
  g_assert_cmpmem (data + 12 + expected_len, sizeof payload, payload, sizeof payload);
}

// As RTSP has it: without keys, the packets only get numbers.
static void
test_numbers_without_keys (void)
{
  static const guint8 none[] = { 0xbe, 0xde, 0, 1, 0x51, 0, 0, 0 },
                      one_byte[] = { 0xbe, 0xde, 0, 1, 0x10, 0xaa, 0, 0 },
                      both[] = { 0xbe, 0xde, 0, 2, 0x51, 0, 1, 0, 0x10, 0xaa, 0, 0 },
                      two_byte[] = { 0x10, 0, 0, 1, 1, 1, 0xaa, 0 },
                      after[] = { 0xbe, 0xde, 0, 1, 0x51, 0, 3, 0 };
  guint8 report[] = { 0x80, 201, 0, 1, 0, 0, 0, 5 };
  WeirEstimateView view;
  Reader reader;
  GstHarness *h = make_sink ();
  gboolean known = FALSE;
  gint len;

  reader_open (&reader, 1);
  g_object_unref (reader.object);
  g_free (reader.token);
  reader.object = g_object_new (g_type_from_name ("WeirSrtp"), "destination", "127.0.0.1",
      "profile", "none", "transport-id", 5, NULL);
  g_object_get (reader.object, "token", &reader.token, NULL);
  g_assert_nonnull (reader.token);
  add (h, reader.token, reader.port);
  push_extension (h, &reader, NULL, 0, none, sizeof none, 0);
  push_extension (h, &reader, one_byte, sizeof one_byte, both, sizeof both, 1);
  // This form has no room for the number, which is left out.
  push_extension (h, &reader, two_byte, sizeof two_byte, two_byte, sizeof two_byte, 2);
  push_extension (h, &reader, NULL, 0, after, sizeof after, 3);
  g_signal_emit_by_name (reader.object, "unprotect", report, (guint) sizeof report, &len);
  g_assert_cmpint (len, ==, sizeof report);
  g_signal_emit_by_name (reader.object, "read-estimate", &view, (guint64) 1, &known);
  g_assert_true (known);
  gst_harness_teardown (h);
  reader_close (&reader);
}

#define TOLD 40

// Gives the object feedback: the packets numbered 0 to TOLD - 1 arrived `apart` quarters of a
// millisecond after each other.
static void
feed_back (const Reader *reader, guint8 apart)
{
  const gsize size = (8 + 4 + 8 + 2 + TOLD + 2) & ~(gsize) 3;
  guint8 packet[12 + 8 + 2 + TOLD + 2] = { 0x8f, 205, 0, (guint8) (size / 4 - 1) };

  GST_WRITE_UINT16_BE (packet + 14, TOLD);
  packet[18] = 10; // 640 ms
  GST_WRITE_UINT16_BE (packet + 20, 1 << 13 | TOLD);
  memset (packet + 22, apart, TOLD);
  g_signal_emit_by_name (
      reader->object, "feedback", packet, (guint) size, (guint64) g_get_monotonic_time () * 1000);
}

static gboolean
read_estimate (const Reader *reader, WeirEstimateView *view)
{
  gboolean is_known;

  g_signal_emit_by_name (
      reader->object, "read-estimate", view, (guint64) g_get_monotonic_time () * 1000, &is_known);
  return is_known;
}

static void
check_state (const Reader *reader, WeirEstimateState state, gboolean is_known)
{
  WeirEstimateView view;

  g_assert_true (read_estimate (reader, &view));
  g_assert_cmpint (view.state, ==, state);
  g_assert_true ((view.bits > 0) == is_known);
}

// What is sent again beside the stream has the next transport-wide numbers.
static void
check_probe (GstHarness *h, const Reader *reader, const gchar *token)
{
  gboolean probes = FALSE;

  push (h, TOLD); // so that a packet is fresh
  g_assert_cmpuint (take_transport (reader, 0x10), ==, TOLD);
  g_signal_emit_by_name (
      h->element, "probe", token, reader->port, (guint64) 1000000, 200u, &probes);
  g_assert_true (probes);
  for (guint i = 1; i < 4; i++)
    g_assert_cmpuint (take_transport (reader, 0x20), ==, TOLD + i);
  g_signal_emit_by_name (
      h->element, "probe", token, reader->port, (guint64) 1000000, 6000u, &probes);
  g_assert_false (probes);
  g_signal_emit_by_name (
      h->element, "probe", reader->token, reader->port, (guint64) 1000000, 200u, &probes);
  g_assert_false (probes);
}

// A queue that grows stops retransmissions.
static void
test_feedback (void)
{
  static const guint8 junk[] = { 0x8f, 205, 0, 9, 1, 2, 3, 4 };

  for (gboolean congested = FALSE; congested <= TRUE; congested++) {
    GstHarness *h = make_sink ();
    WeirEstimateView view;
    Reader reader;
    gchar *token;

    reader_open_with (&reader, TRUE, 1);
    g_assert_false (read_estimate (&reader, &view));
    g_signal_emit_by_name (reader.object, "feedback", junk, (guint) sizeof junk, (guint64) 1);
    token = add_transport_stream (&reader, 0x10, 0x20);
    add (h, token, reader.port);
    check_state (&reader, WEIR_ESTIMATE_CLEAR, FALSE);
    for (guint n = 0; n < TOLD; n++) {
      push (h, n);
      g_assert_cmpuint (take_transport (&reader, 0x10), ==, n);
    }
    g_signal_emit_by_name (reader.object, "feedback", junk, (guint) sizeof junk, (guint64) 1);
    feed_back (&reader, congested ? 200 : 1);
    check_state (&reader, congested ? WEIR_ESTIMATE_CONGESTED : WEIR_ESTIMATE_CLEAR, congested);
    // On a machine that takes more than a second for this, none are sent again either way.
    if (congested)
      g_assert_cmpuint (resend (h, token, reader.port, TOLD - 5, 5), ==, 0);
    else
      check_probe (h, &reader, token);
    gst_harness_teardown (h);
    g_free (token);
    reader_close (&reader);
  }
}

// ---- packets of the program ----

static gint
protect (const Reader *reader, guint8 *data, guint size, guint room)
{
  gint len;

  g_signal_emit_by_name (reader->object, "protect", data, size, room, &len);
  return len;
}

static void
test_program_reports (void)
{
  for (gboolean gcm = FALSE; gcm <= TRUE; gcm++) {
    guint8 plain[28] = { 0x80, 200, 0, 6 }, data[64];
    Reader reader;

    reader_open_with (&reader, gcm, 1);
    for (guint8 i = 0; i < 100; i++) {
      int len;

      plain[7] = i % 3;
      memcpy (data, plain, sizeof plain);
      g_assert_cmpint (protect (&reader, data, sizeof plain, sizeof plain + 19), ==, -1);
      len = protect (&reader, data, sizeof plain, sizeof data);
      g_assert_cmpint (len, ==, sizeof plain + (gcm ? 20 : 14));
      g_assert_cmpint (srtp_unprotect_rtcp (reader.in, data, &len), ==, srtp_err_status_ok);
      g_assert_cmpmem (data, len, plain, sizeof plain);
    }
    data[1] = 96;
    g_assert_cmpint (protect (&reader, data, sizeof plain, sizeof data), ==, -1);
    reader_close (&reader);
  }
}

static void
test_received_packets (void)
{
  for (gboolean gcm = FALSE; gcm <= TRUE; gcm++) {
    guint8 plain[100] = { 0x80, 96, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9, 1, 2, 3 }, data[128], copy[128];
    Reader reader;

    reader_open_with (&reader, gcm, 1);
    for (guint n = 65400; n < 65700; n++) {
      int len = sizeof plain;
      gint got;

      GST_WRITE_UINT16_BE (plain + 2, n);
      memcpy (data, plain, sizeof plain);
      g_assert_cmpint (srtp_protect (reader.out, data, &len), ==, srtp_err_status_ok);
      memcpy (copy, data, sizeof copy);
      copy[n % (guint) len] ^= 1;
      g_signal_emit_by_name (reader.object, "unprotect-rtp", copy, (guint) len, &got);
      g_assert_cmpint (got, ==, -1);
      memcpy (copy, data, sizeof copy);
      g_signal_emit_by_name (reader.object, "unprotect-rtp", copy, (guint) len, &got);
      g_assert_cmpmem (copy, got, plain, sizeof plain);
      g_signal_emit_by_name (reader.object, "unprotect-rtp", data, (guint) len, &got); // a replay
      g_assert_cmpint (got, ==, -1);
    }
    reader_close (&reader);
  }
}

// ---- readers that another sink serves ----

// The timestamp of a picture. They are so far apart that a slow machine is late for none.
#define AT(n) ((n) * 90000u)

static GstHarness *
make_video_sink (void)
{
  GstHarness *h = gst_harness_new ("fanoutsink");

  g_object_set (h->element, "sync", FALSE, "async", FALSE, NULL);
  gst_harness_set_src_caps_str (
      h, "application/x-rtp, media=video, encoding-name=H264, clock-rate=90000");
  gst_harness_play (h);
  return h;
}

// Pushes a picture of one packet; its first byte after the header of the NAL unit is `mark`.
static void
push_picture (GstHarness *h, guint16 seq, guint32 time, gboolean key, guint8 mark)
{
  guint8 *data = g_malloc0 (LEN);

  data[0] = 0x80;
  data[1] = 0xe0;
  GST_WRITE_UINT16_BE (data + 2, seq);
  GST_WRITE_UINT32_BE (data + 4, time);
  GST_WRITE_UINT32_BE (data + 8, SSRC + mark);
  data[12] = key ? 0x65 : 0x41;
  data[13] = 0x88;
  data[14] = mark;
  g_assert_cmpint (gst_harness_push (h, gst_buffer_new_wrapped (data, LEN)), ==, GST_FLOW_OK);
}

static void
expect_picture (const Reader *reader, guint16 seq, guint32 time, guint8 mark)
{
  guint8 data[2048];
  int len = receive (reader, data, sizeof data);

  g_assert_cmpint (srtp_unprotect (reader->in, data, &len), ==, srtp_err_status_ok);
  g_assert_cmpuint (GST_READ_UINT16_BE (data + 2), ==, seq);
  g_assert_cmpuint (GST_READ_UINT32_BE (data + 4), ==, time);
  g_assert_cmphex (GST_READ_UINT32_BE (data + 8), ==, 7);
  g_assert_cmpuint (data[14], ==, mark);
}

// Waits until the reader has caught up with a picture.
static void
skip_to (const Reader *reader, guint32 time)
{
  guint8 data[2048];
  int len;

  do {
    len = receive (reader, data, sizeof data);
    g_assert_cmpint (srtp_unprotect (reader->in, data, &len), ==, srtp_err_status_ok);
  } while (GST_READ_UINT32_BE (data + 4) != time);
}

static gboolean
splice (GstHarness *h, const gchar *token, gint port, GstElement *sink, guint ahead)
{
  gboolean done = FALSE;

  g_signal_emit_by_name (h->element, "splice", token, port, sink, ahead, &done);
  return done;
}

// A packet is counted after it was sent, so the count is waited for.
static void
check_guest (GstHarness *h, const gchar *token, gint port, gboolean guest, guint64 sent)
{
  gint64 end = g_get_monotonic_time () + PATIENCE_MS * G_GINT64_CONSTANT (1000);
  gboolean is_guest = !guest;
  guint64 n = 0;

  while (n < sent && g_get_monotonic_time () < end) {
    GstStructure *stats = NULL;

    g_signal_emit_by_name (h->element, "get-stats", token, port, &stats);
    g_assert_true (gst_structure_get (
        stats, "guest", G_TYPE_BOOLEAN, &is_guest, "packets-sent", G_TYPE_UINT64, &n, NULL));
    gst_structure_free (stats);
    g_thread_yield ();
  }
  g_assert_cmpint (is_guest, ==, guest);
  g_assert_cmpuint (n, ==, sent);
}

static guint
count_readers (GstHarness *h)
{
  GstStructure *stats = NULL;
  guint n = 99;

  g_object_get (h->element, "fanout-stats", &stats, NULL);
  gst_structure_get_uint (stats, "readers", &n);
  gst_structure_free (stats);
  return n;
}

static void
test_splice (void)
{
  GstHarness *own = make_video_sink (), *other = make_video_sink ();
  gboolean ok = FALSE;
  Reader reader;
  gchar *token;

  reader_open (&reader, 9);
  token = add_stream (&reader, "stream, ssrc=(uint)7, payload-type=(uint)97;");
  add (own, token, reader.port);
  push_picture (own, 100, AT (1), TRUE, 1);
  expect_picture (&reader, 100, AT (1), 1);
  g_assert_false (splice (own, token, reader.port, other->element, 0)); // it has no keyframe
  push_picture (other, 7000, AT (2) - 81000, TRUE, 2);
  g_assert_true (splice (own, token, reader.port, other->element, 81000));
  expect_picture (&reader, 101, AT (2), 2);
  g_assert_true (splice (own, token, reader.port, other->element, 81000));
  check_guest (own, token, reader.port, TRUE, 2);
  g_assert_cmpuint (count_readers (own), ==, 0);
  g_assert_cmpuint (count_readers (other), ==, 1);
  // What is asked of its own sink reaches it.
  g_signal_emit_by_name (own->element, "restrict", token, reader.port, 3u, &ok);
  g_assert_true (ok);
  push_picture (own, 101, AT (3), FALSE, 1);
  push_picture (other, 7001, AT (3) - 81000, FALSE, 2);
  push_picture (other, 7002, AT (4) - 81000, TRUE, 2);
  expect_picture (&reader, 102, AT (4), 2);
  push_picture (own, 102, AT (5), TRUE, 1);
  g_assert_true (splice (own, token, reader.port, own->element, 0));
  expect_picture (&reader, 103, AT (5), 1);
  check_guest (own, token, reader.port, FALSE, 4);
  g_assert_cmpuint (count_readers (own), ==, 1);
  g_assert_cmpuint (count_readers (other), ==, 0);

  // It leaves another sink, too.
  push_picture (other, 7003, AT (6) - 81000, TRUE, 2);
  g_assert_true (splice (own, token, reader.port, other->element, 81000));
  g_signal_emit_by_name (own->element, "remove", token, reader.port);
  g_assert_cmpuint (count_readers (other), ==, 0);
  add (own, token, reader.port);
  push_picture (own, 103, AT (7), TRUE, 1);
  skip_to (&reader, AT (7));
  push_picture (other, 7004, AT (8) - 81000, TRUE, 2);
  g_assert_true (splice (own, token, reader.port, other->element, 81000));
  gst_element_set_state (own->element, GST_STATE_NULL);
  g_assert_cmpuint (count_readers (other), ==, 0);
  gst_harness_teardown (own);
  gst_harness_teardown (other);
  reader_close (&reader);
  g_free (token);
}

// The other sink goes first.
static void
test_splice_end (void)
{
  GstHarness *own = make_video_sink (), *other = make_video_sink ();
  Reader reader;
  gchar *token;

  reader_open (&reader, 9);
  token = add_stream (&reader, "stream, ssrc=(uint)7, payload-type=(uint)97;");
  add (own, token, reader.port);
  push_picture (own, 100, AT (1), TRUE, 1);
  expect_picture (&reader, 100, AT (1), 1);
  push_picture (other, 7000, AT (2), TRUE, 2);
  g_assert_true (splice (own, token, reader.port, other->element, 0));
  expect_picture (&reader, 101, AT (2), 2);
  gst_harness_teardown (other);
  push_picture (own, 101, AT (3), TRUE, 1);
  g_assert_true (splice (own, token, reader.port, own->element, 0));
  expect_picture (&reader, 102, AT (3), 1);
  gst_harness_teardown (own);
  reader_close (&reader);
  g_free (token);
}

static void
test_splice_refused (void)
{
  GstHarness *own = make_video_sink (), *other = make_video_sink ();
  GstElement *wrong = gst_element_factory_make ("fakesink", NULL);
  Reader reader;

  gst_object_ref_sink (wrong);
  reader_open (&reader, 9);
  add (own, "127.0.0.1", reader.port);
  push_picture (own, 100, 90000, TRUE, 1);
  push_picture (other, 7000, 93600, TRUE, 2);
  g_assert_false (splice (own, "127.0.0.1", reader.port, other->element, 0));
  g_assert_false (splice (own, reader.token, reader.port, other->element, 0));
  g_assert_false (splice (own, reader.token, reader.port, wrong, 0));
  g_assert_false (splice (own, reader.token, reader.port, NULL, 0));
  g_assert_false (splice (own, NULL, reader.port, other->element, 0));
  gst_object_unref (wrong);
  gst_harness_teardown (own);
  gst_harness_teardown (other);
  reader_close (&reader);
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  gst_object_unref (gst_plugin_load_by_name ("weir"));
  srtp_init ();
  g_test_add_func ("/srtp/a-long-stream-is-decrypted-over-all-wraps", test_long_stream);
  g_test_add_func ("/srtp/each-reader-has-its-key", test_keys_differ);
  g_test_add_func ("/srtp/a-reader-that-returns-continues-its-numbers", test_returning_reader);
  g_test_add_func ("/srtp/an-unknown-token-gets-nothing", test_unknown_token);
  g_test_add_func ("/srtp/keys-of-another-length-are-refused", test_wrong_keys);
  g_test_add_func ("/srtp/reports-are-encrypted", test_sent_reports);
  g_test_add_func ("/srtp/only-authentic-reports-are-taken-once", test_received_reports);
  g_test_add_func ("/srtp/each-track-has-its-header", test_streams);
  g_test_add_func ("/srtp/streams-share-transport-wide-numbers", test_transport_numbers);
  g_test_add_func ("/srtp/without-keys-packets-only-get-numbers", test_numbers_without_keys);
  g_test_add_func ("/srtp/feedback-estimates-the-line", test_feedback);
  g_test_add_func ("/srtp/wrong-streams-are-refused", test_wrong_streams);
  g_test_add_func ("/srtp/a-reader-is-added-at-its-new-address", test_new_destination);
  g_test_add_func ("/srtp/packets-within-a-connection-have-their-lengths", test_connection);
  g_test_add_func ("/srtp/lost-packets-are-sent-again-with-an-ssrc-of-their-own", test_rtx);
  g_test_add_func ("/srtp/lost-packets-are-sent-again-as-they-were", test_same_again);
  g_test_add_func ("/srtp/reports-of-the-program-are-encrypted", test_program_reports);
  g_test_add_func ("/srtp/only-authentic-packets-are-taken-once", test_received_packets);
  g_test_add_func ("/srtp/another-sink-serves-a-reader", test_splice);
  g_test_add_func ("/srtp/a-reader-comes-back-from-a-sink-that-ended", test_splice_end);
  g_test_add_func ("/srtp/other-readers-stay", test_splice_refused);
  return g_test_run ();
}
