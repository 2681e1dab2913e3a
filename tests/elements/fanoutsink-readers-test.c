// SPDX-License-Identifier: LGPL-2.1-or-later
// Readers of fanoutsink: joining, delay, sockets, pacing, and refused calls.
#include <string.h>

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <gio/gio.h>
#include <gst/check/gstharness.h>
#include <gst/gst.h>

#define PATIENCE (30 * G_USEC_PER_SEC)
#define FRAME_TICKS 3600

#define CAPS "application/x-rtp,media=video,clock-rate=90000,encoding-name=VP8"

static GstHarness *
make_sink (const gchar *launch, GstElement **sink)
{
  GstHarness *h = gst_harness_new_parse (launch);

  gst_harness_set_src_caps_str (h, CAPS);
  *sink = gst_harness_find_element (h, "fanoutsink");
  return h;
}

// Checks that every packet due to readers was sent or counted as dropped.
static void
finish (GstHarness *h, GstElement *sink)
{
  GstStructure *stats;
  guint64 due, sent, dropped;

  gst_harness_push_event (h, gst_event_new_eos ());
  g_object_get (sink, "fanout-stats", &stats, NULL);
  g_assert_true (gst_structure_get (stats, "packets-due", G_TYPE_UINT64, &due, "packets-sent",
      G_TYPE_UINT64, &sent, "dropped", G_TYPE_UINT64, &dropped, NULL));
  g_assert_cmpuint (due, ==, sent + dropped);
  gst_structure_free (stats);
  gst_object_unref (sink);
  gst_harness_teardown (h);
}

// Makes one packet that is a whole VP8 frame (RFC 7741).
static GstBuffer *
make_frame (guint n, gboolean key)
{
  guint8 *packet = g_malloc0 (100);

  packet[0] = 0x80;
  packet[1] = 0x80 | 96;
  GST_WRITE_UINT16_BE (packet + 2, n);
  GST_WRITE_UINT32_BE (packet + 4, n * FRAME_TICKS);
  packet[12] = 0x10;
  packet[13] = key ? 0 : 1;
  packet[14] = (guint8) n;
  return gst_buffer_new_wrapped (packet, 100);
}

static void
push_frame (GstHarness *h, guint n, gboolean key)
{
  g_assert_cmpint (gst_harness_push (h, make_frame (n, key)), ==, GST_FLOW_OK);
}

static GSocket *
listen_udp (guint16 *port)
{
  GSocket *socket =
      g_socket_new (G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_DATAGRAM, G_SOCKET_PROTOCOL_UDP, NULL);
  GSocketAddress *address = g_inet_socket_address_new_from_string ("0.0.0.0", 0);

  g_assert_true (g_socket_bind (socket, address, FALSE, NULL));
  g_object_unref (address);
  address = g_socket_get_local_address (socket, NULL);
  *port = g_inet_socket_address_get_port (G_INET_SOCKET_ADDRESS (address));
  g_object_unref (address);
  g_socket_set_timeout (socket, 5);
  return socket;
}

typedef struct {
  guint seq;
  guint32 time;
  guint n;
} Got;

static Got
parse (const guint8 *data)
{
  guint8 packet[15] __attribute__ ((aligned (4))); // required by GStreamer's readers

  memcpy (packet, data, sizeof packet);
  return (Got) { GST_READ_UINT16_BE (packet + 2), GST_READ_UINT32_BE (packet + 4), packet[14] };
}

static Got
receive_udp (GSocket *socket)
{
  guint8 packet[200];

  g_assert_cmpint (g_socket_receive (socket, (gchar *) packet, sizeof packet, NULL, NULL), ==, 100);
  return parse (packet);
}

static guint64
get_number (GstElement *sink, gint port, const gchar *field)
{
  GstStructure *stats;
  guint64 value = 0;

  g_signal_emit_by_name (sink, "get-stats", "127.0.0.1", port, &stats);
  g_assert_true (gst_structure_get_uint64 (stats, field, &value));
  gst_structure_free (stats);
  return value;
}

// Returns the sequence number of the oldest join point in the window after 20 frames, of which each
// fifth is a keyframe. `delay` is for set-delay before the first frame.
static guint
oldest_join (const gchar *launch, guint64 delay)
{
  GstElement *sink;
  GstHarness *h = make_sink (launch, &sink);
  GstStructure *plan;
  gboolean ok;
  guint seq;

  g_signal_emit_by_name (sink, "set-delay", "127.0.0.1", 9, delay, &ok);
  for (guint n = 0; n < 20; n++)
    push_frame (h, n, n % 5 == 0);
  g_signal_emit_by_name (sink, "set-delay", "127.0.0.1", 9, G_MAXUINT64, &ok);
  g_signal_emit_by_name (sink, "plan", "127.0.0.1", 9, &plan);
  g_assert_true (gst_structure_get (plan, "seq", G_TYPE_UINT, &seq, NULL));
  gst_structure_free (plan);
  finish (h, sink);
  return seq;
}

// The window keeps older packets only if a property or a signal asks for them.
static void
test_keeps_packets_for_delays (void)
{
  g_assert_cmpuint (oldest_join ("fanoutsink join=keyframe", 0), ==, 15);
  g_assert_cmpuint (oldest_join ("fanoutsink join=keyframe", GST_SECOND), ==, 0);
  g_assert_cmpuint (oldest_join ("fanoutsink join=keyframe window-time=10000000000", 0), ==, 0);
  g_assert_cmpuint (oldest_join ("fanoutsink join=keyframe delay=1000000", 0), ==, 0);
}

