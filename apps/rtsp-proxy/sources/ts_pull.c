// SPDX-License-Identifier: LGPL-2.1-or-later

// Receives MPEG-TS over UDP, with or without RTP, and payloads its elementary streams as they
// arrive. The demultiplexer gives timestamps from the sender's clock (PCR), fitted to the local
// clock.

#include "base/clock.h"
#include "base/element.h"
#include "rtp/rtp.h"
#include "sources/pull_uri.h"
#include "sources/tracks.h"
#include "sources/ts_clock.h"
#include "sources/ts_framer.h"
#include "sources/ts_cues.h"
#include "sources/ts_guard.h"
#include "sources/udp_input.h"

// Latency of the jitter buffer that puts RTP packets in order before tsdemux.
#define REORDER_MS 50

#define MAX_CHAIN 3

typedef struct {
  const PullContext *context;
  gchar *uri;           // a copy that outlives the context
  GstElement *pipeline; // not owned
  UdpInput *input;
  Tracks *tracks;
  gint payload;    // RTP payload type; -1: not in RTP
  TsFramer framer; // of datagrams that are not in RTP
  // The elements after the source, the demultiplexer last. Not owned; used only in the source's
  // thread.
  GstElement *chain[MAX_CHAIN];
  guint n_chain;
} TsPull;

static void
pull_free (gpointer data)
{
  TsPull *self = data;
  UdpStats stats = { 0 };

  udp_input_add_stats (self->input, &stats);
  udp_stats_log (&stats, self->uri);
  g_free (self->uri);
  udp_input_free (self->input);
  tracks_free (self->tracks);
  g_free (self);
}

// Returns a datagram of whole packets, made of this one. Returns NULL if there are none in it.
// (transfer full)
static GstBuffer *
frame (TsPull *self, GstBuffer *datagram, const GstMapInfo *map)
{
  GByteArray *out = g_byte_array_new ();
  GstBuffer *framed = NULL;

  if (ts_framer_push (&self->framer, map->data, map->size, out)) {
    framed = gst_buffer_new_allocate (NULL, out->len, NULL); // perhaps of no bytes
    gst_buffer_fill (framed, 0, out->data, out->len);
    gst_buffer_copy_into (framed, datagram,
        GST_BUFFER_COPY_FLAGS | GST_BUFFER_COPY_TIMESTAMPS | GST_BUFFER_COPY_META, 0, -1);
  }
  g_byte_array_unref (out);
  return framed;
}

// Checks a datagram, and replaces it by one of whole packets. Returns FALSE if it has none.
static gboolean
take_datagram (TsPull *self, GstBuffer **datagram)
{
  GstBuffer *framed = NULL;
  gboolean valid;
  GstMapInfo map;
  WeirRtp rtp;

  if (!gst_buffer_map (*datagram, &map, GST_MAP_READ))
    return FALSE;
  if (self->payload >= 0) {
    valid =
        weir_rtp_parse (map.data, map.size, &rtp) == 0 && rtp.pt == self->payload
        && ts_framer_is_whole (&self->framer, map.data + rtp.payload_offset, rtp.payload_length);
  } else if (!(valid = ts_framer_is_whole (&self->framer, map.data, map.size))) {
    framed = frame (self, *datagram, &map);
    valid = framed != NULL;
  }
  gst_buffer_unmap (*datagram, &map);
  if (framed) {
    gst_buffer_unref (*datagram);
    *datagram = framed;
  }
  return valid;
}

// ---- the demultiplexer ----

// A message in flight may hold the demultiplexer, which then removes its pads after the pipeline is
// gone, or while another thread destroys it. So its signal handlers get a weak reference.
static Tracks *
tracks_of (GstElement *pipeline)
{
  return ((TsPull *) g_object_get_data (G_OBJECT (pipeline), "pull"))->tracks;
}

static void
on_pad_added (GstElement *demux, GstPad *pad, gpointer weak)
{
  GstElement *pipeline = g_weak_ref_get (weak);

  if (pipeline)
    tracks_add_stream (tracks_of (pipeline), pad);
  g_clear_pointer (&pipeline, gst_object_unref);
}

static void
on_pad_removed (GstElement *demux, GstPad *pad, gpointer weak)
{
  GstElement *pipeline = g_weak_ref_get (weak);

  if (pipeline)
    tracks_remove_stream (tracks_of (pipeline), pad);
  g_clear_pointer (&pipeline, gst_object_unref);
}

static void
on_no_more_pads (GstElement *demux, gpointer weak)
{
  GstElement *pipeline = g_weak_ref_get (weak);

  if (pipeline)
    tracks_complete (tracks_of (pipeline));
  g_clear_pointer (&pipeline, gst_object_unref);
}

static void
weak_free (gpointer weak, GClosure *closure)
{
  g_weak_ref_clear (weak);
  g_free (weak);
}

static void
listen_to (TsPull *self, GstElement *demux, const gchar *signal, GCallback handler)
{
  GWeakRef *weak = g_new (GWeakRef, 1);

  g_weak_ref_init (weak, self->pipeline);
  g_signal_connect_data (demux, signal, handler, weak, weak_free, 0);
}

static void
drop_chain (TsPull *self)
{
  for (guint i = 0; i < self->n_chain; i++) {
    gst_element_set_locked_state (self->chain[i], TRUE);
    gst_element_set_state (self->chain[i], GST_STATE_NULL);
  }
  for (guint i = 0; i < self->n_chain; i++)
    gst_bin_remove (GST_BIN (self->pipeline), self->chain[i]);
  self->n_chain = 0;
}

