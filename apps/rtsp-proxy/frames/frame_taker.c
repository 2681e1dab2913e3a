// SPDX-License-Identifier: LGPL-2.1-or-later
#include "frames/frame_taker.h"

#include "base/clock.h"
#include "codec/h264.h"
#include "relay/relay_caps.h"
#include "relay/synced_sink.h"
#include "rtp/rtp.h"

#define PLAIN_AFTER 2 // frames of H.264 without units of SVC: such a stream has some in each

// What makes the frames of one track for some takers.
typedef struct {
  gatomicrefcount refs; // the takers', the relay's, and those of functions that run later
  Relay *relay;
  guint number;
  GstCaps *caps;
  FrameWish wish;
  gboolean is_h264;
  FrameChain *chain;

  // The main thread's.
  guint n_takers;
  SyncedSink *synced; // NULL: no taker has started

  gint over;             // atomic: no more frames come
  gint n_plain, has_svc; // atomic: frames of H.264 without units of SVC; a packet has had some
  GMutex lock;           // protects the fields below
  GPtrArray *takers;     // of FrameTaker, started; never changed, but replaced
  gchar *problem;        // why it is over
} Source;

struct _FrameTaker {
  gatomicrefcount refs; // the owner's, and those of the source's arrays
  Source *source;
  FrameWish wish;
  const FrameTakerFunctions *functions; // NULL: not started
  gpointer owner;
  gboolean left; // the main thread's
  GstCaps *caps; // told last; used while a packet passes
};

static GPtrArray *all; // of Source; the main thread's

static void
source_unref (gpointer data)
{
  Source *self = data;

  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_clear_pointer (&self->chain, frame_chain_free);
  relay_unref (self->relay);
  gst_caps_unref (self->caps);
  g_ptr_array_unref (self->takers);
  g_mutex_clear (&self->lock);
  g_free (self->problem);
  g_free (self);
}

static void
taker_unref (gpointer data)
{
  FrameTaker *self = data;

  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  if (self->functions)
    self->functions->ended (self->owner);
  gst_clear_caps (&self->caps);
  g_free (self);
}

static void
run_later (Source *self, GSourceFunc function)
{
  g_atomic_ref_count_inc (&self->refs);
  g_main_context_invoke_full (NULL, G_PRIORITY_DEFAULT, function, self, source_unref);
}

static GPtrArray *
ref_takers (Source *self)
{
  GPtrArray *takers;

  g_mutex_lock (&self->lock);
  takers = g_ptr_array_ref (self->takers);
  g_mutex_unlock (&self->lock);
  return takers;
}

// Adds a taker, or removes it.
static void
replace_takers (Source *self, FrameTaker *with, FrameTaker *without)
{
  GPtrArray *old, *now = g_ptr_array_new_with_free_func (taker_unref);

  g_mutex_lock (&self->lock);
  old = self->takers;
  for (guint i = 0; i < old->len; i++) {
    FrameTaker *taker = g_ptr_array_index (old, i);

    if (taker != without) {
      g_atomic_ref_count_inc (&taker->refs);
      g_ptr_array_add (now, taker);
    }
  }
  if (with) {
    g_atomic_ref_count_inc (&with->refs);
    g_ptr_array_add (now, with);
  }
  self->takers = now;
  g_mutex_unlock (&self->lock);
  g_ptr_array_unref (old);
}

// ---- failures ----

// Tells all takers, or only those that wish for another form of H.264.
static void
tell_failed (Source *self, gboolean only_others, const gchar *reason)
{
  g_autoptr (GPtrArray) takers = ref_takers (self);

  for (guint i = 0; i < takers->len; i++) {
    FrameTaker *taker = g_ptr_array_index (takers, i);

    if (!taker->left && (!only_others || taker->wish.plain != self->wish.plain))
      taker->functions->failed (taker->owner, reason);
  }
}