// Changes a reader's delay, pauses it and resumes it. Sequence numbers must continue, and
// timestamps must equal those of the live edge.
static void
test_has_its_own_position (void)
{
  GstElement *sink;
  GstHarness *h = make_sink ("fanoutsink window-time=60000000000", &sink);
  GstStructure *plan;
  guint16 port;
  GSocket *socket = listen_udp (&port);
  guint64 delay;
  gboolean ok;
  guint seq;
  Got got;

  // All packets come at once, so the reader is behind by the time that passes until it is added.
  for (guint n = 0; n < 20; n++)
    push_frame (h, n, n % 5 == 0);
  g_signal_emit_by_name (sink, "set-delay", "127.0.0.1", (gint) port, G_MAXUINT64, &ok);
  g_assert_false (ok); // the reader is not added yet
  g_signal_emit_by_name (sink, "plan", "127.0.0.1", (gint) port, &plan);
  g_assert_true (
      gst_structure_get (plan, "seq", G_TYPE_UINT, &seq, "delay", G_TYPE_UINT64, &delay, NULL));
  gst_structure_free (plan);
  g_assert_cmpuint (seq, ==, 0);
  g_signal_emit_by_name (sink, "add", "127.0.0.1", (gint) port);
  for (guint n = 0; n < 20; n++) {
    got = receive_udp (socket);
    g_assert_cmpuint (got.n, ==, n);
    g_assert_cmpuint (got.seq, ==, n);
    if (n == 0)
      g_assert_cmpuint (got.time, ==, (guint32) gst_util_uint64_scale (delay, 90000, GST_SECOND));
  }
  g_assert_cmpuint (get_number (sink, port, "delay"), ==, delay);

  g_signal_emit_by_name (sink, "pause", "127.0.0.1", (gint) port, &ok);
  g_assert_true (ok);
  push_frame (h, 20, TRUE);
  while (get_number (sink, port, "delay") < delay + 50 * GST_MSECOND)
    g_thread_yield ();
  g_signal_emit_by_name (sink, "resume", "127.0.0.1", (gint) port, &ok);
  g_assert_true (ok);
  got = receive_udp (socket);
  g_assert_cmpuint (got.n, ==, 20);
  g_assert_cmpuint (got.seq, ==, 20);
  delay = get_number (sink, port, "delay");
  g_assert_cmpuint (
      got.time - 20 * FRAME_TICKS, >=, gst_util_uint64_scale (delay, 90000, GST_SECOND) - 2);

  // The reader is removed while it is paused, and added again.
  g_signal_emit_by_name (sink, "pause", "127.0.0.1", (gint) port, &ok);
  g_assert_true (ok);
  g_signal_emit_by_name (sink, "remove", "127.0.0.1", (gint) port);
  push_frame (h, 21, FALSE);
  g_signal_emit_by_name (sink, "plan", "127.0.0.1", (gint) port, &plan);
  g_assert_true (gst_structure_get (plan, "seq", G_TYPE_UINT, &seq, NULL));
  gst_structure_free (plan);
  g_assert_cmpuint (seq, ==, 21);
  g_signal_emit_by_name (sink, "add", "127.0.0.1", (gint) port);
  got = receive_udp (socket);
  g_assert_cmpuint (got.n, ==, 21);
  g_assert_cmpuint (got.seq, ==, 21);
  g_assert_cmpuint (get_number (sink, port, "delay"), >, delay);

  // To the live edge.
  g_signal_emit_by_name (sink, "set-delay", "127.0.0.1", (gint) port, (guint64) 0, &ok);
  g_assert_true (ok);
  g_signal_emit_by_name (sink, "plan", "127.0.0.1", (gint) port, &plan);
  g_assert_true (
      gst_structure_get (plan, "seq", G_TYPE_UINT, &seq, "delay", G_TYPE_UINT64, &delay, NULL));
  gst_structure_free (plan);
  g_assert_cmpuint (delay, ==, 0);
  g_assert_cmpuint (get_number (sink, port, "delay"), ==, 0);
  for (guint n = 20; n < 22; n++) {
    got = receive_udp (socket);
    g_assert_cmpuint (got.n, ==, n);
    g_assert_cmpuint (got.seq, ==, n + 2);
  }
  push_frame (h, 22, FALSE);
  got = receive_udp (socket);
  g_assert_cmpuint (got.seq, ==, 24);
  g_assert_cmpuint (got.time, ==, 22 * FRAME_TICKS);

  g_signal_emit_by_name (sink, "pause", "127.0.0.1", 1, &ok);
  g_assert_false (ok);
  g_signal_emit_by_name (sink, "add", "239.1.2.3", 5004);
  g_signal_emit_by_name (sink, "set-delay", "239.1.2.3", 5004, (guint64) GST_SECOND, &ok);
  g_assert_false (ok);
  g_object_unref (socket);
  finish (h, sink);
}

// Wherever `delay` stands in a launch line, the reader gets the first packet that long after it
// arrived.
static void
test_a_delay_from_the_first_packet_on (gconstpointer order)
{
  const gint64 delay = 300 * GST_MSECOND;
  guint16 port;
  GSocket *socket = listen_udp (&port);
  gchar *launch = g_strdup_printf (order, (guint) port);
  GstElement *sink;
  GstHarness *h = make_sink (launch, &sink);
  gint64 pushed_at = g_get_monotonic_time ();
  Got got;

  push_frame (h, 0, TRUE);
  push_frame (h, 1, FALSE);
  for (guint n = 0; n < 2; n++) {
    got = receive_udp (socket);
    g_assert_cmpuint (got.n, ==, n);
    g_assert_cmpuint (got.time, ==, n * FRAME_TICKS + 27000);
  }
  g_assert_cmpint ((g_get_monotonic_time () - pushed_at) * 1000, >=, delay);
  g_assert_cmpuint (get_number (sink, port, "delay"), ==, delay);

  g_free (launch);
  g_object_unref (socket);
  finish (h, sink);
}

// The same for one reader, by an action before or after it is added.
static void
test_a_reader_s_delay_from_the_first_packet_on (gconstpointer added_first)
{
  const guint64 delay = 300 * GST_MSECOND;
  guint16 port;
  GSocket *socket = listen_udp (&port);
  GstElement *sink;
  GstHarness *h = make_sink ("fanoutsink", &sink);
  gboolean added;
  gint64 pushed_at;
  Got got;

  if (added_first)
    g_signal_emit_by_name (sink, "add", "127.0.0.1", (gint) port);
  g_signal_emit_by_name (sink, "set-delay", "127.0.0.1", (gint) port, delay, &added);
  g_assert_cmpint (added, ==, added_first != NULL);
  if (!added_first)
    g_signal_emit_by_name (sink, "add", "127.0.0.1", (gint) port);
  pushed_at = g_get_monotonic_time ();
  push_frame (h, 0, TRUE);
  got = receive_udp (socket);
  g_assert_cmpuint (got.time, ==, 27000);
  g_assert_cmpint ((g_get_monotonic_time () - pushed_at) * 1000, >=, (gint64) delay);
  g_assert_cmpuint (get_number (sink, port, "delay"), ==, delay);

  // To the live edge, still before the next packet.
  g_signal_emit_by_name (sink, "set-delay", "127.0.0.1", (gint) port, (guint64) 0, &added);
  g_assert_true (added);
  g_assert_cmpuint (get_number (sink, port, "delay"), ==, 0);
  g_object_unref (socket);
  finish (h, sink);
}

static void
test_joins_at_the_keyframe (void)
{
  GstElement *sink;
  GstHarness *h = make_sink ("fanoutsink join=keyframe", &sink);
  GstStructure *plan;
  guint16 port;
  GSocket *socket = listen_udp (&port);
  guint seq, time, last = 0;
  Got got;

  g_signal_emit_by_name (sink, "plan", "127.0.0.1", (gint) port, &plan);
  g_assert_null (plan);
  for (guint n = 0; n < 20; n++)
    push_frame (h, n, n == 0 || n == 5);

  g_signal_emit_by_name (sink, "plan", "127.0.0.1", (gint) port, &plan);
  g_assert_true (
      gst_structure_get (plan, "seq", G_TYPE_UINT, &seq, "rtptime", G_TYPE_UINT, &time, NULL));
  gst_structure_free (plan);
  g_assert_cmpuint (seq, ==, 5);
  g_assert_cmpuint (time, ==, 19 * FRAME_TICKS);

  // A keyframe that arrives between `plan` and `add` does not change the plan.
  push_frame (h, 20, TRUE);
  g_signal_emit_by_name (sink, "add", "127.0.0.1", (gint) port);
  for (guint n = 5; n < 40; n++) {
    if (n > 20)
      push_frame (h, n, FALSE);
    got = receive_udp (socket);
    g_assert_cmpuint (got.n, ==, n);
    g_assert_cmpuint (got.seq, ==, n);
    if (n == 5)
      g_assert_cmpuint (got.time, ==, time);
    g_assert_cmpuint (got.time, >, last);
    g_assert_cmpuint (got.time, >=, n * FRAME_TICKS);
    last = got.time;
  }
  // The reader has reached the live edge, and gets the stream's own timestamps.
  g_assert_cmpuint (last, ==, 39 * FRAME_TICKS);

  g_object_unref (socket);
  finish (h, sink);
}

