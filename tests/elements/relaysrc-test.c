// SPDX-License-Identifier: LGPL-2.1-or-later
#include <arpa/inet.h>
#include <gst/check/gstharness.h>
#include <gst/gst.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rtp/rtcp_read.h"

#define SSRC 0x11223344
#define LEN 40

// Sends to a port of this host that nothing used just now; the next one is free, too.
typedef struct {
  int fd;
  struct sockaddr_in to;
} Sender;

static gboolean
is_free (guint16 port)
{
  struct sockaddr_in at = {
    .sin_family = AF_INET, .sin_addr.s_addr = htonl (INADDR_LOOPBACK), .sin_port = htons (port)
  };
  int fd = socket (AF_INET, SOCK_DGRAM, 0);
  gboolean ok = bind (fd, (struct sockaddr *) &at, sizeof at) == 0;

  close (fd);
  return ok;
}

static guint16
port_of (const Sender *sender)
{
  return ntohs (sender->to.sin_port);
}

static Sender
open_sender (void)
{
  Sender self = { .to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl (INADDR_LOOPBACK) } };
  struct sockaddr_in own = self.to;
  struct timeval limit = { .tv_sec = 20 };
  guint16 port;

  do
    port = (guint16) g_random_int_range (10000, 30000) * 2;
  while (!is_free (port) || !is_free (port + 1));
  self.to.sin_port = htons (port);
  self.fd = socket (AF_INET, SOCK_DGRAM, 0);
  g_assert_cmpint (bind (self.fd, (struct sockaddr *) &own, sizeof own), ==, 0);
  setsockopt (self.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  return self;
}

static void
send_typed (const Sender *self, guint16 seq, guint8 pt)
{
  guint8 packet[LEN] = { 0x80, pt };

  GST_WRITE_UINT16_BE (packet + 2, seq);
  GST_WRITE_UINT32_BE (packet + 8, SSRC);
  packet[LEN - 1] = (guint8) seq;
  g_assert_cmpint (
      sendto (self->fd, packet, LEN, 0, (struct sockaddr *) &self->to, sizeof self->to), ==, LEN);
}

static void
send_packet (const Sender *self, guint16 seq)
{
  send_typed (self, seq, 96);
}

static GstHarness *
make_harness (const Sender *sender, const gchar *properties)
{
  gchar *line =
      g_strdup_printf ("relaysrc uri=\"rtp://127.0.0.1:%u?encoding-name=VP8&payload=96\" %s",
          port_of (sender), properties);
  GstHarness *h = gst_harness_new_parse (line);

  g_free (line);
  return h;
}

static GstElement *
element_of (GstHarness *h)
{
  GstIterator *all = gst_bin_iterate_sources (GST_BIN (h->element));
  GValue value = G_VALUE_INIT;
  GstElement *element;

  g_assert_cmpint (gst_iterator_next (all, &value), ==, GST_ITERATOR_OK);
  element = g_value_get_object (&value);
  g_value_unset (&value);
  gst_iterator_free (all);
  return element; // the harness owns it
}

static guint64
count (GstElement *element, const gchar *field)
{
  GstStructure *stats;
  guint64 n = 0;

  g_object_get (element, "stats", &stats, NULL);
  g_assert_true (gst_structure_get_uint64 (stats, field, &n));
  gst_structure_free (stats);
  return n;
}

static void
wait_for_count (GstElement *element, const gchar *field, guint64 wanted)
{
  gint64 until = g_get_monotonic_time () + 20 * G_USEC_PER_SEC;

  while (count (element, field) < wanted && g_get_monotonic_time () < until)
    g_usleep (1000);
  g_assert_cmpuint (count (element, field), ==, wanted);
}

static gboolean
add_to_sum (GQuark field, const GValue *value, gpointer sum)
{
  const gchar *name = g_quark_to_string (field);
  static const gchar *const counts[] = { "packets", "queued", "held", "rtcp", NULL };

  if (g_strv_contains (counts, name) || g_str_has_prefix (name, "dropped-"))
    *(guint64 *) sum += g_value_get_uint64 (value);
  return TRUE;
}

