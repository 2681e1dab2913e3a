// SPDX-License-Identifier: LGPL-2.1-or-later
// A fanoutsink that kernel-test.py controls by lines on the standard input, or a kernelrelay for
// kernelrelay-test.py. Each line is answered by one line.
//
//   start KEY=VALUE...         makes the sink with these properties and starts it
//   relay KEY=VALUE...         makes a kernelrelay instead
//   set KEY=VALUE...           sets properties
//   add HOST PORT              adds a reader; `remove` removes it
//   layers HOST PORT D T       sets a reader's highest spatial and temporal layer
//   delay HOST PORT MS         sets a reader's delay
//   frame SEQ TIME SIZE...     pushes a frame of packets of these sizes
//   picture                    pushes the next picture of a scalable stream, over and over
//   stats                      answers with the fields of the statistics that are no arrays
//   reader HOST PORT           answers with the same of the reader's statistics
#include <gst/check/gstharness.h>
#include <gst/gst.h>
#include <stdio.h>
#include <string.h>

#include "avc.h"

static GstHarness *harness;
static GstElement *sink; // or the kernelrelay
static const gchar *stats_property;
static gchar *error;

static GstBusSyncReply
on_message (GstBus *bus, GstMessage *message, gpointer data)
{
  GError *err = NULL;

  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR && !error) {
    gst_message_parse_error (message, &err, NULL);
    error = g_strdup (err->message);
    g_error_free (err);
  }
  gst_message_unref (message);
  return GST_BUS_DROP;
}

static void
set (gchar **words)
{
  for (; *words; words++) {
    gchar **pair = g_strsplit (*words, "=", 2);

    gst_util_set_object_arg (G_OBJECT (sink), pair[0], pair[1]);
    g_strfreev (pair);
  }
}

static void
make (const gchar *element, const gchar *stats)
{
  GstBus *bus = gst_bus_new ();

  sink = gst_element_factory_make (element, NULL);
  stats_property = stats;
  gst_bus_set_sync_handler (bus, on_message, NULL, NULL);
  gst_element_set_bus (sink, bus);
}

static void
start_relay (gchar **words)
{
  make ("kernelrelay", "stats");
  set (words);
  gst_element_set_state (sink, GST_STATE_PLAYING);
  printf ("%s\n", error ? error : "ok");
}

static void
start (gchar **words)
{
  make ("fanoutsink", "fanout-stats");
  g_object_set (sink, "sync", FALSE, "async", FALSE, NULL);
  set (words);
  if (gst_element_set_state (sink, GST_STATE_PLAYING) != GST_STATE_CHANGE_FAILURE) {
    harness = gst_harness_new_with_element (sink, "sink", NULL);
    gst_harness_set_src_caps_str (
        harness, "application/x-rtp,media=video,clock-rate=90000,encoding-name=X-TEST,payload=96");
  }
  printf ("%s\n", error ? error : "ok");
}

static GstBuffer *
make_packet (guint seq, guint time, gsize size, gboolean marker)
{
  guint8 *data = g_malloc (size);

  data[0] = 0x80;
  data[1] = (guint8) (96 | (marker ? 0x80 : 0));
  GST_WRITE_UINT16_BE (data + 2, (guint16) seq);
  GST_WRITE_UINT32_BE (data + 4, time);
  GST_WRITE_UINT32_BE (data + 8, 0x12345678);
  for (gsize i = 12; i < size; i++)
    data[i] = (guint8) (seq * 7 + i);
  return gst_buffer_new_wrapped (data, size);
}

static void
push_frame (gchar **words)
{
  guint seq = (guint) atoi (words[0]), time = (guint) atoi (words[1]);
  GstBufferList *list = gst_buffer_list_new ();

  for (gchar **size = words + 2; *size; size++)
    gst_buffer_list_add (list, make_packet (seq++, time, (gsize) atoi (*size), size[1] == NULL));
  printf ("%s\n", gst_flow_get_name (gst_pad_push_list (harness->srcpad, list)));
}