// Buffers that say that they arrived 800 ms ago and less are caught up with.
static void
test_catches_up_with_what_has_waited (void)
{
  GstElement *sink;
  GstHarness *h = make_sink ("fanoutsink join=keyframe catch-up-rate=4", &sink);
  GstCaps *caps = gst_caps_new_empty_simple ("timestamp/x-weir-arrival");
  const gint64 now = g_get_monotonic_time ();
  guint16 port;
  GSocket *socket = listen_udp (&port);

  for (guint n = 0; n < 20; n++) {
    GstBuffer *buffer = make_frame (n, n == 0);

    gst_buffer_add_reference_timestamp_meta (
        buffer, caps, (GstClockTime) (now - (20 - n) * 40000) * GST_USECOND, GST_CLOCK_TIME_NONE);
    g_assert_cmpint (gst_harness_push (h, buffer), ==, GST_FLOW_OK);
  }
  g_signal_emit_by_name (sink, "add", "127.0.0.1", (gint) port);
  for (guint n = 0; n < 20; n++)
    g_assert_cmpuint (receive_udp (socket).n, ==, n);
  // At four times the speed, the last one leaves 190 ms after the first.
  g_assert_cmpint (g_get_monotonic_time () - now, >=, 180000);
  push_frame (h, 20, FALSE);
  g_assert_cmpuint (receive_udp (socket).n, ==, 20);

  gst_caps_unref (caps);
  g_object_unref (socket);
  finish (h, sink);
}

static void
test_joins_live (void)
{
  GstElement *sink;
  GstHarness *h = make_sink ("fanoutsink", &sink);
  guint16 port;
  GSocket *socket = listen_udp (&port);

  for (guint n = 0; n < 20; n++)
    push_frame (h, n, n == 0);
  g_signal_emit_by_name (sink, "add", "127.0.0.1", (gint) port);
  push_frame (h, 20, FALSE);
  g_assert_cmpuint (receive_udp (socket).n, ==, 20);

  g_object_unref (socket);
  finish (h, sink);
}

static void
test_delay_keeps_the_timestamps (void)
{
  GstElement *sink;
  GstHarness *h = make_sink ("fanoutsink join=keyframe catch-up=delay", &sink);
  guint16 port;
  GSocket *socket = listen_udp (&port);

  for (guint n = 0; n < 20; n++)
    push_frame (h, n, n == 3);
  g_signal_emit_by_name (sink, "add", "127.0.0.1", (gint) port);
  for (guint n = 3; n < 20; n++) {
    Got got = receive_udp (socket);

    g_assert_cmpuint (got.n, ==, n);
    g_assert_cmpuint (got.time, ==, n * FRAME_TICKS);
  }

  g_object_unref (socket);
  finish (h, sink);
}

// Opens a TCP connection and returns both ends.
static void
connect_tcp (GSocket **server, GSocket **client)
{
  GSocket *listener =
      g_socket_new (G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, NULL);
  GSocketAddress *address = g_inet_socket_address_new_from_string ("127.0.0.1", 0);

  *client = g_socket_new (G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, NULL);
  g_assert_true (g_socket_bind (listener, address, TRUE, NULL));
  g_object_unref (address);
  g_assert_true (g_socket_listen (listener, NULL));
  address = g_socket_get_local_address (listener, NULL);
  g_assert_true (g_socket_connect (*client, address, NULL, NULL));
  g_object_unref (address);
  *server = g_socket_accept (listener, NULL, NULL);
  g_assert_nonnull (*server);
  g_socket_set_timeout (*client, 5);
  g_object_unref (listener);
}

static void
read_all (GSocket *socket, guint8 *data, gsize len)
{
  while (len > 0) {
    gssize n = g_socket_receive (socket, (gchar *) data, len, NULL, NULL);

    g_assert_cmpint (n, >, 0);
    data += n;
    len -= (gsize) n;
  }
}

static void
count_removed (GstElement *sink, const gchar *token, gint channel, gint *n)
{
  g_assert_cmpint (channel, ==, 7);
  g_atomic_int_inc (n);
}

typedef struct {
  const gchar *path;
  const gchar *framing;
  guint8 header[4];
  gsize header_len;
} Framing;

static const Framing framings[] = {
  { "interleaved", "interleaved", { '$', 7, 0, 100 }, 4 },
  { "rfc4571", "rfc4571", { 0, 100 }, 2 },
  { "none", "none", { 0 }, 0 },
};

static gint
framing_value (GstElement *sink, const gchar *nick)
{
  GSignalQuery query;
  GEnumClass *klass;
  gint value;

  g_signal_query (g_signal_lookup ("add-socket", G_OBJECT_TYPE (sink)), &query);
  klass = g_type_class_ref (query.param_types[1]);
  value = g_enum_get_value_by_nick (klass, nick)->value;
  g_type_class_unref (klass);
  return value;
}

// The last warning that the sink logged.
static GMutex logged_lock;
static gchar *logged;

static void
note_warning (GstDebugCategory *category, GstDebugLevel level, const gchar *file,
    const gchar *function, gint line, GObject *object, GstDebugMessage *message, gpointer unused)
{
  if (level != GST_LEVEL_WARNING
      || g_strcmp0 (gst_debug_category_get_name (category), "fanoutsink"))
    return;
  g_mutex_lock (&logged_lock);
  g_free (logged);
  logged = g_strdup (gst_debug_message_get (message));
  g_mutex_unlock (&logged_lock);
}

static gboolean
has_logged (const gchar *pattern)
{
  gboolean found;

  g_mutex_lock (&logged_lock);
  found = logged && g_pattern_match_simple (pattern, logged);
  g_mutex_unlock (&logged_lock);
  return found;
}

// A reader of a transport stream begins at the newest buffer that is no delta unit.
static void
test_a_transport_stream_is_joined (void)
{
  GstHarness *h = gst_harness_new_parse ("fanoutsink join=keyframe");
  GstElement *sink = gst_harness_find_element (h, "fanoutsink");
  gint value = framing_value (sink, "none");
  GSocket *server, *client;
  guint8 got[188];
  gchar *token;

  gst_harness_set_src_caps_str (h, "video/mpegts,systemstream=true,packetsize=188");
  connect_tcp (&server, &client);
  for (guint n = 0; n < 30; n++) {
    GstBuffer *buffer = gst_buffer_new_allocate (NULL, sizeof got, NULL);

    gst_buffer_memset (buffer, 0, 0x47, 1);
    gst_buffer_memset (buffer, 1, (guint8) n, sizeof got - 1);
    if (n % 10 != 3)
      GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_DELTA_UNIT);
    g_assert_cmpint (gst_harness_push (h, buffer), ==, GST_FLOW_OK);
    if (n == 26)
      g_signal_emit_by_name (sink, "add-socket", server, value, 0, &token);
  }
  for (guint n = 23; n < 30; n++) {
    read_all (client, got, sizeof got);
    g_assert_cmphex (got[0], ==, 0x47);
    g_assert_cmpuint (got[1], ==, n);
  }

  g_free (token);
  g_object_unref (client);
  g_object_unref (server);
  finish (h, sink);
}

