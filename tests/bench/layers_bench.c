// SPDX-License-Identifier: LGPL-2.1-or-later
// Measures the cost of layers: reading a frame's packets once, projecting the frame for each layer
// set, writing the kept packets, and the whole element svclayerfilter. Prints one line "layers,
// step, ns" for each, separated by tabs, in ns of CPU time per packet.

#include <time.h>

#include <gst/gst.h>

#include "avc.h"
#include "svc/project.h"

#define RUNS 20

static double
now_ns (void)
{
  struct timespec t;

  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &t);
  return (double) t.tv_sec * 1e9 + (double) t.tv_nsec;
}

typedef struct {
  double read, project, write;
  size_t packets, kept;
} Cost;

static void
run_frame (WeirFrame *frame, WeirSvc *svc, WeirProjection *projection, Cost *cost)
{
  static WeirProjected how[8192];
  static uint8_t copy[AVC_MTU + 100];
  double start = now_ns (), read, projected;

  weir_frame_read (frame);
  weir_svc_note_frame (svc, frame);
  read = now_ns ();
  cost->kept += weir_project (projection, svc, frame, how);
  projected = now_ns ();
  for (size_t i = 0; i < frame->n_packets; i++) {
    if (!how[i].keep)
      continue;
    memcpy (copy, frame->packets[i].data, frame->packets[i].len);
    weir_project_write (projection, svc, frame, i, &how[i], copy);
  }
  cost->write += now_ns () - projected;
  cost->project += projected - read;
  cost->read += read - start;
  cost->packets += frame->n_packets;
  weir_frame_clear (frame);
}

static void
bench_core (const AvcRtp *rtp, const char *what, WeirLayerSet set, WeirOutput output)
{
  Cost cost = { 0 };
  double add = 0;

  for (int run = 0; run < RUNS; run++) {
    WeirFrame frame;
    WeirSvc svc;
    WeirProjection projection;

    weir_frame_init (&frame, WEIR_CODEC_H264, false);
    weir_svc_init (&svc);
    weir_projection_init (&projection, WEIR_CODEC_H264, set, output);
    for (size_t i = 0; i < rtp->n;) {
      double start = now_ns ();

      while (
          i < rtp->n
          && weir_frame_add (&frame, rtp->packets[i].data, rtp->packets[i].len, i) == WEIR_ADD_OK)
        i++;
      add += now_ns () - start;
      run_frame (&frame, &svc, &projection, &cost);
      i++;
    }
    weir_frame_free (&frame);
    weir_svc_free (&svc);
  }
  printf ("%s\tadd\t%.1f\n", what, add / (double) cost.packets);
  printf ("%s\tread\t%.1f\n", what, cost.read / (double) cost.packets);
  printf ("%s\tproject\t%.1f\n", what, cost.project / (double) cost.packets);
  printf ("%s\twrite\t%.1f\n", what, cost.write / (double) (cost.kept ? cost.kept : 1));
}

static GstFlowReturn
count (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  gst_buffer_unref (buffer);
  return GST_FLOW_OK;
}

static GstFlowReturn
count_list (GstPad *pad, GstObject *parent, GstBufferList *list)
{
  gst_buffer_list_unref (list);
  return GST_FLOW_OK;
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

static GstBufferList *
next_frame (const AvcRtp *rtp, size_t *at)
{
  GstBufferList *list = gst_buffer_list_new ();
  bool marker = false;

  while (*at < rtp->n && !marker) {
    const AvcPacket *packet = &rtp->packets[(*at)++];

    marker = packet->data[1] >> 7;
    gst_buffer_list_insert (list, -1, gst_buffer_new_memdup (packet->data, packet->len));
  }
  return list;
}

// Times only the pushing, not the making of the packets.
static void
bench_element (const AvcRtp *rtp, const char *what, gint spatial, gint temporal, const char *output)
{
  GstElement *filter = gst_element_factory_make ("svclayerfilter", NULL);
  GstPad *src = gst_pad_new ("src", GST_PAD_SRC), *sink = gst_pad_new ("sink", GST_PAD_SINK);
  GstPad *in = gst_element_get_static_pad (filter, "sink");
  GstPad *out = gst_element_get_static_pad (filter, "src");
  double busy = 0;
  size_t packets = 0;

  g_object_set (filter, "max-spatial", spatial, "max-temporal", temporal, NULL);
  gst_util_set_object_arg (G_OBJECT (filter), "output-mode", output);
  gst_pad_set_chain_function (sink, count);
  gst_pad_set_chain_list_function (sink, count_list);
  gst_pad_set_active (src, TRUE);
  gst_pad_set_active (sink, TRUE);
  gst_pad_link (src, in);
  gst_pad_link (out, sink);
  gst_element_set_state (filter, GST_STATE_PLAYING);
  for (int run = 0; run < RUNS; run++) {
    size_t at = 0;

    push_events (src);
    while (at < rtp->n) {
      GstBufferList *list = next_frame (rtp, &at);
      double start = now_ns ();

      packets += gst_buffer_list_length (list);
      gst_pad_push_list (src, list);
      busy += now_ns () - start;
    }
  }
  printf ("%s\tsvclayerfilter\t%.1f\n", what, busy / (double) packets);
  gst_element_set_state (filter, GST_STATE_NULL);
  gst_object_unref (in);
  gst_object_unref (out);
  gst_object_unref (filter);
  gst_object_unref (src);
  gst_object_unref (sink);
}

int
main (int argc, char **argv)
{
  Avc avc;
  AvcRtp plain, aggregates;

  gst_init (&argc, &argv);
  if (!avc_load (&avc, "svc_3s3t.264"))
    return 1;
  plain = avc_packetize (&avc, false, 0);
  aggregates = avc_packetize (&avc, true, 0);
  bench_core (&plain, "all", WEIR_LAYER_SET_ALL, WEIR_OUTPUT_SVC);
  bench_core (&plain, "spatial 1", (WeirLayerSet) { 1, -1, -1 }, WEIR_OUTPUT_SVC);
  bench_core (&plain, "1, temporal 1", (WeirLayerSet) { 1, 1, -1 }, WEIR_OUTPUT_SVC);
  bench_core (&plain, "2, avc", (WeirLayerSet) { 2, -1, -1 }, WEIR_OUTPUT_AVC);
  bench_core (&aggregates, "1, aggregates", (WeirLayerSet) { 1, -1, -1 }, WEIR_OUTPUT_SVC);
  bench_element (&plain, "all", -1, -1, "svc");
  bench_element (&plain, "spatial 1", 1, -1, "svc");
  bench_element (&plain, "1, temporal 1", 1, 1, "svc");
  bench_element (&plain, "2, avc", 2, -1, "avc");
  bench_element (&aggregates, "1, aggregates", 1, -1, "svc");
  free (plain.packets);
  free (aggregates.packets);
  avc_free (&avc);
  return 0;
}
