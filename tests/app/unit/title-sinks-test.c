// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/title_sinks.h"

#include <gio/gio.h>
#include <gst/app/gstappsrc.h>

#define CAPS "application/x-rtp, media=video, encoding-name=H264, clock-rate=90000, payload=96"
#define HOST "127.0.0.1"
#define FRAME (40 * GST_MSECOND)
#define TICKS 3600             // of a frame
#define FIRST_TIME 0xfffffff0u // wraps
#define PATIENCE (20 * G_USEC_PER_SEC)
#define SIZE 100

typedef struct {
  GstBin *pipeline;
  GstElement *source, *sink;
  GstCaps *caps;
  GstSegment segment;
  GSocket *reader;
  gint port;
  guint n;
} Fixture;

static void
set_up (Fixture *self, gconstpointer rate)
{
  g_autoptr (GSocketAddress) any = g_inet_socket_address_new_from_string (HOST, 0);
  g_autoptr (GSocketAddress) own = NULL;

  self->reader =
      g_socket_new (G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_DATAGRAM, G_SOCKET_PROTOCOL_UDP, NULL);
  g_assert_true (g_socket_bind (self->reader, any, FALSE, NULL));
  g_socket_set_timeout (self->reader, 20);
  own = g_socket_get_local_address (self->reader, NULL);
  self->port = g_inet_socket_address_get_port (G_INET_SOCKET_ADDRESS (own));

  self->pipeline = GST_BIN (gst_object_ref_sink (gst_pipeline_new (NULL)));
  title_sinks_set_up (self->pipeline);
  self->source = gst_element_factory_make ("appsrc", NULL);
  self->sink = gst_element_factory_make ("fanoutsink", NULL);
  self->caps = gst_caps_from_string (CAPS);
  gst_segment_init (&self->segment, GST_FORMAT_TIME);
  self->segment.rate = *(const gdouble *) rate;
  self->segment.start = self->segment.time = self->segment.position = 10 * GST_SECOND;
  g_object_set (self->source, "format", GST_FORMAT_TIME, "handle-segment-change", TRUE, NULL);
  g_object_set (self->sink, "async", FALSE, NULL);
  gst_bin_add_many (self->pipeline, self->source, self->sink, NULL);
  g_assert_true (gst_element_link (self->source, self->sink));
  gst_element_set_state (GST_ELEMENT (self->pipeline), GST_STATE_PLAYING);
}

static void
tear_down (Fixture *self, gconstpointer rate)
{
  gst_element_set_state (GST_ELEMENT (self->pipeline), GST_STATE_NULL);
  gst_object_unref (self->pipeline);
  gst_caps_unref (self->caps);
  g_object_unref (self->reader);
}

static GstClockTime
time_of (guint n, gdouble rate)
{
  return 10 * GST_SECOND + (GstClockTime) (n * FRAME * rate);
}

// Plays the next frame, and waits until the sink has it.
static void
play (Fixture *self, gdouble rate)
{
  guint8 *packet = g_malloc0 (SIZE);
  GstBuffer *buffer = gst_buffer_new_wrapped (packet, SIZE);
  gint64 deadline = g_get_monotonic_time () + PATIENCE;
  guint64 n_taken = 0;
  GstSample *sample;

  packet[0] = 0x80;
  packet[1] = 96 | 0x80;
  GST_WRITE_UINT16_BE (packet + 2, self->n);
  GST_WRITE_UINT32_BE (packet + 4, FIRST_TIME + self->n * TICKS);
  packet[12] = 0x65;
  GST_BUFFER_PTS (buffer) = time_of (self->n++, rate);
  sample = gst_sample_new (buffer, self->caps, &self->segment, NULL);
  gst_app_src_push_sample (GST_APP_SRC (self->source), sample);
  gst_sample_unref (sample);
  gst_buffer_unref (buffer);
  while (n_taken < self->n) {
    g_autoptr (GstStructure) stats = NULL;

    g_assert_cmpint (g_get_monotonic_time (), <, deadline);
    g_usleep (1000);
    g_object_get (self->sink, "fanout-stats", &stats, NULL);
    g_assert_true (gst_structure_get_uint64 (stats, "packets-in", &n_taken));
  }
}

static guint
receive (Fixture *self)
{
  guint8 got[SIZE];

  g_assert_cmpint (g_socket_receive (self->reader, (gchar *) got, SIZE, NULL, NULL), ==, SIZE);
  return GST_READ_UINT16_BE (got + 2);
}

static void
what_is_played_after_the_reader_was_left_is_not_sent (Fixture *self, gconstpointer data)
{
  gdouble rate = *(const gdouble *) data;

  g_assert_false (GST_CLOCK_TIME_IS_VALID (title_sinks_get_sent (self->pipeline)));
  play (self, rate);
  g_signal_emit_by_name (self->sink, "add", HOST, self->port);
  for (guint n = 1; n <= 5; n++) {
    play (self, rate);
    g_assert_cmpuint (receive (self), ==, n);
  }
  g_signal_emit_by_name (self->sink, "remove", HOST, self->port);
  g_assert_cmpuint (title_sinks_get_sent (self->pipeline), ==, time_of (5, rate));
  for (guint n = 0; n < 10; n++)
    play (self, rate);
  g_assert_cmpuint (title_sinks_get_sent (self->pipeline), ==, time_of (5, rate));

  // It goes on.
  g_signal_emit_by_name (self->sink, "add", HOST, self->port);
  play (self, rate);
  g_assert_cmpuint (receive (self), ==, 16);
  g_signal_emit_by_name (self->sink, "remove", HOST, self->port);
  play (self, rate);
  g_assert_cmpuint (title_sinks_get_sent (self->pipeline), ==, time_of (16, rate));
}

static void
a_reader_that_got_nothing_was_left_at_the_packet_before (Fixture *self, gconstpointer data)
{
  gdouble rate = *(const gdouble *) data;

  play (self, rate);
  g_signal_emit_by_name (self->sink, "add", HOST, self->port);
  g_signal_emit_by_name (self->sink, "remove", HOST, self->port);
  play (self, rate);
  g_assert_cmpuint (title_sinks_get_sent (self->pipeline), ==, time_of (0, rate));
}

int
main (int argc, char **argv)
{
  static const gdouble rates[] = { 1, 2 };

  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (rates); i++) {
    g_autofree gchar *played = g_strdup_printf ("/title-sinks/played-after/%.0f", rates[i]);
    g_autofree gchar *nothing = g_strdup_printf ("/title-sinks/got-nothing/%.0f", rates[i]);

    g_test_add (played, Fixture, &rates[i], set_up,
        what_is_played_after_the_reader_was_left_is_not_sent, tear_down);
    g_test_add (nothing, Fixture, &rates[i], set_up,
        a_reader_that_got_nothing_was_left_at_the_packet_before, tear_down);
  }
  return g_test_run ();
}