static void
test_a_thinned_reader_is_logged (void)
{
  GstElement *sink;
  GstHarness *h = make_sink ("fanoutsink", &sink);
  gint64 deadline = g_get_monotonic_time () + PATIENCE;
  GSocket *server, *client;
  GSocketAddress *address;
  gchar *token, *pattern;
  guint8 got[2000];

  connect_tcp (&server, &client);
  g_socket_set_blocking (client, FALSE);
  g_socket_set_option (client, SOL_SOCKET, SO_RCVBUF, 4096, NULL);
  address = g_socket_get_local_address (client, NULL);
  pattern = g_strdup_printf ("reader 127.0.0.1:%d lags by * ms and now gets *",
      g_inet_socket_address_get_port (G_INET_SOCKET_ADDRESS (address)));
  gst_debug_add_log_function (note_warning, NULL, NULL);
  gst_debug_set_threshold_for_name ("fanoutsink", GST_LEVEL_WARNING);
  g_signal_emit_by_name (
      sink, "add-socket", server, framing_value (sink, "interleaved"), 7, &token);
  for (guint n = 0; !has_logged (pattern); n++) {
    GstStructure *stats;
    guint64 lag;

    g_assert_cmpint (g_get_monotonic_time (), <, deadline);
    push_frame (h, n, TRUE);
    g_signal_emit_by_name (sink, "get-stats", token, 7, &stats);
    g_assert_true (gst_structure_get_uint64 (stats, "lag", &lag));
    gst_structure_free (stats);
    // The reader takes a little, and late.
    if (lag > 300 * GST_MSECOND)
      g_socket_receive (client, (gchar *) got, sizeof got, NULL, NULL);
    else if (lag > 0)
      g_usleep (1000);
  }
  gst_debug_unset_threshold_for_name ("fanoutsink");
  gst_debug_remove_log_function (note_warning);

  g_free (pattern);
  g_free (token);
  g_object_unref (address);
  g_object_unref (client);
  g_object_unref (server);
  finish (h, sink);
}

static void
test_socket (gconstpointer data)
{
  const Framing *framing = data;
  GstElement *sink;
  GstHarness *h = make_sink ("fanoutsink", &sink);
  gint value = framing_value (sink, framing->framing);
  GSocket *server, *client;
  GstStructure *stats;
  guint8 got[104];
  gchar *token;
  gint n_removed = 0;
  gint64 deadline;
  gboolean set;

  connect_tcp (&server, &client);
  g_signal_connect (sink, "client-removed", G_CALLBACK (count_removed), &n_removed);
  g_signal_emit_by_name (sink, "add-socket", server, value, 7, &token);
  g_assert_nonnull (token);
  for (guint n = 0; n < 50; n++)
    push_frame (h, n, n % 10 == 0);
  for (guint n = 0; n < 50; n++) {
    read_all (client, got, framing->header_len + 100);
    g_assert_cmpint (memcmp (got, framing->header, framing->header_len), ==, 0);
    g_assert_cmpuint (parse (got + framing->header_len).n, ==, n);
  }
  g_signal_emit_by_name (sink, "get-stats", token, 7, &stats);
  g_assert_cmpstr (gst_structure_get_string (stats, "state"), ==, "ok");
  gst_structure_free (stats);
  g_signal_emit_by_name (sink, "restrict", token, 7, 3, &set);
  g_assert_true (set);
  g_signal_emit_by_name (sink, "get-stats", token, 7, &stats);
  g_assert_cmpstr (gst_structure_get_string (stats, "state"), ==, "keyframes");
  gst_structure_free (stats);
  g_signal_emit_by_name (sink, "restrict", token, 7, 0, &set);
  g_assert_true (set);
  g_signal_emit_by_name (sink, "restrict", token, 7, 4, &set);
  g_assert_false (set);
  g_signal_emit_by_name (sink, "restrict", token, 6, 1, &set);
  g_assert_false (set);
  g_signal_emit_by_name (sink, "set-priority", token, 7, 1, &set);
  g_assert_true (set);
  g_signal_emit_by_name (sink, "set-priority", token, 7, 8, &set);
  g_assert_false (set);
  g_signal_emit_by_name (sink, "set-priority", token, 6, 1, &set);
  g_assert_false (set);

  // The reader leaves, which the sink notices when it sends.
  g_socket_close (client, NULL);
  deadline = g_get_monotonic_time () + PATIENCE;
  for (guint n = 50; g_atomic_int_get (&n_removed) == 0; n++) {
    g_assert_cmpint (g_get_monotonic_time (), <, deadline);
    push_frame (h, n % 256, FALSE);
    g_usleep (1000);
  }
  g_assert_cmpint (n_removed, ==, 1);

  g_free (token);
  g_object_unref (client);
  g_object_unref (server);
  finish (h, sink);
}

// Returns the kernel's rate limit in bytes per second.
static guint64
pacing_rate (GSocket *socket)
{
  unsigned long rate = 0;
  socklen_t len = sizeof rate;

  g_assert_cmpint (
      getsockopt (g_socket_get_fd (socket), SOL_SOCKET, SO_MAX_PACING_RATE, &rate, &len), ==, 0);
  return rate;
}

static void
set_pacing_rate (GstElement *sink, guint64 bits_per_s)
{
  guint64 now = 0;

  g_object_set (sink, "max-pacing-rate", bits_per_s, NULL);
  g_object_get (sink, "max-pacing-rate", &now, NULL);
  g_assert_cmpuint (now, ==, bits_per_s);
}

// The limit holds for readers that are added before and after it is set.
static void
test_connections_are_paced (void)
{
  GstElement *sink;
  GstHarness *h = make_sink ("fanoutsink", &sink);
  gint value = framing_value (sink, "interleaved");
  GSocket *server[2], *client[2];
  gchar *token[2];

  for (guint i = 0; i < 2; i++)
    connect_tcp (&server[i], &client[i]);
  g_signal_emit_by_name (sink, "add-socket", server[0], value, 0, &token[0]);
  g_assert_cmpuint (pacing_rate (server[0]), ==, G_MAXULONG);
  set_pacing_rate (sink, 50000000000); // more than 32 bits of bytes
  g_signal_emit_by_name (sink, "add-socket", server[1], value, 0, &token[1]);
  for (guint i = 0; i < 2; i++)
    g_assert_cmpuint (pacing_rate (server[i]), ==, 6250000000);
  set_pacing_rate (sink, 8000000);
  for (guint i = 0; i < 2; i++)
    g_assert_cmpuint (pacing_rate (server[i]), ==, 1000000);
  set_pacing_rate (sink, 7); // the smallest limit
  g_assert_cmpuint (pacing_rate (server[0]), ==, 1);
  set_pacing_rate (sink, 0);
  for (guint i = 0; i < 2; i++)
    g_assert_cmpuint (pacing_rate (server[i]), ==, G_MAXULONG);

  for (guint i = 0; i < 2; i++) {
    g_free (token[i]);
    g_object_unref (client[i]);
    g_object_unref (server[i]);
  }
  finish (h, sink);
}

