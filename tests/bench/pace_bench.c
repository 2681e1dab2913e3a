// SPDX-License-Identifier: LGPL-2.1-or-later
// Measures many ratepacers in one process, each with a stream of 1 Mb/s: how late packets leave and
// what the pacers cost in CPU time. One thread feeds them all.
//
//   pace_bench STREAMS SECONDS [PROPERTIES]

#include <stdlib.h>
#include <sys/resource.h>

#include <gst/gst.h>

#include "run/histogram.h"

#define FRAME (40 * GST_MSECOND)
#define PACKETS 4 // per frame
#define SIZE 1250

typedef struct {
  GstElement *pacer;
  GstPad *in, *out;
  guint64 n; // packets that left
  GstClockTime offset;
} Stream;

static GstClock *clock_;
static GstClockTime base;
static WeirHistogram lateness;
static GMutex lock; // of `lateness`

static GstClockTime
running_time (void)
{
  return gst_clock_get_time (clock_) - base;
}

// Packet i of frame k is due i quarters of a frame after the frame's time.
static GstFlowReturn
take (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  Stream *stream = gst_pad_get_element_private (pad);
  guint64 i = stream->n++;
  gint64 due = (gint64) (GST_BUFFER_PTS (buffer) + i % PACKETS * (FRAME / PACKETS));

  if (i >= 2 * PACKETS) { // the pacer does not know the first frames' duration yet
    g_mutex_lock (&lock);
    weir_histogram_add (&lateness, (gint64) running_time () - due);
    g_mutex_unlock (&lock);
  }
  gst_buffer_unref (buffer);
  return GST_FLOW_OK;
}

static void
start (Stream *stream, guint index, guint n, const gchar *properties)
{
  gchar *line = g_strdup_printf ("ratepacer %s", properties);
  GstSegment segment;
  GstPad *pad;

  stream->pacer = gst_parse_launch (line, NULL);
  stream->offset = index * FRAME / n;
  stream->in = gst_pad_new ("in", GST_PAD_SRC);
  stream->out = gst_pad_new ("out", GST_PAD_SINK);
  gst_pad_set_element_private (stream->out, stream);
  gst_pad_set_chain_function (stream->out, take);
  gst_pad_set_active (stream->in, TRUE);
  gst_pad_set_active (stream->out, TRUE);
  pad = gst_element_get_static_pad (stream->pacer, "sink");
  gst_pad_link (stream->in, pad);
  gst_object_unref (pad);
  pad = gst_element_get_static_pad (stream->pacer, "src");
  gst_pad_link (pad, stream->out);
  gst_object_unref (pad);
  gst_element_set_clock (stream->pacer, clock_);
  gst_element_set_base_time (stream->pacer, base);
  gst_element_set_state (stream->pacer, GST_STATE_PLAYING);
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_pad_push_event (stream->in, gst_event_new_stream_start ("bench"));
  gst_pad_push_event (stream->in, gst_event_new_segment (&segment));
  g_free (line);
}

static void
feed (Stream *stream, GstClockTime time)
{
  GstBufferList *list = gst_buffer_list_new ();

  for (guint i = 0; i < PACKETS; i++) {
    GstBuffer *buffer = gst_buffer_new_allocate (NULL, SIZE, NULL);

    GST_BUFFER_PTS (buffer) = time;
    gst_buffer_list_add (list, buffer);
  }
  gst_pad_push_list (stream->in, list);
}

static double
cpu_seconds (void)
{
  struct rusage usage;

  getrusage (RUSAGE_SELF, &usage);
  return (double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
         + (double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static guint
n_threads (void)
{
  GDir *dir = g_dir_open ("/proc/self/task", 0, NULL);
  guint n = 0;

  while (g_dir_read_name (dir))
    n++;
  g_dir_close (dir);
  return n;
}

// Each frame is fed 5 ms before its time, so that the feeding is not measured. If the feeder is
// late, all later frames are due later.
#define EARLY (5 * (gint64) GST_MSECOND)

static void
feed_all (Stream *streams, guint n, GstClockTime duration)
{
  GstClockTime begin = running_time () + 100 * GST_MSECOND;

  for (guint64 k = 0; k * FRAME < duration; k++) {
    for (guint i = 0; i < n; i++) {
      GstClockTime time = begin + k * FRAME + streams[i].offset;
      gint64 early = (gint64) time - (gint64) running_time () - EARLY;

      if (early > (gint64) GST_MSECOND)
        g_usleep ((gulong) early / 1000);
      if (early < 0)
        begin += (GstClockTime) -early;
      feed (&streams[i], MAX (time, begin + k * FRAME + streams[i].offset));
    }
  }
}

int
main (int argc, char **argv)
{
  guint n = argc > 2 ? (guint) atoi (argv[1]) : 0, threads;
  GstClockTime duration = argc > 2 ? (GstClockTime) atoi (argv[2]) * GST_SECOND : 0;
  Stream *streams;
  double cpu;

  gst_init (&argc, &argv);
  if (n == 0 || duration == 0) {
    g_printerr ("usage: pace_bench STREAMS SECONDS [PROPERTIES]\n");
    return 2;
  }
  clock_ = gst_system_clock_obtain ();
  streams = g_new0 (Stream, n);
  base = gst_clock_get_time (clock_);
  for (guint i = 0; i < n; i++)
    start (&streams[i], i, n, argc > 3 ? argv[3] : "");
  cpu = cpu_seconds ();
  feed_all (streams, n, duration);
  cpu = cpu_seconds () - cpu;
  threads = n_threads () - 1;
  for (guint i = 0; i < n; i++) {
    gst_element_set_state (streams[i].pacer, GST_STATE_NULL);
    gst_object_unref (streams[i].pacer);
    gst_object_unref (streams[i].in);
    gst_object_unref (streams[i].out);
  }
  g_print ("{\"streams\": %u, \"threads\": %u, \"packets\": %" G_GUINT64_FORMAT
           ", \"late_p50_ms\": %.3f, \"late_p99_ms\": %.3f, \"late_p999_ms\": %.3f, "
           "\"late_max_ms\": %.3f, \"cpu\": %.3f}\n",
      n, threads, lateness.n, (double) weir_histogram_percentile (&lateness, 50) / 1e6,
      (double) weir_histogram_percentile (&lateness, 99) / 1e6,
      (double) weir_histogram_percentile (&lateness, 99.9) / 1e6, (double) lateness.max / 1e6,
      cpu / ((double) duration / 1e9));
  g_free (streams);
  gst_object_unref (clock_);
  return 0;
}
