// SPDX-License-Identifier: LGPL-2.1-or-later
// Measures fanoutsink alone, with a clip in real time and more readers than a process could have
// connections.
//
//     many_bench WAY CLIP ADDRESS PORT READERS SECONDS
//
// WAY is a value of the property `gso`, or `kernel` for the kernel path. The readers are the ports
// from PORT on. Prints one line "name value" for each figure.

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <gst/gst.h>

static double
cpu_s (void)
{
  struct timespec t;

  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

static double
resident_bytes (void)
{
  gchar *text = NULL;
  double pages = 0;

  if (g_file_get_contents ("/proc/self/statm", &text, NULL, NULL))
    pages = g_ascii_strtod (strchr (text, ' '), NULL);
  g_free (text);
  return pages * (double) sysconf (_SC_PAGESIZE);
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

int
main (int argc, char **argv)
{
  GstElement *pipeline, *sink;
  GstStructure *before, *after;
  GError *error = NULL;
  double memory, cpu, packets, sends;
  gchar *launch;
  int readers, seconds;

  gst_init (&argc, &argv);
  if (argc != 7)
    g_error ("usage: many_bench WAY CLIP ADDRESS PORT READERS SECONDS");
  readers = atoi (argv[5]);
  seconds = atoi (argv[6]);
  launch = g_strdup_printf ("filesrc location=\"%s\" ! qtdemux ! h264parse ! rtph264pay mtu=1450 "
                            "aggregate-mode=zero-latency ! fanoutsink %s%s name=sink",
      argv[2], g_str_equal (argv[1], "kernel") ? "kernel=on" : "gso=",
      g_str_equal (argv[1], "kernel") ? "" : argv[1]);
  pipeline = gst_parse_launch (launch, &error);
  if (!pipeline)
    g_error ("%s", error->message);
  sink = gst_bin_get_by_name (GST_BIN (pipeline), "sink");

  gst_element_set_state (pipeline, GST_STATE_READY);
  memory = resident_bytes ();
  for (int i = 0; i < readers; i++)
    g_signal_emit_by_name (sink, "add", argv[3], atoi (argv[4]) + i);
  memory = resident_bytes () - memory;

  if (gst_element_set_state (pipeline, GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE)
    g_error ("the pipeline does not start: is the kernel path available?");
  gst_element_get_state (pipeline, NULL, NULL, 5 * GST_SECOND);
  g_usleep (G_USEC_PER_SEC);
  before = get_stats (sink);
  cpu = cpu_s ();
  g_usleep ((gulong) seconds * G_USEC_PER_SEC);
  cpu = cpu_s () - cpu;
  after = get_stats (sink);

  packets = (double) (get (after, "packets-sent") - get (before, "packets-sent"));
  g_print ("ns %.1f\n", 1e9 * cpu / packets);
  g_print ("cpu %.1f\n", 100 * cpu / seconds);
  g_print ("sent %.0f\n", packets);
  sends = (double) (get (after, "sends") - get (before, "sends") + get (after, "clones")
                    - get (before, "clones"));
  g_print ("segments %.1f\n", packets / sends);
  g_print ("dropped %" G_GUINT64_FORMAT "\n", get (after, "dropped"));
  g_print ("memory %.0f\n", memory / readers);

  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_structure_free (before);
  gst_structure_free (after);
  gst_object_unref (sink);
  gst_object_unref (pipeline);
  g_free (launch);
  return 0;
}
