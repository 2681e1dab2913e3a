// SPDX-License-Identifier: LGPL-2.1-or-later
// The packets of a layer come from one thread at a time, those of two layers may come at once.
#include "outlets/webrtc/webrtc_simulcast.h"

#include "base/log.h"
#include "relay/relay_caps.h"
#include "webrtc/simulcast.h"

#define NOBODY WEIR_SIMULCAST_NONE

G_STATIC_ASSERT (SDP_LAYERS_MAX <= WEIR_SIMULCAST_LAYERS);

typedef struct {
  WebrtcSimulcast *of;
  Publication *publication;
  guint64 run;                // that took its last packet; 0: none did; guarded by the lock
  WeirSimulcastView pictures; // likewise
  gint asked; // the layer of which a keyframe was asked for; NOBODY: none is wanted; likewise
} View;

struct _WebrtcSimulcast {
  gatomicrefcount refs; // one for each further view
  PublicationTracks *shared;
  gchar *path, *peer;
  guint track;
  gchar *rids[SDP_LAYERS_MAX];
  void (*ask_key) (gpointer owner, guint layer);
  gpointer owner;
  GDestroyNotify free_owner;

  GMutex lock; // guards `layers` and what of the views it says; not held across a call of others
  WeirSimulcast layers;
  LogLimit changes;
  View views[SDP_LAYERS_MAX]; // by rank; the first one is the mount's
};

static guint
get_n (const WebrtcSimulcast *self)
{
  return (guint) self->layers.n_layers;
}

// ---- views ----

static void
push (const PublishRun *run, guint track, const WeirIngestPacket *packet)
{
  EngineTrack out = { .context = publication_context (run), .index = track };

  engine_track_push (&out, packet, RELAY_NO_BASE);
}

static void
view_push (const View *self, guint track, const WeirIngestPacket *packet)
{
  PublishRun *run = publication_enter (self->publication);

  if (!run)
    return;
  push (run, track, packet);
  publication_leave (run);
}

// An upstream that begins gets a keyframe first. Call with the lock held.
static void
view_note_run (View *self, const PublishRun *run)
{
  const guint64 number = run ? publication_get_number (run) : 0;

  if (number && number != self->run) {
    weir_simulcast_view_init (&self->pictures, self->pictures.rank, self->pictures.ssrc);
    self->asked = NOBODY;
  }
  self->run = number;
}

static gboolean
view_is_used (const View *self)
{
  PublishRun *run = publication_enter (self->publication);

  if (run)
    publication_leave (run);
  return run != NULL;
}

// Returns the layer that the view has, or is to have, or NOBODY. Call with the lock held.
static gint
view_get_layer (const View *self)
{
  const gint wanted = weir_simulcast_view_wanted (&self->of->layers, &self->pictures);

  return wanted == NOBODY ? self->pictures.current : wanted;
}

// Returns the layer of which a keyframe is to be asked for, so that the view can change to it, or
// NOBODY. Call with the lock held.
static gint
view_find_request (View *self)
{
  const gint wanted = weir_simulcast_view_wanted (&self->of->layers, &self->pictures);
  const gboolean is_new = wanted != self->asked;

  self->asked = wanted;
  return is_new ? wanted : NOBODY;
}

static void
on_displaced (gpointer view)
{
  // So is the publication of the mount, and the whole publisher ends.
}

static void
on_ask_key (gpointer view, guint track)
{
  View *self = view;
  gint layer;

  if (track != self->of->track)
    return;
  g_mutex_lock (&self->of->lock);
  layer = view_get_layer (self);
  g_mutex_unlock (&self->of->lock);
  if (layer != NOBODY)
    self->of->ask_key (self->of->owner, (guint) layer);
}

// ---- packets ----

static void
hear (WebrtcSimulcast *self, const WeirIngestPacket *packet)
{
  __atomic_store_n (&self->shared->heard, packet->arrival_ns, __ATOMIC_RELAXED);
  publication_hear (self->shared->publication, packet->arrival_ns);
}

static void
note_change (WebrtcSimulcast *self, guint layer)
{
  publication_note_layer (self->shared->publication, self->rids[layer]);
  log_event_limited (&self->changes, "publisher %s: %s has layer %s now", self->peer, self->path,
      self->rids[layer]);
}

// Passes a packet to a view if it is one of it.
static void
offer (View *view, const WeirSimulcastPacket *read, const WeirIngestPacket *packet)
{
  WebrtcSimulcast *self = view->of;
  PublishRun *run = publication_enter (view->publication);
  gboolean is_taken, changes;
  gint former, request;

  g_mutex_lock (&self->lock);
  former = view->pictures.current;
  view_note_run (view, run);
  is_taken = weir_simulcast_view_take (&self->layers, &view->pictures, read, packet->data);
  changes = view->pictures.current != former;
  request = view_find_request (view);
  g_mutex_unlock (&self->lock);
  if (changes && view == self->views)
    note_change (self, (guint) read->layer);
  if (is_taken && run)
    push (run, self->track, packet);
  g_clear_pointer (&run, publication_leave);
  if (request != NOBODY)
    self->ask_key (self->owner, (guint) request);
}

void
webrtc_simulcast_take (WebrtcSimulcast *self, guint layer, const WeirIngestPacket *packet)
{
  WeirSimulcastPacket read;
  gint wrong;

  hear (self, packet);
  g_mutex_lock (&self->lock);
  wrong = weir_simulcast_take (
      &self->layers, layer, packet->data, packet->len, packet->arrival_ns, &read);
  g_mutex_unlock (&self->lock);
  for (guint i = 0; !wrong && i < get_n (self); i++)
    offer (&self->views[i], &read, packet);
}

