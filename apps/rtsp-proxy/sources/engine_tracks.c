// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/engine_tracks.h"

#include <unistd.h>

#define REPORT_INTERVAL (5 * GST_SECOND)

static gint64 tick_ns = WEIR_INGEST_TICK_NS;

void
engine_tracks_set_tick (guint us)
{
  tick_ns = (gint64) us * 1000;
}

// Returns the process's engine, which is never freed, or NULL if there is no memory for it.
static WeirIngest *
get_engine (void)
{
  static GMutex lock;
  static WeirIngest *engine;
  WeirIngest *made;

  g_mutex_lock (&lock);
  if (!engine)
    engine = weir_ingest_new (&(WeirIngestSettings) { .tick_ns = tick_ns });
  made = engine;
  g_mutex_unlock (&lock);
  return made;
}

// ---- in and out ----

static WeirKeyRequest
key_request (const GstStructure *caps)
{
  gboolean set = FALSE;

  if (gst_structure_get_boolean (caps, "rtcp-fb-nack-pli", &set) && set)
    return WEIR_KEY_PLI;
  if (gst_structure_get_boolean (caps, "rtcp-fb-ccm-fir", &set) && set)
    return WEIR_KEY_FIR;
  return WEIR_KEY_NONE;
}

WeirTrackSettings
engine_track_settings (const GstCaps *caps)
{
  const GstStructure *s = gst_caps_get_structure (caps, 0);
  gint rate = 0;

  gst_structure_get_int (s, "clock-rate", &rate);
  return (WeirTrackSettings) { .key = key_request (s),
    .clock_rate = (guint32) MAX (rate, 0),
    .steady = true,
    .report_interval_ns = REPORT_INTERVAL,
    .ssrc = g_random_int (),
    .cname = "rtsp-proxy" };
}

gint
engine_track_add (EngineTrack *self, const WeirTrackSettings *settings, WeirIngestSockets sockets,
    const WeirIngestOps *ops)
{
  WeirIngest *engine = get_engine ();

  if (engine)
    return weir_ingest_add (engine, settings, sockets, ops, self, &self->in);
  if (sockets.rtp >= 0)
    close (sockets.rtp);
  if (sockets.rtcp >= 0)
    close (sockets.rtcp);
  return -ENOMEM;
}

void
engine_track_remove (EngineTrack *self, UdpStats *drops)
{
  WeirIngestStats stats = { 0 };

  if (!self->in)
    return;
  weir_ingest_remove (self->in, &stats);
  self->in = NULL;
  drops->n_foreign += stats.dropped[WEIR_INGEST_FOREIGN] + stats.dropped[WEIR_INGEST_OTHER_SSRC];
  drops->n_wrong += stats.dropped[WEIR_INGEST_MALFORMED] + stats.dropped[WEIR_INGEST_PAYLOAD_TYPE];
  drops->n_lost += stats.kernel_drops;
}

// ---- packets ----

void
engine_track_split_long (EngineTrack *self)
{
  const gchar *name =
      gst_structure_get_string (gst_caps_get_structure (self->caps, 0), "encoding-name");

  self->splits = !g_strcmp0 (name, "H264")   ? WEIR_SPLIT_H264
                 : !g_strcmp0 (name, "H265") ? WEIR_SPLIT_H265
                                             : WEIR_SPLIT_NONE;
}

// Pushes a long packet as several ones. Returns FALSE if it cannot be split.
static gboolean
push_split (EngineTrack *self, const WeirIngestPacket *packet, guint64 base)
{
  guint8 piece[ENGINE_TRACK_SPLIT];
  WeirSplit split;
  WeirRtp rtp;
  gsize n, len;

  if (weir_rtp_parse (packet->data, packet->len, &rtp) < 0)
    return FALSE;
  n = weir_split_begin (&split, self->splits, packet->data, &rtp, sizeof piece);
  if (n == 0)
    return FALSE;
  while ((len = weir_split_next (&split, piece)) > 0)
    relay_push_more (self->context->source, self->index, gst_buffer_new_memdup (piece, len),
        packet->arrival_ns, base);
  self->n_split = (guint16) (self->n_split + n - 1);
  return TRUE;
}

void
engine_track_push (EngineTrack *self, const WeirIngestPacket *packet, guint64 base)
{
  const PullContext *context = self->context;
  gboolean is_long = packet->len > ENGINE_TRACK_LONG, is_split;

  if (self->n_split)
    weir_rtp_set_seq (packet->data, (guint16) (packet->rtp.seq + self->n_split));
  is_split = is_long && self->splits && push_split (self, packet, base);
  if (is_long)
    relay_count (context->source, is_split ? RELAY_SPLIT : RELAY_LONG, 1);
  if (!is_split)
    relay_push_more (context->source, self->index,
        gst_buffer_new_memdup (packet->data, packet->len), packet->arrival_ns, base);
  context->callbacks->packet (context->owner, packet->arrival_ns);
}

static void
leave (EngineTrack *self)
{
  if (self->gate->leave)
    self->gate->leave (self);
}

void
engine_track_settled (gpointer data)
{
  EngineTrack *self = data;

  if (!self->gate->enter (self))
    return;
  relay_settle (self->context->source, self->index);
  leave (self);
}

void
engine_track_reported (gpointer data, const WeirNtpMap *map)
{
  EngineTrack *self = data;

  if (!self->gate->enter (self))
    return;
  relay_set_ntp_map (self->context->source, self->index, map);
  leave (self);
}

static void
count (EngineTrack *self, RelayCount what, guint32 n)
{
  if (!self->gate->enter (self))
    return;
  relay_count (self->context->source, what, n);
  leave (self);
}

void
engine_track_dropped (gpointer data, WeirIngestDrop reason)
{
  count (data, RELAY_REFUSED + reason, 1);
}

void
engine_track_repaired (gpointer data, WeirIngestRepair what)
{
  count (data, RELAY_REPAIRED + what, 1);
}

void
engine_track_overflowed (gpointer data, guint32 n)
{
  count (data, RELAY_OVERFLOW, n);
}

// ---- all tracks of a run ----

GPtrArray *
engine_tracks_list (GPtrArray *tracks)
{
  GPtrArray *caps = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);

  for (guint i = 0; i < tracks->len; i++) {
    EngineTrack *track = g_ptr_array_index (tracks, i);

    if (!track->in)
      continue;
    track->index = caps->len;
    g_ptr_array_add (caps, gst_caps_ref (track->caps));
  }
  return caps;
}

void
engine_tracks_tell (const PullContext *context, GPtrArray *caps)
{
  if (caps->len > 0 && !g_atomic_int_get (&context->cancelled))
    context->callbacks->begun (context->owner, relay_source_begin (context->source, caps));
}

gboolean
engine_tracks_begin (const PullContext *context, GPtrArray *tracks)
{
  GPtrArray *caps = engine_tracks_list (tracks);
  gboolean any = caps->len > 0;

  engine_tracks_tell (context, caps);
  g_ptr_array_unref (caps);
  return any;
}

void
engine_tracks_ask_key (GPtrArray *tracks, guint index)
{
  for (guint i = 0; i < tracks->len; i++) {
    const EngineTrack *track = g_ptr_array_index (tracks, i);

    if (track->in && track->index == index)
      weir_ingest_ask_key (track->in);
  }
}