// Two sinks share a connection of the program, which outlives both.
static void
test_a_shared_connection_is_paced (void)
{
  GstElement *sink, *audio;
  GstHarness *h = make_sink ("fanoutsink max-pacing-rate=8000000", &sink);
  GstHarness *h_audio = make_sink ("fanoutsink", &audio);
  GSocket *server, *client;
  GObject *connection;
  gchar *token;

  connect_tcp (&server, &client);
  connection = g_object_new (g_type_from_name ("WeirConnection"), "socket", server, NULL);
  g_object_get (connection, "token", &token, NULL);
  g_signal_emit_by_name (sink, "add", token, 0);
  g_signal_emit_by_name (audio, "add", token, 2);
  g_assert_cmpuint (pacing_rate (server), ==, 1000000);
  g_signal_emit_by_name (audio, "remove", token, 2);
  g_assert_cmpuint (pacing_rate (server), ==, 1000000);
  g_signal_emit_by_name (sink, "remove", token, 0);
  g_assert_cmpuint (pacing_rate (server), ==, G_MAXULONG);

  g_object_unref (connection);
  g_free (token);
  g_object_unref (client);
  g_object_unref (server);
  finish (h_audio, audio);
  finish (h, sink);
}

// With a rate limit of 8 bits per second the kernel holds a reader's packets back; a reader without
// a limit gets all of them.
static void
test_pacing_holds_back (void)
{
  GstElement *paced, *free_running;
  GstHarness *h = make_sink ("fanoutsink max-pacing-rate=8", &paced);
  GstHarness *h_free = make_sink ("fanoutsink", &free_running);
  gint value = framing_value (paced, "none");
  GSocket *server[2], *client[2];
  struct tcp_info info = { 0 };
  socklen_t len = sizeof info;
  guint8 got[100];
  gint unsent[2];
  gchar *token;

  for (guint i = 0; i < 2; i++) {
    connect_tcp (&server[i], &client[i]);
    g_signal_emit_by_name (
        i == 0 ? paced : free_running, "add-socket", server[i], value, 0, &token);
    g_free (token);
  }
  for (guint n = 0; n < 50; n++) {
    push_frame (h, n, n == 0);
    push_frame (h_free, n, n == 0);
    read_all (client[1], got, sizeof got);
    g_socket_receive_with_blocking (client[0], (gchar *) got, sizeof got, FALSE, NULL, NULL);
  }
  gst_harness_push_event (h, gst_event_new_eos ());
  for (guint i = 0; i < 2; i++)
    g_assert_cmpint (ioctl (g_socket_get_fd (server[i]), SIOCOUTQNSD, &unsent[i]), ==, 0);
  g_assert_cmpint (unsent[0], >, 0);
  g_assert_cmpint (unsent[1], ==, 0);
  g_assert_cmpint (
      getsockopt (g_socket_get_fd (server[0]), IPPROTO_TCP, TCP_INFO, &info, &len), ==, 0);
  g_assert_cmpuint (info.tcpi_pacing_rate, ==, 1);

  for (guint i = 0; i < 2; i++) {
    g_object_unref (client[i]);
    g_object_unref (server[i]);
  }
  finish (h_free, free_running);
  finish (h, paced);
}

// With sockets that the sink opens, and with given ones.
static void
test_udp_is_paced (gconstpointer given)
{
  GstElement *sink = gst_element_factory_make ("fanoutsink", NULL);
  const gchar *const used[] = { "used-socket", "used-socket-v6" };
  GSocket *sockets[2];

  gst_object_ref_sink (sink);
  set_pacing_rate (sink, 8000000);
  if (given) {
    for (guint i = 0; i < 2; i++)
      sockets[i] = g_socket_new (i == 0 ? G_SOCKET_FAMILY_IPV4 : G_SOCKET_FAMILY_IPV6,
          G_SOCKET_TYPE_DATAGRAM, G_SOCKET_PROTOCOL_UDP, NULL);
    g_object_set (sink, "socket", sockets[0], "socket-v6", sockets[1], NULL);
    for (guint i = 0; i < 2; i++)
      g_clear_object (&sockets[i]);
  }
  g_assert_cmpint (gst_element_set_state (sink, GST_STATE_READY), ==, GST_STATE_CHANGE_SUCCESS);
  for (guint i = 0; i < 2; i++)
    g_object_get (sink, used[i], &sockets[i], NULL);
  g_assert_nonnull (sockets[0]);
  // A machine without IPv6 has only one.
  for (guint i = 0; i < 2 && sockets[i]; i++)
    g_assert_cmpuint (pacing_rate (sockets[i]), ==, 1000000);
  set_pacing_rate (sink, 4000000);
  for (guint i = 0; i < 2 && sockets[i]; i++)
    g_assert_cmpuint (pacing_rate (sockets[i]), ==, 500000);
  set_pacing_rate (sink, 0);
  for (guint i = 0; i < 2 && sockets[i]; i++) {
    g_assert_cmpuint (pacing_rate (sockets[i]), ==, G_MAXULONG);
    g_object_unref (sockets[i]);
  }
  gst_element_set_state (sink, GST_STATE_NULL);
  gst_object_unref (sink);
}

static void
test_removing_closes_the_socket (void)
{
  GstElement *sink;
  GstHarness *h = make_sink ("fanoutsink", &sink);
  gint value = framing_value (sink, "interleaved");
  GSocket *server, *client;
  gchar *token, byte;

  connect_tcp (&server, &client);
  g_signal_emit_by_name (sink, "add-socket", server, value, 0, &token);
  g_signal_emit_by_name (sink, "remove", token, 0);
  g_assert_cmpint (g_socket_receive (client, &byte, 1, NULL, NULL), ==, 0);

  g_free (token);
  g_object_unref (client);
  g_object_unref (server);
  finish (h, sink);
}

static guint
count_readers (GstElement *sink)
{
  GstStructure *stats;
  guint n;

  g_object_get (sink, "fanout-stats", &stats, NULL);
  g_assert_true (gst_structure_get_uint (stats, "readers", &n));
  gst_structure_free (stats);
  return n;
}

