// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/limits.h"
#include "outlets/http/http_opening.h"
#include "outlets/http/http_pieces.h"
#include "outlets/http/http_request.h"
#include "outlets/http/http_sender.h"
#include "stores/duration.h"
#include "stores/file_bytes.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SECOND G_GINT64_CONSTANT (1000000000)
#define RATE 80000 // bits a second: 10,000 bytes a second, 50,000 a slice
#define SIZE 200000
#define MODIFIED 1000000000 // 9 September 2001, 01:46:40

// ---- durations ----

static gsize
read_bytes (gpointer file, guint64 offset, guint8 *bytes, gsize length)
{
  GByteArray *from = file;
  gsize n = offset < from->len ? MIN (length, from->len - (gsize) offset) : 0;

  memcpy (bytes, from->data + MIN (offset, from->len), n);
  return n;
}

static void
add (GByteArray *file, const gchar *hex)
{
  for (; *hex; hex += 2) {
    guint8 byte;

    while (*hex == ' ')
      hex++;
    byte = (guint8) (g_ascii_xdigit_value (hex[0]) << 4 | g_ascii_xdigit_value (hex[1]));
    g_byte_array_append (file, &byte, 1);
  }
}

static gint64
find (const gchar *hex)
{
  GByteArray *file = g_byte_array_new ();
  gint64 duration;

  add (file, hex);
  duration = duration_find (read_bytes, file, file->len);
  g_byte_array_unref (file);
  return duration;
}

#define FTYP "0000000c 66747970 69736f6d"
#define MDAT "00000000 6d646174"

static void
test_durations_of_headers (void)
{
  // timescale 1000, duration 12,345
  g_assert_cmpint (find (FTYP "00000024 6d6f6f76 0000001c 6d766864 00000000 00000000 00000000 "
                              "000003e8 00003039" MDAT),
      ==, 12345 * (SECOND / 1000));
  // mdat before moov; version 1
  g_assert_cmpint (find (FTYP "00000008 6d646174 00000030 6d6f6f76 00000028 6d766864 01000000 "
                              "0000000000000000 0000000000000000 000003e8 0000000000003039"),
      ==, 12345 * (SECOND / 1000));
  // a duration of 0, as in a fragmented file
  g_assert_cmpint (find (FTYP "00000024 6d6f6f76 0000001c 6d766864 00000000 00000000 00000000 "
                              "000003e8 00000000"),
      ==, -1);
  // boxes that are cut off, too short, too long
  g_assert_cmpint (find (FTYP "00000024 6d6f6f76 0000001c 6d766864 00000000 0000"), ==, -1);
  g_assert_cmpint (find (FTYP "00000007 6d6f6f76"), ==, -1);
  g_assert_cmpint (find (FTYP "00000001 6d6f6f76 ffffffffffffffff"), ==, -1);
  // Matroska: TimestampScale 1,000,000, Duration 12,345 as float and double
  g_assert_cmpint (
      find ("1a45dfa3 80 18538067 01ffffffffffffff 1549a966 8e 2ad7b1 83 0f4240 4489 84 4640e400"),
      ==, 12345 * (SECOND / 1000));
  g_assert_cmpint (find ("1a45dfa3 80 18538067 93 1549a966 8b 4489 88 40c81c8000000000"), ==,
      12345 * (SECOND / 1000));
  g_assert_cmpint (find ("1a45dfa3 80 18538067 93 1f43b675 8b 4489 88 40c81c8000000000"), ==, -1);
  g_assert_cmpint (find ("1a45dfa3 80 18538067 93 1549a966 8b 4489 88 7ff8000000000000"), ==, -1);
  g_assert_cmpint (find ("1a45dfa3 00"), ==, -1);
  g_assert_cmpint (find ("ffd8ffe0"), ==, -1);
  g_assert_cmpint (find (""), ==, -1);
}

