// SPDX-License-Identifier: LGPL-2.1-or-later
// Receives broadcast titles with many schedulesrc elements in one process, for
// broadcast_network.py.
//
//     schedule_readers READERS LATENCY_MS ARRIVE_S SECONDS URL...
//
// The readers begin at random times within the first ARRIVE_S, with the URLs in turn, and end after
// SECONDS. Prints one line "name value" for each figure. start_p50 and start_p99 are the time from
// the start to the first packet in ms, beyond the wait for the schedule's start.

#include <stdlib.h>

#include <gst/gst.h>

#define MAX_READERS 1000

typedef struct {
  GstElement *pipeline, *source;
  double begin; // s from the start of the process
} Reader;

static int failed;

static guint64
get (const GstStructure *stats, const gchar *field)
{
  guint64 value = 0;

  gst_structure_get_uint64 (stats, field, &value);
  return value;
}

static void
on_pad (GstElement *source, GstPad *pad, gpointer pipeline)
{
  GstElement *sink = gst_element_factory_make ("fakesink", NULL);
  GstPad *end = gst_element_get_static_pad (sink, "sink");

  g_object_set (sink, "async", FALSE, NULL);
  gst_bin_add (pipeline, sink);
  gst_element_sync_state_with_parent (sink);
  gst_pad_link (pad, end);
  gst_object_unref (end);
}

static GstBusSyncReply
on_message (GstBus *bus, GstMessage *message, gpointer unused)
{
  GError *error = NULL;

  if (GST_MESSAGE_TYPE (message) != GST_MESSAGE_ERROR)
    return GST_BUS_PASS;
  gst_message_parse_error (message, &error, NULL);
  g_printerr ("%s\n", error->message);
  g_error_free (error);
  g_atomic_int_inc (&failed);
  return GST_BUS_PASS;
}

static void
make (Reader *reader, const char *url, guint64 latency_ms)
{
  GstBus *bus;

  reader->pipeline = gst_pipeline_new (NULL);
  reader->source = gst_element_factory_make ("schedulesrc", NULL);
  if (!reader->source)
    g_error ("no element schedulesrc");
  g_object_set (reader->source, "location", url, "latency", latency_ms * GST_MSECOND, NULL);
  gst_bin_add (GST_BIN (reader->pipeline), reader->source);
  g_signal_connect (reader->source, "pad-added", G_CALLBACK (on_pad), reader->pipeline);
  bus = gst_element_get_bus (reader->pipeline);
  gst_bus_set_sync_handler (bus, on_message, NULL, NULL);
  gst_object_unref (bus);
}

static int
by_begin (const void *a, const void *b)
{
  const double one = ((const Reader *) a)->begin, other = ((const Reader *) b)->begin;

  return (one > other) - (one < other);
}

static int
by_value (const void *a, const void *b)
{
  const double one = *(const double *) a, other = *(const double *) b;

  return (one > other) - (one < other);
}

static void
report (Reader *readers, int n)
{
  static const char *const sums[] = { "packets", "in-time", "late", "lost", "group-missed",
    "repaired", "too-late", "group-bytes", "unicast-bytes", "stalls" };
  guint64 totals[G_N_ELEMENTS (sums)] = { 0 }, kept = 0;
  double start[MAX_READERS];
  guint most = 0;

  for (int i = 0; i < n; i++) {
    GstStructure *stats;
    guint groups = 0;
    g_object_get (readers[i].source, "stats", &stats, NULL);
    for (guint k = 0; k < G_N_ELEMENTS (sums); k++)
      totals[k] += get (stats, sums[k]);
    gst_structure_get_uint (stats, "groups-max", &groups);
    most = MAX (most, groups);
    kept = MAX (kept, get (stats, "memory-max") + get (stats, "file-max"));
    start[i] = ((double) get (stats, "start-up") - (double) get (stats, "start-up-wait")) / 1e6;
    gst_structure_free (stats);
  }
  for (guint k = 0; k < G_N_ELEMENTS (sums); k++)
    g_print ("%s %" G_GUINT64_FORMAT "\n", sums[k], totals[k]);
  qsort (start, (size_t) n, sizeof *start, by_value);
  g_print ("start_p50 %.1f\nstart_p99 %.1f\n", start[n / 2], start[n * 99 / 100]);
  g_print ("groups %u\nkept %" G_GUINT64_FORMAT "\nfailed %d\n", most, kept, failed);
}

int
main (int argc, char **argv)
{
  static Reader readers[MAX_READERS];
  const gint64 origin = g_get_monotonic_time ();
  double arrive, seconds;
  int n;

  gst_init (&argc, &argv);
  n = argc > 5 ? atoi (argv[1]) : 0;
  if (n < 1 || n > MAX_READERS)
    g_error ("usage: schedule_readers READERS LATENCY_MS ARRIVE_S SECONDS URL...");
  arrive = g_ascii_strtod (argv[3], NULL);
  seconds = g_ascii_strtod (argv[4], NULL);
  for (int i = 0; i < n; i++)
    readers[i].begin = g_random_double_range (0, arrive);
  qsort (readers, (size_t) n, sizeof *readers, by_begin);
  for (int i = 0; i < n; i++) {
    const gint64 due = origin + (gint64) (readers[i].begin * 1e6);
    make (&readers[i], argv[5 + i % (argc - 5)], (guint64) atoi (argv[2]));
    g_usleep ((gulong) MAX (0, due - g_get_monotonic_time ()));
    gst_element_set_state (readers[i].pipeline, GST_STATE_PLAYING);
  }
  g_usleep ((gulong) MAX (0, origin + (gint64) (seconds * 1e6) - g_get_monotonic_time ()));
  report (readers, n);
  return 0;
}