static gboolean
tell_over (gpointer data)
{
  Source *self = data;

  tell_failed (self, FALSE, self->problem);
  return G_SOURCE_REMOVE;
}

static gboolean
tell_svc (gpointer data)
{
  tell_failed (data, TRUE, "its H.264 has layers now");
  return G_SOURCE_REMOVE;
}

// ---- the elements' side ----

static void
on_frame (gpointer data, GstCaps *caps, const Frame *frame)
{
  g_autoptr (GPtrArray) takers = ref_takers (data);

  for (guint i = 0; i < takers->len; i++) {
    FrameTaker *taker = g_ptr_array_index (takers, i);

    if (gst_caps_replace (&taker->caps, caps))
      taker->functions->format (taker->owner, caps);
    taker->functions->frame (taker->owner, frame);
  }
}

static void
on_failed (gpointer data, const gchar *reason)
{
  Source *self = data;
  gboolean first;

  g_mutex_lock (&self->lock);
  first = !self->problem;
  if (first)
    self->problem = g_strdup (reason);
  g_mutex_unlock (&self->lock);
  g_atomic_int_set (&self->over, 1);
  if (first)
    run_later (self, tell_over);
}

static void
on_wants_key (gpointer data)
{
  Source *self = data;

  relay_ask_key (self->relay, self->number, clock_now ());
}

static const FrameChainCallbacks callbacks = { on_frame, on_failed, on_wants_key };

// ---- the relay's side ----

// Notes whether a stream of H.264 has units of SVC.
static void
look_for_svc (Source *self, GstBuffer *packet)
{
  GstMapInfo map;
  WeirRtp rtp;

  if (!gst_buffer_map (packet, &map, GST_MAP_READ))
    return;
  if (weir_rtp_parse (map.data, map.size, &rtp) == 0) {
    if (weir_h264_payload_has_svc (map.data + rtp.payload_offset, rtp.payload_length)) {
      if (g_atomic_int_compare_and_exchange (&self->has_svc, 0, 1))
        run_later (self, tell_svc);
    } else if (rtp.marker && g_atomic_int_get (&self->n_plain) < PLAIN_AFTER) {
      g_atomic_int_inc (&self->n_plain);
    }
  }
  gst_buffer_unmap (packet, &map);
}

static void
on_push (gpointer data, const RelayPacket *packet)
{
  Source *self = data;
  GPtrArray *takers = ref_takers (self);

  for (guint i = 0; i < takers->len; i++) {
    FrameTaker *taker = g_ptr_array_index (takers, i);

    if (taker->functions->arrived)
      taker->functions->arrived (taker->owner, packet->time);
  }
  g_ptr_array_unref (takers);
  if (self->is_h264)
    look_for_svc (self, packet->buffer);
  frame_chain_push (self->chain, packet->buffer, packet->time);
}

static gboolean
is_open (gpointer data)
{
  return TRUE;
}

// Also called when the relay's tracks change.
static void
on_ended (gpointer data)
{
  g_atomic_int_set (&((Source *) data)->over, 1);
  source_unref (data);
}

static const RelaySink sinks[] = {
  [FRAMES_FROM_NOW] = { .push = on_push, .ended = on_ended },
  [FRAMES_FROM_HELD] = { .push = on_push, .ended = on_ended, .is_open = is_open },
  [FRAMES_FROM_START] = { .push = on_push,
      .ended = on_ended,
      .is_open = is_open,
      .from_start = TRUE },
};

// ---- sources ----

// Returns the wish without what makes no difference to frames of this kind.
static FrameWish
simplify (const FrameWish *wish, const FrameKind *kind)
{
  FrameWish simple = *wish;

  if (!kind->has_layers)
    simple.layers = WEIR_LAYER_SET_ALL;
  simple.plain = wish->plain && g_str_equal (kind->encoding, "H264");
  return simple;
}

static gboolean
takes_all (const FrameWish *wish)
{
  return weir_layer_set_equal (wish->layers, WEIR_LAYER_SET_ALL);
}