void
webrtc_simulcast_take_sound (WebrtcSimulcast *self, guint track, const WeirIngestPacket *packet)
{
  hear (self, packet);
  for (guint i = 0; i < get_n (self); i++)
    view_push (&self->views[i], track, packet);
}

// ---- what goes with them ----

static void
pass_report (const View *self, guint track, const WeirNtpMap *map)
{
  PublishRun *run = publication_enter (self->publication);

  if (!run)
    return;
  relay_set_ntp_map (publication_context (run)->source, track, map);
  publication_leave (run);
}

void
webrtc_simulcast_report (WebrtcSimulcast *self, guint track, guint layer, const WeirNtpMap *map)
{
  if (track == self->track) {
    g_mutex_lock (&self->lock);
    weir_simulcast_report (&self->layers, layer, map);
    g_mutex_unlock (&self->lock);
  }
  for (guint i = 0; i < get_n (self); i++) {
    View *view = &self->views[i];
    WeirNtpMap own = *map;
    gboolean has = TRUE;

    if (track == self->track) {
      g_mutex_lock (&self->lock);
      has = view->pictures.current == (gint) layer
            && weir_simulcast_view_report (&self->layers, &view->pictures, &own);
      g_mutex_unlock (&self->lock);
    }
    if (has)
      pass_report (view, track, &own);
  }
}

void
webrtc_simulcast_settle (WebrtcSimulcast *self, guint track)
{
  for (guint i = 0; i < get_n (self); i++) {
    PublishRun *run = publication_enter (self->views[i].publication);

    if (!run)
      continue;
    relay_settle (publication_context (run)->source, track);
    publication_leave (run);
  }
}

void
webrtc_simulcast_count (WebrtcSimulcast *self, RelayCount what, guint n)
{
  PublishRun *run = publication_enter (self->shared->publication);

  if (!run)
    return;
  relay_count (publication_context (run)->source, what, n);
  publication_leave (run);
}

guint
webrtc_simulcast_get_layer (WebrtcSimulcast *self)
{
  gint layer;

  g_mutex_lock (&self->lock);
  layer = view_get_layer (&self->views[0]);
  g_mutex_unlock (&self->lock);
  return (guint) MAX (layer, 0);
}

gboolean
webrtc_simulcast_is_used (WebrtcSimulcast *self, guint layer)
{
  gboolean is_used = FALSE;

  for (guint i = 0; !is_used && i < get_n (self); i++) {
    View *view = &self->views[i];
    gboolean has;

    g_mutex_lock (&self->lock);
    has = view_get_layer (view) == (gint) layer;
    g_mutex_unlock (&self->lock);
    is_used = has && view_is_used (view);
  }
  return is_used;
}

// ---- the life of it ----

static void
unref (gpointer data)
{
  WebrtcSimulcast *self = data;

  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  if (self->free_owner)
    self->free_owner (self->owner);
  for (guint i = 0; i < get_n (self); i++)
    g_free (self->rids[i]);
  g_free (self->path);
  g_free (self->peer);
  g_mutex_clear (&self->lock);
  g_free (self);
}

static void
unref_view (gpointer view)
{
  unref (((View *) view)->of);
}

static void
add_view (WebrtcSimulcast *self, guint rank, const WebrtcSimulcastParts *parts)
{
  static const PublicationOps ops = { on_displaced, on_ask_key };
  // Who has the mount has the ranks, too: a former publisher is about to give them up.
  const PublicationClaim claim = { .path = parts->path,
    .peer = parts->peer,
    .identity = parts->identity,
    .takeover = TRUE,
    .rank = rank };
  View *view = &self->views[rank];

  view->of = self;
  view->asked = NOBODY;
  weir_simulcast_view_init (&view->pictures, rank, g_random_int ());
  if (rank == 0) {
    view->publication = parts->shared->publication;
    return;
  }
  g_atomic_ref_count_inc (&self->refs);
  view->publication = publication_claim (&claim, &ops, view, unref_view, NULL);
  publication_begin (view->publication, "WebRTC", parts->caps);
}

WebrtcSimulcast *
webrtc_simulcast_new (const WebrtcSimulcastParts *parts)
{
  const GstCaps *caps = g_ptr_array_index (parts->caps, parts->track);
  WebrtcSimulcast *self = g_new0 (WebrtcSimulcast, 1);
  gint rate = 0;

  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->shared = parts->shared;
  self->path = g_strdup (parts->path);
  self->peer = g_strdup (parts->peer);
  self->track = parts->track;
  self->ask_key = parts->ask_key;
  self->owner = parts->owner;
  self->free_owner = parts->free_owner;
  self->changes = LOG_LIMIT_FAILURES;
  gst_structure_get_int (gst_caps_get_structure (caps, 0), "clock-rate", &rate);
  weir_simulcast_init (&self->layers, parts->n_layers, relay_caps_get_codec (caps), (guint32) rate);
  for (guint i = 0; i < parts->n_layers; i++)
    self->rids[i] = g_strdup (parts->rids[i]);
  for (guint i = 0; i < parts->n_layers; i++)
    add_view (self, i, parts);
  return self;
}

void
webrtc_simulcast_end (WebrtcSimulcast *self, const gchar *reason)
{
  for (guint i = 1; i < get_n (self); i++)
    publication_end (self->views[i].publication, reason);
  unref (self);
}
