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
engine_track_push (EngineTrack *self, const WeirIngestPacket *packet, guint64 base)
{
  const PullContext *context = self->context;

  relay_push_more (context->source, self->index, gst_buffer_new_memdup (packet->data, packet->len),
      packet->arrival_ns, base);
  context->callbacks->packet (context->owner, packet->arrival_ns);
}

void
engine_track_settle (EngineTrack *self)
{
  relay_settle (self->context->source, self->index);
}

void
engine_track_count (EngineTrack *self, RelayCount what, guint32 n)
{
  relay_count (self->context->source, what, n);
}

void
engine_track_set_ntp (EngineTrack *self, const WeirNtpMap *map)
{
  relay_set_ntp_map (self->context->source, self->index, map);
}

// ---- all tracks of a run ----

gboolean
engine_tracks_begin (const PullContext *context, GPtrArray *tracks)
{
  GPtrArray *caps = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);
  gboolean any;

  for (guint i = 0; i < tracks->len; i++) {
    EngineTrack *track = g_ptr_array_index (tracks, i);

    if (!track->in)
      continue;
    track->index = caps->len;
    g_ptr_array_add (caps, gst_caps_ref (track->caps));
  }
  any = caps->len > 0;
  if (any && !g_atomic_int_get (&context->cancelled))
    context->callbacks->begun (context->owner, relay_source_begin (context->source, caps));
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