static guint64
sum_of_counts (GstElement *element)
{
  GstStructure *stats;
  guint64 sum = 0;

  g_object_get (element, "stats", &stats, NULL);
  gst_structure_foreach (stats, add_to_sum, &sum);
  gst_structure_free (stats);
  return sum;
}

// Waits for the counts, which follow their packets, and checks that each of `wanted` datagrams is
// in one of them.
static void
check_sums (GstElement *element, guint64 wanted)
{
  gint64 until = g_get_monotonic_time () + 20 * G_USEC_PER_SEC;

  wait_for_count (element, "datagrams", wanted);
  while (sum_of_counts (element) != wanted && g_get_monotonic_time () < until)
    g_usleep (1000);
  g_assert_cmpuint (sum_of_counts (element), ==, wanted);
}

typedef struct {
  GstClockTime pts, dts;
  gboolean discont;
} Header;

// tests/support/tsan.supp names this function.
static G_NO_INLINE Header
read_header (GstBuffer *buffer)
{
  return (Header) { GST_BUFFER_PTS (buffer), GST_BUFFER_DTS (buffer),
    GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_DISCONT) };
}

// Pulls a packet and checks its bytes.
static Header
pull (GstHarness *h, guint16 seq)
{
  Header header;
  GstBuffer *buffer = gst_harness_pull (h);
  guint8 data[LEN];

  g_assert_nonnull (buffer);
  g_assert_cmpuint (gst_buffer_get_size (buffer), ==, LEN);
  gst_buffer_extract (buffer, 0, data, LEN);
  g_assert_cmpuint (GST_READ_UINT16_BE (data + 2), ==, seq);
  g_assert_cmpuint (data[LEN - 1], ==, (guint8) seq);
  header = read_header (buffer);
  gst_buffer_unref (buffer);
  return header;
}

static void
test_packets_leave_in_order_with_rising_timestamps (void)
{
  Sender sender = open_sender ();
  GstHarness *h = make_harness (&sender, "reorder-time=10000000000");
  GstElement *element = element_of (h);
  GstClockTime last = 0;

  gst_harness_play (h);
  for (guint i = 0; i < 1000; i += 4) { // 0 3 2 1 1, over a wrap
    static const guint order[] = { 0, 3, 2, 1, 1 };

    for (guint k = 0; k < 5; k++)
      send_packet (&sender, (guint16) (65000 + i + order[k]));
    if (i % 100 == 0)
      wait_for_count (element, "datagrams", i / 4 * 5 + 5);
  }
  for (guint i = 0; i < 1000; i++) {
    Header header = pull (h, (guint16) (65000 + i));

    g_assert_cmpuint (header.pts, ==, header.dts);
    g_assert_cmpuint (header.pts, >=, last);
    g_assert_cmpint (header.discont, ==, i == 0);
    last = header.pts;
  }
  g_assert_cmpuint (last, <=,
      gst_clock_get_time (GST_ELEMENT_CLOCK (element)) - gst_element_get_base_time (element));
  check_sums (element, 1250);
  g_assert_cmpuint (count (element, "dropped-duplicate"), ==, 250);
  g_assert_cmpuint (count (element, "reordered"), ==, 500);
  g_assert_cmpuint (count (element, "lost"), ==, 0);
  gst_harness_teardown (h);
  close (sender.fd);
}

static void
test_a_gap_is_marked (void)
{
  Sender sender = open_sender ();
  GstHarness *h = make_harness (&sender, "reorder-time=1000000");
  GstElement *element = element_of (h);
  static const guint16 in[] = { 1, 2, 5, 6 };

  gst_harness_play (h);
  for (guint i = 0; i < 4; i++)
    send_packet (&sender, in[i]);
  for (guint i = 0; i < 4; i++)
    g_assert_cmpint (pull (h, in[i]).discont, ==, i % 2 == 0);
  check_sums (element, 4);
  g_assert_cmpuint (count (element, "lost"), ==, 2);
  gst_harness_teardown (h);
  close (sender.fd);
}