static void
add_packet (GByteArray *file, guint pid, gint64 pcr_s)
{
  guint8 packet[188] = { 0x47, (guint8) (pid >> 8), (guint8) pid, 0x10 };
  guint64 base = (guint64) pcr_s * 90000 & ((G_GUINT64_CONSTANT (1) << 33) - 1);

  if (pcr_s >= 0) {
    packet[3] = 0x20;
    packet[4] = 183;
    packet[5] = 0x10;
    for (guint i = 0; i < 4; i++)
      packet[6 + i] = (guint8) (base >> (25 - 8 * i));
    packet[10] = (guint8) (base << 7);
  }
  g_byte_array_append (file, packet, sizeof packet);
}

static void
test_durations_of_ts (void)
{
  GByteArray *file = g_byte_array_new ();

  for (guint i = 0; i < 5000; i++) {
    add_packet (file, 32, -1);
    add_packet (file, 33, i % 10 == 0 ? 95440 + (gint64) i / 10 : -1); // wraps after 95,443.7 s
    add_packet (file, 34, i);                                          // another program
  }
  g_assert_cmpint (duration_find (read_bytes, file, file->len), ==, 499 * SECOND);
  g_byte_array_set_size (file, 3 * 188);
  g_assert_cmpint (duration_find (read_bytes, file, file->len), ==, -1); // one clock only
  g_byte_array_unref (file);
}

// ---- requests ----

static HttpBody
choose (const gchar *headers)
{
  gchar *head = g_strconcat ("GET /a HTTP/1.1\r\nHost: x\r\n", headers, "\r\n\r\n", NULL);
  HttpRequest request;
  HttpBody body;

  g_assert_cmpuint (http_request_read (&request, (const guint8 *) head, strlen (head)), ==, 0);
  http_request_choose (&request, 1000, "\"tag\"", MODIFIED, &body);
  http_request_clear (&request);
  g_free (head);
  return body;
}

static void
check_body (const gchar *headers, guint status, guint64 start, guint64 length)
{
  HttpBody body = choose (headers);

  g_test_message ("%s", headers);
  g_assert_cmpuint (body.status, ==, status);
  g_assert_cmpuint (body.length, ==, length);
  if (status == 206)
    g_assert_cmpuint (body.start, ==, start);
}

static void
test_ranges (void)
{
  check_body ("A: b", 200, 0, 1000);
  check_body ("Range: bytes=0-0", 206, 0, 1);
  check_body ("Range: bytes=0-", 206, 0, 1000);
  check_body ("Range: bytes=10-19", 206, 10, 10);
  check_body ("Range: bytes=10-5000", 206, 10, 990);
  check_body ("Range: bytes=-10", 206, 990, 10);
  check_body ("Range: bytes=-5000", 206, 0, 1000);
  check_body ("Range: bytes=999-", 206, 999, 1);
  check_body ("Range: bytes=1000-", 416, 0, 0);
  check_body ("Range: bytes=1000-2000", 416, 0, 0);
  check_body ("Range: bytes=9-5", 200, 0, 1000);
  check_body ("Range: bytes=0-1,5-6", 200, 0, 1000);
  check_body ("Range: bytes=x", 200, 0, 1000);
  check_body ("Range: lines=0-1", 200, 0, 1000);
  check_body ("Range: bytes=-0", 416, 0, 0);
  check_body ("Range: bytes=99999999999999999999999-", 416, 0, 0);
}

static void
test_conditions (void)
{
  check_body ("If-None-Match: \"tag\"", 304, 0, 0);
  check_body ("If-None-Match: \"other\", W/\"tag\"", 304, 0, 0);
  check_body ("If-None-Match: *", 304, 0, 0);
  check_body ("If-None-Match: \"tag2\"", 200, 0, 1000);
  check_body ("If-Modified-Since: Sun, 09 Sep 2001 01:46:40 GMT", 304, 0, 0);
  check_body ("If-Modified-Since: Sun, 09 Sep 2001 01:46:39 GMT", 200, 0, 1000);
  check_body ("If-Modified-Since: yesterday", 200, 0, 1000);
  check_body ("Range: bytes=1-1\r\nIf-Range: \"tag\"", 206, 1, 1);
  check_body ("Range: bytes=1-1\r\nIf-Range: \"old\"", 200, 0, 1000);
  check_body ("Range: bytes=1-1\r\nIf-Range: Sun, 09 Sep 2001 01:46:40 GMT", 206, 1, 1);
  check_body ("Range: bytes=1-1\r\nIf-Range: Sun, 09 Sep 2001 01:46:41 GMT", 200, 0, 1000);
}