// Makes tsdemux, with a jitter buffer and depayloader before it if the stream is in RTP.
static gboolean
make_chain (TsPull *self, GError **error)
{
  static const gchar *const elements[MAX_CHAIN] = { "rtpjitterbuffer", "rtpmp2tdepay", "tsdemux" };

  for (guint i = self->payload < 0 ? MAX_CHAIN - 1 : 0; i < MAX_CHAIN; i++) {
    GstElement *element = element_make (elements[i], error);

    if (!element)
      return FALSE;
    if (i == 0)
      g_object_set (element, "latency", REORDER_MS, NULL);
    gst_bin_add (GST_BIN (self->pipeline), element);
    if (self->n_chain > 0)
      gst_element_link (self->chain[self->n_chain - 1], element);
    self->chain[self->n_chain++] = element;
  }
  return TRUE;
}

// Makes a new chain for each sender that begins. A restarted sender may send other tables with the
// old version number, and other times.
static gboolean
begin_chain (TsPull *self, GstPad *source, GError **error)
{
  GstElement *demux;
  GstPad *pad;

  if (!make_chain (self, error))
    return FALSE;
  demux = self->chain[self->n_chain - 1];
  ts_clock_add (demux);
  ts_guard_add (demux);
  ts_cues_add (demux, self->context);
  listen_to (self, demux, "pad-added", G_CALLBACK (on_pad_added));
  listen_to (self, demux, "pad-removed", G_CALLBACK (on_pad_removed));
  listen_to (self, demux, "no-more-pads", G_CALLBACK (on_no_more_pads));
  for (guint i = self->n_chain; i-- > 0;)
    gst_element_sync_state_with_parent (self->chain[i]);
  pad = gst_element_get_static_pad (self->chain[0], "sink");
  gst_pad_link (source, pad);
  gst_object_unref (pad);
  return TRUE;
}

// Blocks the pad, so that a new chain gets the stream's events before the datagram.
static GstPadProbeReturn
on_datagram (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  TsPull *self = data;
  GstBuffer *datagram = GST_PAD_PROBE_INFO_BUFFER (info);
  gint64 now = clock_now ();
  GError *error = NULL;
  guint32 overflow;

  if (!udp_input_admits (self->input, datagram, now))
    return GST_PAD_PROBE_DROP;
  overflow = udp_input_take_overflow (self->input, now);
  if (overflow > 0)
    relay_count (self->context->source, RELAY_OVERFLOW, overflow);
  if (!take_datagram (self, &datagram)) {
    udp_input_refuse (self->input);
    return GST_PAD_PROBE_DROP;
  }
  info->data = datagram;
  if (gst_buffer_get_size (datagram) == 0) // the next one ends its packet
    return GST_PAD_PROBE_DROP;
  if (!udp_input_accept (self->input, datagram, now))
    return GST_PAD_PROBE_PASS;
  drop_chain (self);
  if (begin_chain (self, pad, &error))
    return GST_PAD_PROBE_PASS;
  self->context->callbacks->ended (self->context->owner, error->message);
  g_error_free (error);
  return GST_PAD_PROBE_DROP;
}

static gboolean
build (TsPull *self, GError **error)
{
  GstElement *source = udp_input_add_source (self->input, GST_BIN (self->pipeline), error);
  GstCaps *caps;
  GstPad *pad;

  if (!source)
    return FALSE;
  caps = self->payload >= 0 ? gst_caps_ref (self->context->config->rtp)
                            : gst_caps_from_string (
                                  "video/mpegts, systemstream=(boolean)true, packetsize=(int)188");
  g_object_set (source, "caps", caps, NULL);
  gst_caps_unref (caps);
  pad = gst_element_get_static_pad (source, "src");
  gst_pad_add_probe (
      pad, GST_PAD_PROBE_TYPE_BLOCK | GST_PAD_PROBE_TYPE_BUFFER, on_datagram, self, NULL);
  gst_object_unref (pad);
  return TRUE;
}

GstElement *
ts_pull_new (const PullContext *context, GError **error)
{
  const PullConfig *config = context->config;
  UdpInput *input = udp_input_new (&config->endpoint, error);
  TsPull *self;

  if (!input)
    return NULL;
  self = g_new0 (TsPull, 1);
  self->context = context;
  self->uri = g_strdup (context->config->uri);
  self->input = input;
  self->payload = -1;
  if (config->rtp)
    gst_structure_get_int (gst_caps_get_structure (config->rtp, 0), "payload", &self->payload);
  self->pipeline = gst_pipeline_new (NULL);
  self->tracks = tracks_new (context, self->pipeline, TRACKS_ARRIVAL, "upstream");
  g_object_set_data_full (G_OBJECT (self->pipeline), "pull", self, pull_free);
  if (build (self, error))
    return self->pipeline;
  gst_object_unref (gst_object_ref_sink (self->pipeline));
  return NULL;
}

// ---- the URI ----

gchar *
ts_pull_check (const gchar *uri, PullUriFlags flags, PullConfig *config)
{
  GHashTable *query = pull_uri_query (uri);
  gchar *wrong;

  if (!query)
    return g_strdup ("cannot parse the parameters after the '?'");
  wrong = pull_uri_endpoint (uri, query, 65535, &config->endpoint);
  if (!wrong)
    wrong = pull_uri_finish (query, "iface");
  g_hash_table_unref (query);
  config->uri = g_strdup (uri);
  return wrong;
}