// In PAUSED nothing is pushed, so the queue fills.
static void
test_overflow_is_counted (void)
{
  Sender sender = open_sender ();
  GstHarness *h = make_harness (&sender, "max-packets=10 tick=0");
  GstElement *element = element_of (h);

  gst_element_set_state (h->element, GST_STATE_PAUSED);
  for (guint i = 0; i < 25; i++)
    send_packet (&sender, (guint16) i);
  wait_for_count (element, "datagrams", 25);
  g_assert_cmpuint (count (element, "dropped-overflow"), ==, 15);
  g_assert_cmpuint (count (element, "queued"), ==, 10);
  gst_harness_play (h);
  for (guint i = 0; i < 10; i++)
    pull (h, (guint16) i);
  send_packet (&sender, 25);
  g_assert_true (pull (h, 25).discont);
  check_sums (element, 26);
  gst_harness_teardown (h);
  close (sender.fd);
}

static void
test_strays_are_counted (void)
{
  Sender sender = open_sender (), other = open_sender ();
  GstHarness *h = make_harness (&sender, "");
  GstElement *element = element_of (h);

  gst_harness_play (h);
  for (guint i = 0; i < 10; i++) {
    send_packet (&sender, (guint16) i);
    send_typed (&sender, (guint16) i, 33);
    g_assert_cmpint (
        sendto (sender.fd, "hello", 5, 0, (struct sockaddr *) &sender.to, sizeof sender.to), ==, 5);
  }
  wait_for_count (element, "packets", 10);
  other.to = sender.to;
  send_packet (&sender, 10);
  send_packet (&other, 11);
  wait_for_count (element, "datagrams", 32);
  g_assert_cmpuint (count (element, "dropped-payload-type"), ==, 10);
  g_assert_cmpuint (count (element, "dropped-malformed"), ==, 10);
  g_assert_cmpuint (count (element, "dropped-foreign"), ==, 1);
  check_sums (element, 32);
  wait_for_count (element, "packets", 11);
  gst_harness_teardown (h);
  close (sender.fd);
  close (other.fd);
}

static void
test_a_stopped_pipeline_delays_no_other (void)
{
  Sender first = open_sender (), second = open_sender ();
  GstHarness *stopped = make_harness (&first, "max-packets=5");
  GstHarness *h = make_harness (&second, "");

  gst_harness_set_blocking_push_mode (stopped);
  gst_harness_play (stopped);
  gst_harness_play (h);
  for (guint i = 0; i < 100; i++) {
    send_packet (&first, (guint16) i);
    send_packet (&second, (guint16) i);
  }
  for (guint i = 0; i < 100; i++)
    pull (h, (guint16) i);
  wait_for_count (element_of (stopped), "datagrams", 100);
  g_assert_cmpuint (count (element_of (stopped), "dropped-overflow"), >, 0);
  gst_harness_teardown (h);
  gst_harness_teardown (stopped);
  close (first.fd);
  close (second.fd);
}

static void
test_counts_start_anew (void)
{
  Sender sender = open_sender ();
  GstHarness *h = make_harness (&sender, "");
  GstElement *element = element_of (h);

  for (guint turn = 0; turn < 3; turn++) {
    gst_harness_play (h);
    g_assert_cmpuint (count (element, "packets"), ==, 0);
    for (guint i = 0; i < 5; i++)
      send_packet (&sender, (guint16) i);
    for (guint i = 0; i < 5; i++)
      pull (h, (guint16) i);
    check_sums (element, 5);
    gst_element_set_state (h->element, GST_STATE_READY);
    g_assert_cmpuint (count (element, "packets"), ==, 5); // the last ones stay
    check_sums (element, 5);
  }
  gst_harness_teardown (h);
  close (sender.fd);
}

