// SPDX-License-Identifier: LGPL-2.1-or-later
// Measures fanoutsink with a scalable stream in real time and many readers, which all want the
// same layers, or one of nine layer sets each.
//
//     many_layers_bench KERNEL LAYERS ADDRESS PORT READERS SECONDS [SPREAD [CHANGES]]
//
// KERNEL is a value of the property `kernel`. LAYERS is "all", "S.T" (the highest spatial and
// temporal layer) or "9". The readers are the ports from PORT on. SPREAD is the
// property `spread` in ms. With CHANGES, the readers change their layers, to any layers: "before"
// changes them all several times before the measurement, and a number is the time in ms after which
// each changes them again, at another time than the others. Prints one line "name value" for
// each figure.

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <gst/gst.h>

#include "avc.h"

#define PICTURES_PER_SECOND 30

static double
cpu_s (void)
{
  struct timespec t;

  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

static double
switches (void)
{
  struct rusage used;

  getrusage (RUSAGE_SELF, &used);
  return (double) (used.ru_nvcsw + used.ru_nivcsw);
}

static guint64
get (const GstStructure *stats, const gchar *field)
{
  guint64 value = 0;

  gst_structure_get_uint64 (stats, field, &value);
  return value;
}

static GstStructure *
get_stats (GstElement *sink)
{
  GstStructure *stats;

  g_object_get (sink, "fanout-stats", &stats, NULL);
  return stats;
}

static void
push_events (GstPad *pad)
{
  GstSegment segment;
  GstCaps *caps = gst_caps_from_string (
      "application/x-rtp,media=video,clock-rate=90000,encoding-name=H264,payload=96");

  gst_pad_push_event (pad, gst_event_new_stream_start ("bench"));
  gst_pad_push_event (pad, gst_event_new_caps (caps));
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_pad_push_event (pad, gst_event_new_segment (&segment));
  gst_caps_unref (caps);
}

// Returns the next picture. Sequence numbers and timestamps continue where the file starts over.
static GstBufferList *
next_picture (const AvcRtp *rtp, guint picture)
{
  GstBufferList *list = gst_buffer_list_new ();
  static guint16 seq;
  static size_t at;
  gboolean marker = FALSE;

  for (; !marker; at = (at + 1) % rtp->n) {
    const AvcPacket *packet = &rtp->packets[at];
    guint8 *data = g_memdup2 (packet->data, packet->len);

    GST_WRITE_UINT16_BE (data + 2, seq++);
    GST_WRITE_UINT32_BE (data + 4, picture * (90000 / PICTURES_PER_SECOND));
    marker = data[1] >> 7;
    gst_buffer_list_insert (list, -1, gst_buffer_new_wrapped (data, packet->len));
  }
  return list;
}

// The readers, and what they want.
static struct {
  GstElement *sink;
  const gchar *layers, *address;
  gint port, n;
  guint change_pictures; // each changes its layers after this many pictures; 0: none does
} all;

static void
set_layers (gint port, gint spatial, gint temporal)
{
  gboolean ok;

  g_signal_emit_by_name (all.sink, "set-layers", all.address, port, spatial, -1, temporal, &ok);
}

// Sets the layers that the reader wants, or other ones.
static void
choose_layers (gint port, gboolean other)
{
  static guint random = 1;

  random = random * 1103515245 + 12345;
  if (other)
    set_layers (port, (gint) (random >> 16) % 3, (gint) (random >> 20) % 3);
  else if (g_str_equal (all.layers, "9"))
    set_layers (port, port % 9 / 3, port % 3);
  else if (g_str_equal (all.layers, "all"))
    set_layers (port, -1, -1);
  else
    set_layers (port, all.layers[0] - '0', all.layers[2] - '0');
}

static void
change_some (guint picture)
{
  for (gint i = 0; i < all.n && all.change_pictures > 0; i++) {
    if ((picture + (guint) i) % all.change_pictures == 0)
      choose_layers (all.port + i, TRUE);
  }
}

static void
push_for (GstPad *src, const AvcRtp *rtp, int seconds)
{
  static guint picture;
  gint64 start = g_get_monotonic_time ();

  for (int i = 1; i <= seconds * PICTURES_PER_SECOND; i++) {
    gint64 due = start + i * G_USEC_PER_SEC / PICTURES_PER_SECOND - g_get_monotonic_time ();

    change_some (picture);
    gst_pad_push_list (src, next_picture (rtp, picture++));
    if (due > 0)
      g_usleep ((gulong) due);
  }
}

// Lets the readers change their layers before the measurement, and go back to those they want.
static void
give_past (GstPad *src, const AvcRtp *rtp)
{
  all.change_pictures = 17;
  push_for (src, rtp, 6);
  all.change_pictures = 0;
  for (gint i = 0; i < all.n; i++)
    choose_layers (all.port + i, FALSE);
}

int
main (int argc, char **argv)
{
  GstStructure *before, *after;
  GstPad *src, *in;
  GstElement *sink;
  double cpu, packets, sends, switched;
  int seconds;
  AvcRtp rtp;
  Avc avc;

  gst_init (&argc, &argv);
  if (argc < 7 || argc > 9 || !avc_load (&avc, "svc_3s3t.264"))
    g_error (
        "usage: many_layers_bench KERNEL LAYERS ADDRESS PORT READERS SECONDS [SPREAD [CHANGES]]");
  rtp = avc_packetize (&avc, true, 0);
  seconds = atoi (argv[6]);
  sink = gst_element_factory_make ("fanoutsink", NULL);
  g_object_set (sink, "sync", FALSE, "async", FALSE, NULL);
  gst_util_set_object_arg (G_OBJECT (sink), "kernel", argv[1]);
  if (argc > 7)
    g_object_set (sink, "spread", (guint64) atoi (argv[7]) * GST_MSECOND, NULL);
  src = gst_pad_new ("src", GST_PAD_SRC);
  in = gst_element_get_static_pad (sink, "sink");
  gst_pad_set_active (src, TRUE);
  gst_pad_link (src, in);
  if (gst_element_set_state (sink, GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE)
    g_error ("the sink does not start: is the kernel path available?");
  push_events (src);
  all.sink = sink;
  all.layers = argv[2];
  all.address = argv[3];
  all.port = atoi (argv[4]);
  all.n = atoi (argv[5]);
  for (gint i = 0; i < all.n; i++) {
    choose_layers (all.port + i, FALSE);
    g_signal_emit_by_name (sink, "add", all.address, all.port + i);
  }
  if (argc == 9 && g_str_equal (argv[8], "before"))
    give_past (src, &rtp);
  else if (argc == 9)
    all.change_pictures = (guint) atoi (argv[8]) * PICTURES_PER_SECOND / 1000;

  push_for (src, &rtp, 4); // one pass of the file, after which every reader has its layers
  before = get_stats (sink);
  cpu = cpu_s ();
  switched = switches ();
  push_for (src, &rtp, seconds);
  cpu = cpu_s () - cpu;
  switched = switches () - switched;
  after = get_stats (sink);

  packets = (double) (get (after, "packets-sent") - get (before, "packets-sent"));
  g_print ("ns %.1f\n", 1e9 * cpu / packets);
  g_print ("cpu %.1f\n", 100 * cpu / seconds);
  g_print ("switches %.1f\n", switched / seconds);
  g_print ("sent %.0f\n", packets);
  sends = (double) (get (after, "sends") - get (before, "sends") + get (after, "clones")
                    - get (before, "clones"));
  g_print ("segments %.1f\n", packets / sends);
  g_print (
      "cloned %.1f\n", 100 * (double) (get (after, "clones") - get (before, "clones")) / sends);
  g_print ("bits %.0f\n",
      8.0 * (double) (get (after, "bytes-sent") - get (before, "bytes-sent")) / seconds);
  g_print ("bytes %.0f\n", (double) get (after, "bytes-sent")); // since the start
  g_print ("dropped %" G_GUINT64_FORMAT "\n", get (after, "dropped") - get (after, "left-out"));

  gst_structure_free (before);
  gst_structure_free (after);
  gst_element_set_state (sink, GST_STATE_NULL);
  gst_object_unref (in);
  gst_object_unref (src);
  gst_object_unref (sink);
  free (rtp.packets);
  avc_free (&avc);
  return 0;
}