// A duplicate of the file descriptor counts as the same socket.
static void
test_a_socket_has_one_writer (void)
{
  GstElement *sink;
  GstHarness *h = make_sink ("fanoutsink", &sink);
  gint value = framing_value (sink, "interleaved");
  GSocket *server, *client, *same;
  gchar *token, *again;

  connect_tcp (&server, &client);
  same = g_socket_new_from_fd (dup (g_socket_get_fd (server)), NULL);
  g_signal_emit_by_name (sink, "add-socket", server, value, 0, &token);
  g_assert_nonnull (token);
  for (gint channel = 0; channel < 3; channel++) {
    g_signal_emit_by_name (
        sink, "add-socket", channel == 2 ? same : server, value, channel, &again);
    g_assert_null (again);
  }
  // Another channel of the connection is another reader, which is added by the token.
  g_signal_emit_by_name (sink, "add", token, 2);
  g_assert_cmpuint (count_readers (sink), ==, 2);
  g_signal_emit_by_name (sink, "remove", token, 2);
  g_signal_emit_by_name (sink, "remove", token, 0);
  g_assert_cmpuint (count_readers (sink), ==, 0);

  g_free (token);
  g_object_unref (same);
  g_object_unref (client);
  g_object_unref (server);
  finish (h, sink);
}

static void
set_processors (const cpu_set_t *set)
{
  GDir *tasks = g_dir_open ("/proc/self/task", 0, NULL);
  const gchar *task;

  while ((task = g_dir_read_name (tasks)))
    sched_setaffinity (atoi (task), sizeof *set, set);
  g_dir_close (tasks);
}

// Restricts the process to one processor, and lets other threads run before this one. Returns the
// previous set of processors.
static cpu_set_t
let_others_go_first (void)
{
  struct sched_param param = { 0 };
  cpu_set_t all, one;

  g_assert_cmpint (sched_getaffinity (0, sizeof all, &all), ==, 0);
  CPU_ZERO (&one);
  for (gint cpu = 0; CPU_COUNT (&one) == 0; cpu++) {
    if (CPU_ISSET (cpu, &all))
      CPU_SET (cpu, &one);
  }
  set_processors (&one);
  g_assert_cmpint (sched_setscheduler (0, SCHED_IDLE, &param), ==, 0);
  return all;
}

static void
allow_processors (const cpu_set_t *all)
{
  struct sched_param param = { 0 };

  sched_setscheduler (0, SCHED_OTHER, &param);
  set_processors (all);
}

// The connection breaks while the reader is added and the window has packets for it.
static void
test_a_socket_that_breaks_as_it_is_added (void)
{
  GstElement *sink;
  GstHarness *h = make_sink ("fanoutsink inline-readers=0 join=keyframe", &sink);
  gint value = framing_value (sink, "interleaved");
  gint64 deadline;
  cpu_set_t all;

  for (guint n = 0; n < 50; n++)
    push_frame (h, n, n == 0);
  all = let_others_go_first ();
  for (guint n = 0; n < 500; n++) {
    GSocket *socket;
    gchar *token;
    int fds[2];

    // The first write fails, because the peer is closed.
    g_assert_cmpint (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), ==, 0);
    close (fds[1]);
    socket = g_socket_new_from_fd (fds[0], NULL);
    g_signal_emit_by_name (sink, "add-socket", socket, value, 0, &token);
    g_free (token);
    g_object_unref (socket);
  }
  allow_processors (&all);
  deadline = g_get_monotonic_time () + PATIENCE;
  for (guint n = 50; count_readers (sink) > 0; n++) {
    g_assert_cmpint (g_get_monotonic_time (), <, deadline);
    push_frame (h, n % 256, FALSE);
    g_usleep (1000);
  }
  finish (h, sink);
}

static void
test_refusals (void)
{
  GstElement *sink;
  GstHarness *h = make_sink ("fanoutsink", &sink);
  gint value = framing_value (sink, "none");
  GSocket *unconnected =
      g_socket_new (G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, NULL);
  guint16 port;
  GSocket *udp = listen_udp (&port);
  GSocket *server, *client;
  gchar *token;

  g_signal_emit_by_name (sink, "add-socket", unconnected, value, 0, &token);
  g_assert_null (token);
  g_signal_emit_by_name (sink, "add-socket", udp, value, 0, &token);
  g_assert_null (token);
  g_signal_emit_by_name (sink, "add-socket", NULL, value, 0, &token);
  g_assert_null (token);
  connect_tcp (&server, &client);
  g_signal_emit_by_name (sink, "add-socket", server, value, 256, &token);
  g_assert_null (token);
  for (gint framing = -1; framing < 8; framing += framing < 0 ? 4 : 1) {
    g_signal_emit_by_name (sink, "add-socket", server, framing, 0, &token);
    g_assert_null (token);
  }
  // A string in the form of a token is not looked up as a host name.
  g_signal_emit_by_name (sink, "add", "0123456789abcdef0123456789abcdef", 0);

  g_object_unref (server);
  g_object_unref (client);
  g_object_unref (udp);
  g_object_unref (unconnected);
  finish (h, sink);
}

static void
expect_logged (const gchar *pattern)
{
  g_test_message ("%s", pattern);
  g_assert_true (has_logged (pattern));
}

static void
test_refusals_name_the_argument (void)
{
  GstElement *sink;
  GstHarness *h = make_sink ("fanoutsink", &sink);
  GSocket *unconnected =
      g_socket_new (G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, NULL);
  GstStructure *stats;
  gchar *token;
  gboolean ok;

  gst_debug_add_log_function (note_warning, NULL, NULL);
  gst_debug_set_threshold_for_name ("fanoutsink", GST_LEVEL_WARNING);
  g_signal_emit_by_name (sink, "add", NULL, 5004);
  expect_logged ("add: host is missing");
  g_signal_emit_by_name (sink, "add", "127.0.0.1", 65536);
  expect_logged ("add: 127.0.0.1 port 65536: port must be from 1 to 65535");
  g_signal_emit_by_name (sink, "remove", "127.0.0.1", 5004);
  expect_logged ("remove: no reader 127.0.0.1 port 5004");
  g_signal_emit_by_name (sink, "get-stats", "127.0.0.1", 5004, &stats);
  expect_logged ("get-stats: no reader 127.0.0.1 port 5004");
  gst_structure_free (stats);
  g_signal_emit_by_name (sink, "set-priority", "127.0.0.1", 5004, 1, &ok);
  expect_logged ("set-priority: no reader 127.0.0.1 port 5004");
  g_signal_emit_by_name (sink, "set-priority", "127.0.0.1", 5004, 8, &ok);
  expect_logged ("set-priority: priority must be from 0 to 7, not 8");
  g_signal_emit_by_name (sink, "set-layers", NULL, 5004, 0, 0, 0, &ok);
  expect_logged ("set-layers: host is missing");
  g_signal_emit_by_name (sink, "set-layers", "127.0.0.1", 5004, 0, 16, 0, &ok);
  expect_logged ("set-layers: quality must be from -1 to 15, not 16");
  g_signal_emit_by_name (sink, "set-delay", NULL, 5004, G_GUINT64_CONSTANT (0), &ok);
  expect_logged ("set-delay: host is missing");
  g_object_set (sink, "auto-multicast", FALSE, NULL);
  g_signal_emit_by_name (sink, "add", "239.255.0.1", 5004);
  g_signal_emit_by_name (sink, "pause", "239.255.0.1", 5004, &ok);
  expect_logged ("pause: 239.255.0.1 port 5004: a multicast group is always at the live edge");
  g_signal_emit_by_name (sink, "resume", "127.0.0.1", 5004, &ok);
  expect_logged ("resume: no reader 127.0.0.1 port 5004");
  g_signal_emit_by_name (sink, "add-socket", NULL, 0, 0, &token);
  expect_logged ("add-socket: socket is missing");
  g_signal_emit_by_name (sink, "add-socket", unconnected, 3, 0, &token);
  expect_logged ("add-socket: framing must be from 0 to 2, not 3");
  g_signal_emit_by_name (sink, "add-socket", unconnected, 0, 0, &token);
  expect_logged ("add-socket: socket is not a connected stream socket");
  gst_debug_unset_threshold_for_name ("fanoutsink");
  gst_debug_remove_log_function (note_warning);
  g_object_unref (unconnected);
  finish (h, sink);
}