static void
test_heads (void)
{
  static const struct {
    const gchar *head;
    guint status;
    gboolean keeps;
  } heads[] = {
    { "GET /a HTTP/1.1\r\nHost: x\r\n\r\n", 0, TRUE },
    { "HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n", 0, TRUE },
    { "GET http://x/a HTTP/1.1\r\nHost: x\r\n\r\n", 0, TRUE },
    { "GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 0, FALSE },
    { "GET /a HTTP/1.0\r\n\r\n", 0, FALSE },
    { "GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 0, TRUE },
    { "GET /a HTTP/1.1\r\n\r\n", 400, FALSE },
    { "GET a HTTP/1.1\r\nHost: x\r\n\r\n", 400, FALSE },
    { "GET /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", 411, FALSE },
    { "POST /a HTTP/1.1\r\nHost: x\r\n\r\n", 0, TRUE },
  };

  for (guint i = 0; i < G_N_ELEMENTS (heads); i++) {
    HttpRequest request;
    guint status =
        http_request_read (&request, (const guint8 *) heads[i].head, strlen (heads[i].head));

    g_test_message ("%s", heads[i].head);
    g_assert_cmpuint (status, ==, heads[i].status);
    if (status == 0) {
      g_assert_cmpstr (request.target, ==, "/a");
      g_assert_true (request.keeps == heads[i].keeps);
    }
    http_request_clear (&request);
  }
}

// ---- sending, with times of the test ----

typedef struct {
  StoreBytes *bytes;
  HttpSender sender;
  int sockets[2]; // the sender's and the reader's
  guint64 received;
  gchar *path;
} Sending;

// A file of random bytes that an MP4 header says to last 20 s.
static gchar *
make_film (void)
{
  GByteArray *film = g_byte_array_new ();
  GRand *rand = g_rand_new_with_seed (7);
  gchar *path;
  int fd = g_file_open_tmp (NULL, &path, NULL);

  add (film, FTYP "00000024 6d6f6f76 0000001c 6d766864 00000000 00000000 00000000 "
                  "000003e8 00004e20" MDAT);
  while (film->len < SIZE) {
    guint8 byte = (guint8) g_rand_int (rand);

    g_byte_array_append (film, &byte, 1);
  }
  g_assert_cmpint (write (fd, film->data, film->len), ==, SIZE);
  close (fd);
  g_rand_free (rand);
  g_byte_array_unref (film);
  return path;
}

static void
wake (gpointer unused)
{
}

static void
begin_as (Sending *self, guint64 start, guint64 length, gboolean is_piece)
{
  *self = (Sending) { .path = make_film () };
  self->bytes = file_bytes_new (g_open (self->path, O_RDONLY | O_CLOEXEC));
  g_assert_nonnull (self->bytes);
  g_assert_cmpint (
      socketpair (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, self->sockets), ==, 0);
  http_sender_init (&self->sender, self->bytes, start, length, is_piece, wake, NULL);
}

static void
begin (Sending *self, guint64 start, guint64 length)
{
  begin_as (self, start, length, FALSE);
}

// Receives all that the socket has, and compares it.
static guint64
receive (Sending *self, guint64 start)
{
  static guint8 got[SIZE];
  gchar *film;
  gssize n;

  g_assert_true (g_file_get_contents (self->path, &film, NULL, NULL));
  while ((n = recv (self->sockets[1], got, sizeof got, 0)) > 0) {
    g_assert_cmpmem (got, n, film + start + self->received, n);
    self->received += (guint64) n;
  }
  g_free (film);
  return self->received;
}

// Runs the sender at a time, with a reader that takes everything.
static HttpSenderState
run_at (Sending *self, gint64 now)
{
  HttpSenderState state;

  do {
    state = http_sender_run (&self->sender, self->sockets[0], now);
    receive (self, 0);
  } while (state == HTTP_SENDER_SOCKET_FULL
           || (state == HTTP_SENDER_AGAIN && self->sender.wake_ns <= now));
  return state;
}

static void
finish (Sending *self)
{
  http_sender_clear (&self->sender);
  store_bytes_unref (self->bytes);
  close (self->sockets[0]);
  close (self->sockets[1]);
  g_unlink (self->path);
  g_free (self->path);
}

#define AROUND(got, expected) g_assert_cmpint (ABS ((gint64) (got) - (gint64) (expected)), <=, 5000)

static void
test_a_slice_leaves_each_slice_after_a_first_one (void)
{
  Sending self;

  begin (&self, 0, SIZE);
  g_assert_cmpuint (self.bytes->rate, ==, RATE + 1);
  for (gint64 slice = 0; slice < 3; slice++) {
    gint64 due = 1000 * SECOND + slice * self.bytes->slice_ns;

    if (slice > 0) {
      g_assert_cmpint (ABS (self.sender.wake_ns - due), <, 1000000);
      g_assert_cmpint (run_at (&self, due - SECOND), ==, HTTP_SENDER_AGAIN);
      AROUND (self.received, 50000 * (slice + 1));
    }
    g_assert_cmpint (run_at (&self, due), ==, slice < 2 ? HTTP_SENDER_AGAIN : HTTP_SENDER_DONE);
    AROUND (self.received, 50000 * (slice + 2));
  }
  g_assert_cmpuint (self.received, ==, SIZE);
  g_assert_cmpuint (self.sender.starved[0] + self.sender.starved[1], ==, 0);
  finish (&self);
}

static void
test_a_late_slice_shortens_the_next_waits (void)
{
  Sending self;
  gint64 slice;

  begin (&self, 0, SIZE);
  slice = self.bytes->slice_ns;
  run_at (&self, 0);
  run_at (&self, slice + 2 * SECOND);
  AROUND (self.received, 150000);
  g_assert_cmpint (ABS (self.sender.wake_ns - 2 * slice), <, 1000000);
  g_assert_cmpint (self.sender.deficit_ns, >, SECOND);
  g_assert_cmpuint (self.sender.starved[0], ==, 0); // it had a slice left
  run_at (&self, 3 * slice + SECOND / 100);
  g_assert_cmpuint (self.received, ==, SIZE);
  g_assert_cmpuint (self.sender.starved[0], ==, 1);
  finish (&self);
}

static void
test_a_reader_that_does_not_read_starves_by_itself (void)
{
  Sending self;
  int size = 4096;

  begin (&self, 0, SIZE);
  setsockopt (self.sockets[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  run_at (&self, SECOND);
  g_assert_cmpint (
      http_sender_run (&self.sender, self.sockets[0], 6 * SECOND), ==, HTTP_SENDER_SOCKET_FULL);
  g_assert_cmpint (
      http_sender_run (&self.sender, self.sockets[0], 8 * SECOND), ==, HTTP_SENDER_SOCKET_FULL);
  g_assert_cmpint (self.sender.full_since_ns, ==, 6 * SECOND);
  for (gint64 now = 30 * SECOND; now < 40 * SECOND; now += SECOND / 10)
    run_at (&self, now);
  g_assert_cmpuint (self.received, ==, SIZE);
  g_assert_cmpuint (self.sender.starved[0], ==, 0);
  g_assert_cmpuint (self.sender.starved[1], >=, 1);
  finish (&self);
}

static void
test_a_range_is_sent_alone (void)
{
  Sending self;

  begin (&self, 1234, 100);
  g_assert_cmpint (http_sender_run (&self.sender, self.sockets[0], 0), ==, HTTP_SENDER_DONE);
  g_assert_cmpuint (receive (&self, 1234), ==, 100);
  finish (&self);
}

static void
test_a_piece_does_not_wait_for_its_time (void)
{
  Sending self;

  begin_as (&self, 0, SIZE, TRUE); // four slices
  g_assert_cmpint (run_at (&self, 1000 * SECOND), ==, HTTP_SENDER_DONE);
  g_assert_cmpuint (self.received, ==, SIZE);
  g_assert_cmpuint (self.sender.starved[0] + self.sender.starved[1], ==, 0);
  finish (&self);
}

static void
set_line (guint rate)
{
  Limits limits;

  limits_get (&limits);
  limits.line_rate = rate;
  limits_set (&limits);
}

static void
test_pieces_share_the_line (void)
{
  Sending pieces[3];
  const gint64 each = SIZE * 8 * SECOND / 1000000;

  set_line (1);
  for (gint64 i = 0; i < 3; i++) {
    begin_as (&pieces[i], 0, SIZE, TRUE);
    g_assert_cmpint (
        run_at (&pieces[i], 5000 * SECOND), ==, i == 0 ? HTTP_SENDER_DONE : HTTP_SENDER_AGAIN);
    if (i > 0)
      g_assert_cmpint (ABS (pieces[i].sender.wake_ns - 5000 * SECOND - i * each), <, 1000);
  }
  g_assert_cmpuint (pieces[1].received, ==, 0);
  g_assert_cmpint (run_at (&pieces[1], 5000 * SECOND + each), ==, HTTP_SENDER_DONE);
  g_assert_cmpint (run_at (&pieces[2], 5000 * SECOND + each), ==, HTTP_SENDER_AGAIN);
  g_assert_cmpint (run_at (&pieces[2], 5000 * SECOND + 2 * each), ==, HTTP_SENDER_DONE);
  for (guint i = 0; i < 3; i++) {
    g_assert_cmpuint (pieces[i].received, ==, SIZE);
    finish (&pieces[i]);
  }
  set_line (0);
}

static void
test_an_address_gets_so_many_pieces_at_a_time (void)
{
  GInetAddress *one = g_inet_address_new_from_string ("192.0.2.1");
  GInetAddress *other = g_inet_address_new_from_string ("192.0.2.2");

  for (guint i = 0; i < HTTP_PIECES_AT_ONCE; i++)
    g_assert_true (http_pieces_enter (one));
  g_assert_false (http_pieces_enter (one));
  g_assert_true (http_pieces_enter (other));
  http_pieces_leave (one);
  g_assert_true (http_pieces_enter (one));
  for (guint i = 0; i < HTTP_PIECES_AT_ONCE; i++)
    http_pieces_leave (one);
  http_pieces_leave (other);
  g_object_unref (one);
  g_object_unref (other);
}

static void
test_a_reader_that_left_is_noticed (void)
{
  Sending self;

  begin (&self, 0, SIZE);
  close (self.sockets[1]);
  self.sockets[1] = -1;
  g_assert_cmpint (http_sender_run (&self.sender, self.sockets[0], 0), ==, HTTP_SENDER_GONE);
  finish (&self);
}

static void
test_a_file_that_shrinks_ends_the_answer (void)
{
  Sending self;

  begin (&self, 0, SIZE);
  run_at (&self, 0);
  g_assert_cmpint (truncate (self.path, 60000), ==, 0);
  g_assert_cmpint (
      http_sender_run (&self.sender, self.sockets[0], 5 * SECOND), ==, HTTP_SENDER_FAILED);
  g_assert_nonnull (self.sender.error);
  finish (&self);
}

static void
test_readers_share_an_open_file (void)
{
  gchar *path = make_film ();
  StoreBytes *a = file_bytes_new (g_open (path, O_RDONLY | O_CLOEXEC));
  StoreBytes *b = file_bytes_new (g_open (path, O_RDONLY | O_CLOEXEC)), *c;
  gchar *etag;

  g_assert_true (a == b);
  etag = g_strdup (a->etag);
  g_assert_true (g_file_set_contents (path, "other", -1, NULL));
  c = file_bytes_new (g_open (path, O_RDONLY | O_CLOEXEC));
  g_assert_true (c != a);
  g_assert_cmpstr (c->etag, !=, etag);
  g_assert_cmpuint (c->rate, ==, 0);
  store_bytes_unref (a);
  store_bytes_unref (b);
  store_bytes_unref (c);
  g_unlink (path);
  g_free (etag);
  g_free (path);
}

// ---- opening ----

// A store that opens nothing before it may.
typedef struct {
  Store parent;
  GMutex lock;
  GCond changed;
  guint n_opening;
  gboolean may;
} Hanging;

static StoreBytes *
hang (Store *store, const gchar *name, GError **error)
{
  Hanging *self = (Hanging *) store;

  g_mutex_lock (&self->lock);
  self->n_opening++;
  g_cond_broadcast (&self->changed);
  while (!self->may)
    g_cond_wait (&self->changed, &self->lock);
  g_mutex_unlock (&self->lock);
  g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "nothing");
  return NULL;
}

static void
note_free (Store *store)
{
  Hanging *self = (Hanging *) store;

  g_mutex_lock (&self->lock);
  self->n_opening = 0;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

// Waits until `n` titles are being opened; 0: until the store is freed.
static void
wait_for (Hanging *self, guint n)
{
  const gint64 limit = g_get_monotonic_time () + 30 * G_USEC_PER_SEC;

  g_mutex_lock (&self->lock);
  while (self->n_opening != n && g_cond_wait_until (&self->changed, &self->lock, limit))
    ;
  g_assert_cmpuint (self->n_opening, ==, n);
  g_mutex_unlock (&self->lock);
}

static void
test_clients_that_left_a_store_that_hangs_leave_nothing (void)
{
  static const StoreKind hanging_kind = { .open_bytes = hang, .free = note_free };
  static Hanging store;
  HttpOpening *first[2];

  g_mutex_init (&store.lock);
  g_cond_init (&store.changed);
  store_init (&store.parent, &hanging_kind);
  for (guint i = 0; i < 2; i++)
    first[i] = http_opening_new (store_ref (&store.parent), g_strdup ("a"), wake, NULL);
  wait_for (&store, 2);
  for (guint i = 0; i < 1000; i++)
    http_opening_free (http_opening_new (store_ref (&store.parent), g_strdup ("b"), wake, NULL));
  g_assert_true (g_atomic_ref_count_compare (&store.parent.refs, 3));
  for (guint i = 0; i < 2; i++)
    http_opening_free (first[i]);
  g_mutex_lock (&store.lock);
  store.may = TRUE;
  g_cond_broadcast (&store.changed);
  g_mutex_unlock (&store.lock);
  store_unref (&store.parent);
  wait_for (&store, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  signal (SIGPIPE, SIG_IGN);
  g_test_add_func ("/http/durations-of-headers", test_durations_of_headers);
  g_test_add_func ("/http/durations-of-ts", test_durations_of_ts);
  g_test_add_func ("/http/heads", test_heads);
  g_test_add_func ("/http/ranges", test_ranges);
  g_test_add_func ("/http/conditions", test_conditions);
  g_test_add_func ("/http/a-slice-leaves-each-slice-after-a-first-one",
      test_a_slice_leaves_each_slice_after_a_first_one);
  g_test_add_func (
      "/http/a-late-slice-shortens-the-next-waits", test_a_late_slice_shortens_the_next_waits);
  g_test_add_func ("/http/a-reader-that-does-not-read-starves-by-itself",
      test_a_reader_that_does_not_read_starves_by_itself);
  g_test_add_func ("/http/a-range-is-sent-alone", test_a_range_is_sent_alone);
  g_test_add_func ("/http/a-piece-does-not-wait", test_a_piece_does_not_wait_for_its_time);
  g_test_add_func ("/http/pieces-share-the-line", test_pieces_share_the_line);
  g_test_add_func ("/http/pieces-of-an-address", test_an_address_gets_so_many_pieces_at_a_time);
  g_test_add_func ("/http/a-reader-that-left-is-noticed", test_a_reader_that_left_is_noticed);
  g_test_add_func (
      "/http/a-file-that-shrinks-ends-the-answer", test_a_file_that_shrinks_ends_the_answer);
  g_test_add_func ("/http/readers-share-an-open-file", test_readers_share_an_open_file);
  g_test_add_func ("/http/opening", test_clients_that_left_a_store_that_hangs_leave_nothing);
  return g_test_run ();
}