static gboolean
load_stream (AvcRtp *rtp)
{
  static Avc avc;

  if (!avc_load (&avc, "svc_3s3t.264"))
    return FALSE;
  *rtp = avc_packetize (&avc, TRUE, 0);
  gst_harness_set_src_caps_str (
      harness, "application/x-rtp,media=video,clock-rate=90000,encoding-name=H264,payload=96");
  return TRUE;
}

static void
push_picture (void)
{
  GstBufferList *list = gst_buffer_list_new ();
  gboolean marker = FALSE;
  static guint16 seq = 65300;
  static guint time;
  static AvcRtp rtp;
  static size_t at;

  if (!rtp.n && !load_stream (&rtp)) {
    puts ("no stream");
    return;
  }
  for (; !marker; at = (at + 1) % rtp.n) {
    guint8 *data = g_memdup2 (rtp.packets[at].data, rtp.packets[at].len);

    GST_WRITE_UINT16_BE (data + 2, seq++);
    GST_WRITE_UINT32_BE (data + 4, time);
    marker = data[1] >> 7;
    gst_buffer_list_add (list, gst_buffer_new_wrapped (data, rtp.packets[at].len));
  }
  time += 3000;
  printf ("%s\n", gst_flow_get_name (gst_pad_push_list (harness->srcpad, list)));
}

static gboolean
print_field (GQuark field, const GValue *value, gpointer data)
{
  if (G_VALUE_HOLDS_UINT64 (value))
    printf ("%s=%" G_GUINT64_FORMAT " ", g_quark_to_string (field), g_value_get_uint64 (value));
  else if (G_VALUE_HOLDS_UINT (value))
    printf ("%s=%u ", g_quark_to_string (field), g_value_get_uint (value));
  else if (G_VALUE_HOLDS_BOOLEAN (value))
    printf ("%s=%d ", g_quark_to_string (field), g_value_get_boolean (value));
  else if (G_VALUE_HOLDS_STRING (value))
    printf ("%s=%s ", g_quark_to_string (field), g_value_get_string (value));
  return TRUE;
}

static void
print_structure (GstStructure *structure)
{
  if (structure)
    gst_structure_foreach (structure, print_field, NULL);
  putchar ('\n');
  g_clear_pointer (&structure, gst_structure_free);
}

static void
do_line (gchar **words)
{
  GstStructure *structure = NULL;
  gboolean ok = FALSE;

  if (g_str_equal (words[0], "start")) {
    start (words + 1);
  } else if (g_str_equal (words[0], "relay")) {
    start_relay (words + 1);
  } else if (g_str_equal (words[0], "set")) {
    set (words + 1);
    puts ("ok");
  } else if (g_str_equal (words[0], "frame")) {
    push_frame (words + 1);
  } else if (g_str_equal (words[0], "picture")) {
    push_picture ();
  } else if (g_str_equal (words[0], "layers")) {
    g_signal_emit_by_name (
        sink, "set-layers", words[1], atoi (words[2]), atoi (words[3]), -1, atoi (words[4]), &ok);
    puts (ok ? "ok" : "refused");
  } else if (g_str_equal (words[0], "delay")) {
    g_signal_emit_by_name (
        sink, "set-delay", words[1], atoi (words[2]), (guint64) atoi (words[3]) * GST_MSECOND, &ok);
    puts (ok ? "ok" : "refused");
  } else if (g_str_equal (words[0], "stats")) {
    g_object_get (sink, stats_property, &structure, NULL);
    print_structure (structure);
  } else if (g_str_equal (words[0], "reader")) {
    g_signal_emit_by_name (sink, "get-stats", words[1], atoi (words[2]), &structure);
    print_structure (structure);
  } else {
    g_signal_emit_by_name (sink, words[0], words[1], atoi (words[2]));
    puts ("ok");
  }
  fflush (stdout);
}

int
main (int argc, char **argv)
{
  static char line[1 << 16];

  gst_init (&argc, &argv);
  while (fgets (line, sizeof line, stdin)) {
    gchar **words = g_strsplit (g_strchomp (line), " ", -1);

    do_line (words);
    g_strfreev (words);
  }
  return 0;
}