static void
test_a_small_window_is_refused (void)
{
  GstElement *sink = gst_element_factory_make ("fanoutsink", NULL);
  GstBus *bus = gst_bus_new ();
  GstMessage *message;
  GError *error = NULL;

  gst_object_ref_sink (sink);
  gst_element_set_bus (sink, bus);
  g_object_set (sink, "window-bytes", (guint64) 1000, NULL);
  g_assert_cmpint (gst_element_set_state (sink, GST_STATE_READY), ==, GST_STATE_CHANGE_FAILURE);
  message = gst_bus_pop_filtered (bus, GST_MESSAGE_ERROR);
  g_assert_nonnull (message);
  gst_message_parse_error (message, &error, NULL);
  g_assert_nonnull (strstr (error->message, "window-bytes=1000 may not hold a frame"));
  g_error_free (error);
  gst_message_unref (message);
  gst_element_set_state (sink, GST_STATE_NULL);
  gst_element_set_bus (sink, NULL);
  gst_object_unref (bus);
  gst_object_unref (sink);
}

// An IPv6-only socket, which this `bind-address` opens, cannot send to IPv4 readers.
static void
test_failed_sends_are_reported (gconstpointer launch)
{
  GSocket *probe =
      g_socket_new (G_SOCKET_FAMILY_IPV6, G_SOCKET_TYPE_DATAGRAM, G_SOCKET_PROTOCOL_UDP, NULL);
  GSocketAddress *loopback = g_inet_socket_address_new_from_string ("::1", 0);
  gboolean has_ipv6 = probe && g_socket_bind (probe, loopback, FALSE, NULL);
  GstElement *sink;
  GstHarness *h;
  GstBus *bus;
  GstMessage *message;
  GError *err;
  gchar *debug;

  g_clear_object (&probe);
  g_object_unref (loopback);
  if (!has_ipv6) {
    g_test_skip ("this machine has no IPv6");
    return;
  }
  h = make_sink (launch, &sink);
  bus = gst_bus_new ();
  gst_element_set_bus (sink, bus);
  g_signal_emit_by_name (sink, "add", "127.0.0.1", 5004);
  g_signal_emit_by_name (sink, "add", "127.0.0.1", 5006);
  for (guint n = 0; n < 20; n++)
    push_frame (h, n, n == 0);
  gst_harness_push_event (h, gst_event_new_eos ());
  g_assert_cmpuint (get_number (sink, 5004, "dropped-error"), ==, 20);
  g_assert_cmpuint (get_number (sink, 5006, "dropped-error"), ==, 20);

  // One message for all packets.
  message = gst_bus_pop_filtered (bus, GST_MESSAGE_WARNING);
  g_assert_nonnull (message);
  gst_message_parse_warning (message, &err, &debug);
  g_assert_true (g_error_matches (err, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_WRITE));
  g_assert_nonnull (strstr (debug, "127.0.0.1 port 500"));
  g_assert_nonnull (strstr (debug, g_strerror (ENETUNREACH)));
  g_error_free (err);
  g_free (debug);
  gst_message_unref (message);
  g_assert_null (gst_bus_pop_filtered (bus, GST_MESSAGE_WARNING));

  gst_element_set_bus (sink, NULL);
  gst_object_unref (bus);
  finish (h, sink);
}

static void
test_a_small_window_is_refused_while_playing (void)
{
  GstElement *sink;
  GstHarness *h = make_sink ("fanoutsink window-bytes=1000000", &sink);
  GstBus *bus = gst_bus_new ();
  GstMessage *message;
  guint64 bytes;
  gchar *debug;

  gst_element_set_bus (sink, bus);
  g_object_set (sink, "window-bytes", (guint64) 1000, NULL);
  message = gst_bus_pop_filtered (bus, GST_MESSAGE_WARNING);
  g_assert_nonnull (message);
  gst_message_parse_warning (message, NULL, &debug);
  g_assert_nonnull (
      strstr (debug, "window-bytes=1000 may not hold a frame; the minimum is 262144"));
  g_free (debug);
  gst_message_unref (message);
  g_object_get (sink, "window-bytes", &bytes, NULL);
  g_assert_cmpuint (bytes, ==, 1000000);
  g_object_set (sink, "window-bytes", (guint64) 262144, NULL);
  g_object_get (sink, "window-bytes", &bytes, NULL);
  g_assert_cmpuint (bytes, ==, 262144);
  g_assert_null (gst_bus_pop_filtered (bus, GST_MESSAGE_WARNING));

  gst_element_set_bus (sink, NULL);
  gst_object_unref (bus);
  finish (h, sink);
}

static void
expect_warning (const gchar *pattern)
{
  g_test_expect_message ("weir", G_LOG_LEVEL_WARNING, pattern);
}

static void
test_clients (void)
{
  GstElement *sink = gst_element_factory_make ("fanoutsink", NULL);
  GstStructure *stats;
  gchar *clients;

  gst_object_ref_sink (sink);
  expect_warning ("*clients: '::1' is not host:port*[::1]:5004*");
  expect_warning ("*clients: '127.0.0.1' is not host:port*");
  expect_warning ("*clients: '127.0.0.1:99999' is not host:port*");
  expect_warning ("*clients: '127.0.0.1:5004x' is not host:port*");
  expect_warning ("*clients: ':5004' is not host:port*");
  expect_warning ("*clients: '0123456789abcdef0123456789abcdef:1': no open connection*");
  g_object_set (sink, "clients",
      "127.0.0.1:5004,::1,127.0.0.1,127.0.0.1:99999, 127.0.0.1:5004x,:5004,"
      "0123456789abcdef0123456789abcdef:1,,[::1]:5006",
      NULL);
  g_test_assert_expected_messages ();

  // An address with brackets and without is the same reader.
  g_signal_emit_by_name (sink, "add", "[::1]", 5008);
  g_signal_emit_by_name (sink, "add", "::1", 5010);
  g_object_get (sink, "clients", &clients, NULL);
  g_assert_cmpstr (clients, ==, "127.0.0.1:5004,[::1]:5006,[::1]:5008,[::1]:5010");
  g_free (clients);
  g_signal_emit_by_name (sink, "get-stats", "::1", 5008, &stats);
  g_assert_true (gst_structure_has_field (stats, "packets-sent"));
  gst_structure_free (stats);
  g_signal_emit_by_name (sink, "remove", "[::1]", 5010);
  g_signal_emit_by_name (sink, "remove", "::1", 5008);
  g_object_get (sink, "clients", &clients, NULL);
  g_assert_cmpstr (clients, ==, "127.0.0.1:5004,[::1]:5006");
  g_free (clients);
  gst_object_unref (sink);
}