// Any critical warning of GStreamer ends the test.
static void
test_it_stops_while_packets_come (void)
{
  Sender sender = open_sender ();

  g_log_set_always_fatal (G_LOG_LEVEL_CRITICAL | G_LOG_FATAL_MASK);
  for (guint turn = 0; turn < 50; turn++) {
    GstHarness *h = make_harness (&sender, "tick=0");

    gst_harness_play (h);
    for (guint i = 0; i < 20 + turn; i++)
      send_packet (&sender, (guint16) i);
    if (turn % 2)
      gst_element_set_state (h->element, GST_STATE_PAUSED);
    gst_harness_teardown (h);
  }
  close (sender.fd);
}

// ---- descriptions ----

static gchar *
make_sdp (guint16 port, const gchar *more)
{
  return g_strdup_printf (
      "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n"
      "m=application 9 TCP 0\r\n"
      "m=audio 6000 RTP/AVP 0\r\n"
      "m=video %u RTP/AVPF 96\r\na=rtpmap:96 H264/90000\r\n"
      "a=fmtp:96 packetization-mode=1\r\n%s",
      port, more);
}

static void
test_sdp_gives_caps_and_keyframe_requests (void)
{
  Sender sender = open_sender ();
  gchar *sdp = make_sdp (port_of (&sender), "a=rtcp-mux\r\na=rtcp-fb:96 nack pli\r\n");
  GstHarness *h = gst_harness_new_parse ("relaysrc track=1");
  GstElement *element = element_of (h);
  guint8 in[200];
  ssize_t len;
  GstCaps *caps;
  gchar *text;

  g_object_set (element, "sdp", sdp, NULL);
  gst_harness_play (h);
  send_packet (&sender, 1);
  pull (h, 1);
  caps = gst_pad_get_current_caps (h->sinkpad);
  text = gst_caps_to_string (caps);
  g_assert_nonnull (strstr (text, "media=(string)video"));
  g_assert_nonnull (strstr (text, "encoding-name=(string)H264"));
  g_assert_nonnull (strstr (text, "clock-rate=(int)90000"));
  g_assert_nonnull (strstr (text, "packetization-mode=(string)1"));
  g_free (text);
  gst_caps_unref (caps);
  gst_harness_push_upstream_event (h, gst_event_new_custom (GST_EVENT_CUSTOM_UPSTREAM,
                                          gst_structure_new_empty ("GstForceKeyUnit")));
  do // a report may come first
    len = recv (sender.fd, in, sizeof in, 0);
  while (len > 0 && !weir_rtcp_asks_key (in, (size_t) len, SSRC));
  g_assert_cmpint (len, >, 0);
  wait_for_count (element, "keys-asked", 1);
  gst_harness_teardown (h);
  g_free (sdp);
  close (sender.fd);
}