// Reports whether the source's frames are as the wish says. H.264 of which nothing is left out is
// the same in both forms if it has no units of SVC.
static gboolean
is_as_wished (Source *self, const FrameWish *wish)
{
  if (self->wish.plain == wish->plain)
    return weir_layer_set_equal (self->wish.layers, wish->layers);
  return takes_all (&self->wish) && takes_all (wish) && !g_atomic_int_get (&self->has_svc)
         && g_atomic_int_get (&self->n_plain) >= PLAIN_AFTER;
}

// Reports whether a taker that shares the source gets the first frames that it wishes for.
static gboolean
has_first (Source *self, const FrameWish *wish)
{
  return self->wish.start >= wish->start
         || !relay_holds_for (self->relay, self->number, wish->start == FRAMES_FROM_START);
}

static Source *
find (Relay *relay, guint number, GstCaps *caps, const FrameWish *wish)
{
  for (guint i = 0; i < all->len; i++) {
    Source *each = g_ptr_array_index (all, i);

    if (each->relay == relay && each->number == number && !g_atomic_int_get (&each->over)
        && relay_caps_same (each->caps, caps) && is_as_wished (each, wish)
        && has_first (each, wish))
      return each;
  }
  return NULL;
}

static Source *
make (Relay *relay, guint number, GstCaps *caps, const FrameWish *wish, GError **error)
{
  gboolean filters = wish->plain || !takes_all (wish);
  Source *self = g_new0 (Source, 1);

  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->relay = relay_ref (relay);
  self->number = number;
  self->caps = gst_caps_ref (caps);
  self->wish = *wish;
  self->is_h264 = g_str_equal (frame_kind_find (caps)->encoding, "H264");
  self->takers = g_ptr_array_new_with_free_func (taker_unref);
  self->chain = frame_chain_new (caps, filters ? &wish->layers : NULL, &callbacks, self, error);
  if (self->chain)
    g_ptr_array_add (all, self);
  else
    g_clear_pointer (&self, source_unref);
  return self;
}

static void
leave_source (Source *self)
{
  if (--self->n_takers > 0)
    return;
  g_ptr_array_remove (all, self);
  g_clear_pointer (&self->synced, synced_sink_remove);
  frame_chain_stop (self->chain);
  source_unref (self);
}

// ---- takers ----

FrameTaker *
frame_taker_new (Relay *relay, guint number, GstCaps *caps, const FrameWish *wish, GError **error)
{
  const FrameWish simple = simplify (wish, frame_kind_find (caps));
  FrameTaker *self;
  Source *source;

  if (!all)
    all = g_ptr_array_new ();
  source = find (relay, number, caps, &simple);
  if (!source)
    source = make (relay, number, caps, &simple, error);
  if (!source)
    return NULL;
  source->n_takers++;
  self = g_new0 (FrameTaker, 1);
  g_atomic_ref_count_init (&self->refs);
  self->source = source;
  self->wish = simple;
  return self;
}

void
frame_taker_start (
    FrameTaker *self, const FrameTakerFunctions *functions, gpointer owner, const gchar *label)
{
  Source *source = self->source;

  self->functions = functions;
  self->owner = owner;
  replace_takers (source, self, NULL);
  if (!source->synced) {
    frame_chain_start (source->chain);
    g_atomic_ref_count_inc (&source->refs);
    source->synced = synced_sink_add (
        source->relay, label, &sinks[source->wish.start], source, 1u << source->number);
  }
  if (frame_kind_find (source->caps)->is_video)
    relay_ask_key (source->relay, source->number, clock_now ());
}

GstElement *
frame_taker_get_filter (FrameTaker *self)
{
  return frame_chain_get_filter (self->source->chain);
}

void
frame_taker_free (FrameTaker *self)
{
  self->left = TRUE;
  replace_takers (self->source, NULL, self);
  leave_source (self->source);
  taker_unref (self);
}