// Each of many readers gets each packet once, from the streaming thread or the workers, with
// `spread` or without.
static void
test_many (gconstpointer launch)
{
  enum { READERS = 300, FRAMES = 5 };
  GstElement *sink;
  GstHarness *h = make_sink (launch, &sink);
  guint16 port;
  GSocket *socket = listen_udp (&port);
  guint got[FRAMES] = { 0 };
  GstStructure *stats;
  guint64 sent, dropped;

  g_socket_set_option (socket, SOL_SOCKET, SO_RCVBUF, 1 << 20, NULL);
  for (guint i = 0; i < READERS; i++) {
    gchar *host = g_strdup_printf ("127.0.0.%u", i % 250 + 1);

    g_object_set (sink, "priority", i % 8, NULL);
    g_signal_emit_by_name (sink, "add", host, (gint) port);
    g_free (host);
  }
  for (guint n = 0; n < FRAMES; n++) {
    push_frame (h, n, n == 0);
    // Receive each frame before the next one, so that the socket's buffer suffices.
    for (guint i = 0; i < READERS; i++)
      got[receive_udp (socket).n]++;
  }
  for (guint n = 0; n < FRAMES; n++)
    g_assert_cmpuint (got[n], ==, READERS);
  gst_harness_push_event (h, gst_event_new_eos ());
  g_object_get (sink, "fanout-stats", &stats, NULL);
  g_assert_true (gst_structure_get (
      stats, "packets-sent", G_TYPE_UINT64, &sent, "dropped", G_TYPE_UINT64, &dropped, NULL));
  g_assert_cmpuint (sent, ==, READERS * FRAMES);
  g_assert_cmpuint (dropped, ==, 0);
  gst_structure_free (stats);

  g_object_unref (socket);
  finish (h, sink);
}

// With `spread`, readers are served 16 at a time: the second half of 32 readers after half of the
// time. Only a frame that comes before all readers have settled may be sent at once.
static void
test_spread_takes_its_time (void)
{
  enum { READERS = 32, SPREAD_US = 200000, FRAMES = 20 };
  GstElement *sink;
  GstHarness *h = make_sink ("fanoutsink spread=200000000", &sink);
  guint16 port;
  GSocket *socket = listen_udp (&port);
  gint64 longest = 0;

  for (guint i = 0; i < READERS; i++) {
    gchar *host = g_strdup_printf ("127.0.0.%u", i + 1);

    g_signal_emit_by_name (sink, "add", host, (gint) port);
    g_free (host);
  }
  for (guint n = 0; n < FRAMES && longest < SPREAD_US / 4; n++) {
    gint64 start = g_get_monotonic_time ();

    push_frame (h, n, n == 0);
    for (guint i = 0; i < READERS; i++)
      g_assert_cmpuint (receive_udp (socket).n, ==, n);
    longest = MAX (longest, g_get_monotonic_time () - start);
  }
  g_assert_cmpint (longest, >=, SPREAD_US / 4);

  g_object_unref (socket);
  finish (h, sink);
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/readers/joins-at-the-keyframe", test_joins_at_the_keyframe);
  g_test_add_func ("/readers/keeps-packets-for-delays", test_keeps_packets_for_delays);
  g_test_add_func ("/readers/has-its-own-position", test_has_its_own_position);
  g_test_add_data_func ("/readers/a-delay-from-the-first-packet-on/before-clients",
      "fanoutsink delay=300000000 clients=127.0.0.1:%u", test_a_delay_from_the_first_packet_on);
  g_test_add_data_func ("/readers/a-delay-from-the-first-packet-on/after-clients",
      "fanoutsink clients=127.0.0.1:%u delay=300000000", test_a_delay_from_the_first_packet_on);
  g_test_add_data_func ("/readers/a-reader-s-delay-from-the-first-packet-on/set-after-add", "added",
      test_a_reader_s_delay_from_the_first_packet_on);
  g_test_add_data_func ("/readers/a-reader-s-delay-from-the-first-packet-on/set-before-add", NULL,
      test_a_reader_s_delay_from_the_first_packet_on);
  g_test_add_func ("/readers/joins-live", test_joins_live);
  g_test_add_func (
      "/readers/catches-up-with-what-has-waited", test_catches_up_with_what_has_waited);
  g_test_add_func ("/readers/delay-keeps-the-timestamps", test_delay_keeps_the_timestamps);
  for (guint i = 0; i < G_N_ELEMENTS (framings); i++) {
    gchar *path = g_strconcat ("/readers/socket/", framings[i].path, NULL);

    g_test_add_data_func (path, &framings[i], test_socket);
    g_free (path);
  }
  g_test_add_func ("/readers/a-transport-stream-is-joined", test_a_transport_stream_is_joined);
  g_test_add_func ("/readers/a-thinned-reader-is-logged", test_a_thinned_reader_is_logged);
  g_test_add_func ("/readers/connections-are-paced", test_connections_are_paced);
  g_test_add_func ("/readers/a-shared-connection-is-paced", test_a_shared_connection_is_paced);
  g_test_add_func ("/readers/pacing-holds-back", test_pacing_holds_back);
  g_test_add_data_func ("/readers/udp-is-paced/own-sockets", NULL, test_udp_is_paced);
  g_test_add_data_func ("/readers/udp-is-paced/given-sockets", "", test_udp_is_paced);
  g_test_add_func ("/readers/removing-closes-the-socket", test_removing_closes_the_socket);
  g_test_add_func ("/readers/a-socket-has-one-writer", test_a_socket_has_one_writer);
  g_test_add_func (
      "/readers/a-socket-that-breaks-as-it-is-added", test_a_socket_that_breaks_as_it_is_added);
  g_test_add_func ("/readers/invalid-sockets-are-refused", test_refusals);
  g_test_add_func ("/readers/refusals-name-the-argument", test_refusals_name_the_argument);
  g_test_add_func ("/readers/a-small-window-is-refused-while-playing",
      test_a_small_window_is_refused_while_playing);
  g_test_add_func ("/readers/clients", test_clients);
  g_test_add_func ("/readers/a-small-window-is-refused", test_a_small_window_is_refused);
  g_test_add_data_func ("/readers/failed-sends-are-reported/inline", "fanoutsink bind-address=::1",
      test_failed_sends_are_reported);
  g_test_add_data_func ("/readers/failed-sends-are-reported/by-the-workers",
      "fanoutsink bind-address=::1 inline-readers=0", test_failed_sends_are_reported);
  g_test_add_data_func (
      "/readers/many/by-the-workers", "fanoutsink inline-readers=0 join=keyframe", test_many);
  g_test_add_data_func ("/readers/many/inline", "fanoutsink inline-readers=1000", test_many);
  g_test_add_data_func ("/readers/many/spread", "fanoutsink spread=20000000", test_many);
  g_test_add_func ("/readers/spread-takes-its-time", test_spread_takes_its_time);
  return g_test_run ();
}