static void
test_errors_say_what_is_wrong (void)
{
  Sender sender = open_sender ();
  gchar *sdp = make_sdp (port_of (&sender), "");
  const struct {
    const gchar *property, *value, *error;
  } cases[] = {
    { "sdp", "hello", "relaysrc: not a session description (it begins with v=0)" },
    { "sdp", "v=0\r\ns=-\r\n",
        "relaysrc: the session description has 0 tracks of RTP, so no track 0" },
    { "sdp", "v=0\r\ns=-\r\nm=audio 5000 RTP/AVP 0\r\n",
        "relaysrc: the session description has no address (c=) for m=audio" },
    { "uri", "udp://1.2.3.4:5",
        "relaysrc: \"udp://1.2.3.4:5\" does not begin with rtp:// or sdp:///" },
    { "uri", "rtp://somewhere:5000?encoding-name=VP8&payload=96",
        "relaysrc: \"somewhere\" is not an IP address" },
    { "uri", "rtp://127.0.0.1?encoding-name=VP8&payload=96",
        "relaysrc: port 0 is not from 1 to 65535" },
    { "uri", "rtp://127.0.0.1:5000",
        "relaysrc: encoding-name is missing (rtp://ADDR:PORT?encoding-name=H264&payload=96)" },
    { "uri", "rtp://127.0.0.1:5000?encoding-name=VP8",
        "relaysrc: payload is missing (rtp://ADDR:PORT?encoding-name=H264&payload=96)" },
    { "uri", "rtp://127.0.0.1:5000?encoding-name=VP8&payload=128",
        "relaysrc: payload=128 is not a number from 0 to 127" },
    { "uri", "rtp://127.0.0.1:5000?encoding-name=NEW&payload=96",
        "relaysrc: NEW needs media=video or media=audio" },
    { "uri", "rtp://127.0.0.1:5000?encoding-name=VP8&payload=96&iface=none0",
        "relaysrc: there is no network interface \"none0\"" },
    { "uri", "rtp://127.0.0.1:5000?encoding-name=VP8&payload=96&A=1",
        "relaysrc: \"A\" is not the name of a parameter" },
    { "uri", "rtp://192.0.2.1:5000?encoding-name=VP8&payload=96",
        "relaysrc: cannot receive on port 5000: Cannot assign requested address" },
    { "name", "relaysrc7", "relaysrc: neither uri nor sdp is set" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    GstElement *element = gst_element_factory_make ("relaysrc", NULL);
    GstBus *bus = gst_bus_new ();
    GstMessage *message;
    GError *error = NULL;

    gst_element_set_bus (element, bus);
    g_object_set (element, cases[i].property, cases[i].value, NULL);
    g_assert_cmpint (
        gst_element_set_state (element, GST_STATE_PLAYING), ==, GST_STATE_CHANGE_FAILURE);
    message = gst_bus_pop_filtered (bus, GST_MESSAGE_ERROR);
    g_assert_nonnull (message);
    gst_message_parse_error (message, &error, NULL);
    g_assert_cmpstr (error->message, ==, cases[i].error);
    g_error_free (error);
    gst_message_unref (message);
    gst_element_set_state (element, GST_STATE_NULL);
    gst_element_set_bus (element, NULL);
    gst_object_unref (bus);
    gst_object_unref (element);
  }
  g_free (sdp);
  close (sender.fd);
}

static void
test_sdp_files_are_read (void)
{
  Sender sender = open_sender ();
  gchar *sdp = make_sdp (port_of (&sender), ""), *path = NULL, *uri;
  gint fd = g_file_open_tmp ("relaysrc-XXXXXX.sdp", &path, NULL);
  GstHarness *h = gst_harness_new_parse ("relaysrc track=1");

  g_assert_cmpint (fd, >=, 0);
  close (fd);
  g_assert_true (g_file_set_contents (path, sdp, -1, NULL));
  uri = g_strdup_printf ("sdp://%s", path);
  g_object_set (element_of (h), "uri", uri, NULL);
  gst_harness_play (h);
  send_packet (&sender, 1);
  pull (h, 1);
  gst_harness_teardown (h);
  unlink (path);
  g_free (uri);
  g_free (path);
  g_free (sdp);
  close (sender.fd);
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/relaysrc/packets-leave-in-order-with-rising-timestamps",
      test_packets_leave_in_order_with_rising_timestamps);
  g_test_add_func ("/relaysrc/a-gap-is-marked", test_a_gap_is_marked);
  g_test_add_func ("/relaysrc/overflow-is-counted", test_overflow_is_counted);
  g_test_add_func ("/relaysrc/strays-are-counted", test_strays_are_counted);
  g_test_add_func (
      "/relaysrc/a-stopped-pipeline-delays-no-other", test_a_stopped_pipeline_delays_no_other);
  g_test_add_func ("/relaysrc/counts-start-anew", test_counts_start_anew);
  g_test_add_func (
      "/relaysrc/sdp-gives-caps-and-keyframe-requests", test_sdp_gives_caps_and_keyframe_requests);
  g_test_add_func ("/relaysrc/errors-say-what-is-wrong", test_errors_say_what_is_wrong);
  g_test_add_func ("/relaysrc/sdp-files-are-read", test_sdp_files_are_read);
  g_test_add_func ("/relaysrc/it-stops-while-packets-come", test_it_stops_while_packets_come);
  return g_test_run ();
}
