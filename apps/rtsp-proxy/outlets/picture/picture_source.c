// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/picture/picture_source.h"

#include "base/clock.h"
#include "base/timer.h"
#include "frames/key_frame.h"
#include "frames/picture_kind.h"
#include "outlets/picture/picture_decoder.h"

#define IDLE (20 * GST_SECOND)   // after which a source that nobody asks ends
#define YOUNG (1 * GST_SECOND)   // a picture stays the newest so long
#define HARMED (60 * GST_SECOND) // after which a source that has cost a worker is decoded again
#define WIDTHS_MAX 4             // pictures of a source that are kept, and that wait
#define CHECK_MS 1000

// A picture of one width.
typedef struct {
  guint width;
  guint64 number; // of its keyframe
  gint64 made;    // ns, monotonic
  gint64 taken_s;
  GBytes *jpeg; // NULL: it could not be made
  gchar *problem;
  gboolean waits; // the next one is to be decoded
} Picture;

typedef struct {
  void (*wake) (gpointer data);
  gpointer data;
} Waiter;

struct _PictureSource {
  gatomicrefcount refs; // of the table, the waiters, the relay and the decoder
  PictureSources *sources;
  Presentation *presentation;
  guint id;
  Timer *checking; // the main thread's

  // Protected by the lock of `sources`.
  guint n_waiters;
  gint64 left; // when the last waiter left

  KeyFrame collector; // used while a packet passes

  GMutex lock;       // protects the fields below
  gboolean has_sink; // a sink of the relay
  gboolean closed;
  GArray *waiters; // of Waiter
  GBytes *frame;   // the newest keyframe, or NULL
  GstCaps *caps;   // of its packets
  guint64 number;  // of the keyframe, from 1 on
  gint64 taken_s;
  Picture pictures[WIDTHS_MAX];
  gint64 harmed; // when its keyframe cost a worker; 0: never
};

struct _PictureSources {
  PictureDecoder *decoder;
  GMutex lock;     // taken before that of a source
  GHashTable *all; // Presentation: PictureSource, with a reference
  guint n_made;
};

static void
source_unref (gpointer data)
{
  PictureSource *self = data;

  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  for (guint i = 0; i < WIDTHS_MAX; i++) {
    g_clear_pointer (&self->pictures[i].jpeg, g_bytes_unref);
    g_free (self->pictures[i].problem);
  }
  key_frame_clear (&self->collector);
  g_clear_pointer (&self->frame, g_bytes_unref);
  gst_clear_caps (&self->caps);
  g_array_unref (self->waiters);
  presentation_unref (self->presentation);
  g_mutex_clear (&self->lock);
  g_free (self);
}

static PictureSource *
source_ref (PictureSource *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

// Call with the lock held.
static void
wake_all (PictureSource *self)
{
  for (guint i = 0; i < self->waiters->len; i++) {
    const Waiter *waiter = &g_array_index (self->waiters, Waiter, i);

    waiter->wake (waiter->data);
  }
}

// ---- the relay's side ----

static void
take_frame (PictureSource *self, GBytes *frame, gint64 now)
{
  const gint64 age_us = (clock_now () - now) / 1000;
  gboolean is_first;

  g_mutex_lock (&self->lock);
  is_first = !self->frame;
  g_clear_pointer (&self->frame, g_bytes_unref);
  self->frame = frame;
  self->number++;
  self->taken_s = (g_get_real_time () - age_us) / G_USEC_PER_SEC;
  if (is_first)
    wake_all (self);
  g_mutex_unlock (&self->lock);
}

static void
on_push (gpointer data, const RelayPacket *packet)
{
  PictureSource *self = data;
  const gint64 now = packet->now;
  GBytes *frame = NULL;
  GstMapInfo map;

  if (gst_buffer_map (packet->buffer, &map, GST_MAP_READ)) {
    frame = key_frame_take (&self->collector, map.data, map.size);
    gst_buffer_unmap (packet->buffer, &map);
  }
  gst_buffer_unref (packet->buffer);
  if (frame)
    take_frame (self, frame, now);
}

// Also called when the tracks change.
static void
on_ended (gpointer data)
{
  PictureSource *self = data;

  g_mutex_lock (&self->lock);
  self->has_sink = FALSE;
  g_clear_pointer (&self->frame, g_bytes_unref);
  wake_all (self);
  g_mutex_unlock (&self->lock);
  source_unref (self);
}

// Returns the first track of which pictures can be made, or -1.
static gint
find_track (Relay *relay, GstCaps **caps, const PictureKind **kind)
{
  const guint n = relay_n_tracks (relay);

  for (guint i = 0; i < n; i++) {
    *caps = relay_dup_caps (relay, i);
    *kind = *caps ? picture_kind_find (*caps) : NULL;
    if (*kind)
      return (gint) i;
    gst_clear_caps (caps);
  }
  return -1;
}

// Begins to collect keyframes. Returns FALSE if the presentation has no video.
static gboolean
add_sink (PictureSource *self)
{
  static const RelaySink functions = { .push = on_push, .ended = on_ended, .from_join = TRUE };
  Relay *relay = presentation_get_relay (self->presentation);
  const PictureKind *kind;
  gboolean is_new;
  GstCaps *caps;
  gint track = find_track (relay, &caps, &kind);

  if (track < 0)
    return FALSE;
  g_mutex_lock (&self->lock);
  is_new = !self->has_sink && !self->closed;
  if (is_new) {
    self->has_sink = TRUE;
    key_frame_clear (&self->collector);
    key_frame_init (&self->collector, kind->codec);
    gst_caps_replace (&self->caps, caps);
  }
  g_mutex_unlock (&self->lock);
  gst_caps_unref (caps);
  if (is_new) {
    relay_add_sink (relay, &functions, source_ref (self), 1u << track, 0);
    relay_ask_key (relay, (guint) track, clock_now ());
  }
  return TRUE;
}

// ---- the decoder's side ----

// Call with the lock held.
static Picture *
find_picture (PictureSource *self, guint width)
{
  for (guint i = 0; i < WIDTHS_MAX; i++) {
    Picture *each = &self->pictures[i];

    if (each->width == width && (each->made > 0 || each->waits))
      return each;
  }
  return NULL;
}

static gboolean
on_take (gpointer owner, guint width, GBytes **frame, GstCaps **caps)
{
  PictureSource *self = owner;
  Picture *picture;

  g_mutex_lock (&self->lock);
  picture = find_picture (self, width);
  if (self->frame) {
    *frame = g_bytes_ref (self->frame);
    *caps = gst_caps_ref (self->caps);
    picture->number = self->number;
    picture->taken_s = self->taken_s;
  }
  g_mutex_unlock (&self->lock);
  return *frame != NULL;
}

static void
on_done (gpointer owner, guint width, GBytes *jpeg, const gchar *problem, gboolean harmful)
{
  PictureSource *self = owner;
  Picture *picture;

  g_mutex_lock (&self->lock);
  picture = find_picture (self, width);
  g_clear_pointer (&picture->jpeg, g_bytes_unref);
  g_free (picture->problem);
  picture->jpeg = jpeg ? g_bytes_ref (jpeg) : NULL;
  picture->problem = g_strdup (problem);
  picture->made = clock_now ();
  picture->waits = FALSE;
  if (harmful)
    self->harmed = picture->made;
  wake_all (self);
  g_mutex_unlock (&self->lock);
  source_unref (self);
}

static const PictureWanter wanter = { on_take, on_done };

// ---- requests ----

// Returns a place for a picture of the width: a free one, or that of the oldest; NULL: all wait.
// Call with the lock held.
static Picture *
make_place (PictureSource *self, guint width)
{
  Picture *oldest = NULL;

  for (guint i = 0; i < WIDTHS_MAX; i++) {
    Picture *each = &self->pictures[i];

    if (!each->waits && (!oldest || each->made < oldest->made))
      oldest = each;
  }
  if (!oldest)
    return NULL;
  g_clear_pointer (&oldest->jpeg, g_bytes_unref);
  g_free (oldest->problem);
  *oldest = (Picture) { .width = width };
  return oldest;
}

// Call with the lock held.
static void
fill (const PictureSource *self, const Picture *picture, PictureAnswer *answer)
{
  answer->problem = g_strdup (picture->problem);
  if (!picture->jpeg)
    return;
  answer->jpeg = g_bytes_ref (picture->jpeg);
  answer->taken_s = picture->taken_s;
  answer->etag = g_strdup_printf (
      "\"%x-%" G_GUINT64_FORMAT "-%u\"", self->id, picture->number, picture->width);
}

// Call with the lock held.
static void
decode (PictureSource *self, Picture *picture, guint width, PictureAnswer *answer)
{
  if (!picture)
    picture = make_place (self, width);
  if (picture && picture_decoder_ask (self->sources->decoder, &wanter, source_ref (self), width))
    picture->waits = TRUE;
  else if (picture)
    source_unref (self);
  if (!picture || !picture->waits)
    answer->problem = g_strdup ("too many pictures wait to be decoded");
}

void
picture_source_ask (PictureSource *self, guint width, PictureAnswer *answer)
{
  const gint64 now = clock_now ();
  Picture *picture;

  *answer = (PictureAnswer) { .has_no_video = !add_sink (self) };
  g_mutex_lock (&self->lock);
  picture = find_picture (self, width);
  if (self->closed)
    answer->problem = g_strdup ("the stream has ended");
  else if (answer->has_no_video)
    answer->problem = g_strdup ("it has no video of H.264, H.265, VP8, VP9, AV1 or JPEG");
  else if (picture && !picture->waits
           && (picture->number == self->number || now - picture->made < (gint64) YOUNG))
    fill (self, picture, answer);
  else if (self->harmed > 0 && now - self->harmed < (gint64) HARMED)
    answer->problem = g_strdup ("a keyframe of it has cost a decoder less than a minute ago");
  else if (self->frame && !(picture && picture->waits))
    decode (self, picture, width, answer);
  g_mutex_unlock (&self->lock);
}

gboolean
picture_source_has_frame (PictureSource *self)
{
  gboolean has_frame;

  g_mutex_lock (&self->lock);
  has_frame = self->frame != NULL;
  g_mutex_unlock (&self->lock);
  return has_frame;
}

void
picture_answer_clear (PictureAnswer *self)
{
  g_clear_pointer (&self->jpeg, g_bytes_unref);
  g_clear_pointer (&self->etag, g_free);
  g_clear_pointer (&self->problem, g_free);
}

// ---- the end of a source; on the main thread ----

// Takes over the table's reference.
static void
close_source (PictureSource *self)
{
  g_mutex_lock (&self->lock);
  self->closed = TRUE;
  wake_all (self);
  g_mutex_unlock (&self->lock);
  relay_remove_sink (presentation_get_relay (self->presentation), self);
  g_clear_pointer (&self->checking, timer_remove);
  presentation_unuse (self->presentation);
  source_unref (self);
}

static gboolean
check (gpointer data)
{
  PictureSource *self = data;
  PictureSources *sources = self->sources;
  gboolean is_idle;

  g_mutex_lock (&sources->lock);
  is_idle = self->n_waiters == 0 && clock_now () - self->left > (gint64) IDLE;
  if (is_idle)
    g_hash_table_steal (sources->all, self->presentation);
  g_mutex_unlock (&sources->lock);
  if (!is_idle)
    return G_SOURCE_CONTINUE;
  self->checking = NULL;
  close_source (self);
  return G_SOURCE_REMOVE;
}

static gboolean
begin_checks (gpointer data)
{
  PictureSource *self = data;

  g_mutex_lock (&self->lock);
  if (!self->closed)
    self->checking = timer_add_tick (CHECK_MS, check, self);
  g_mutex_unlock (&self->lock);
  source_unref (self);
  return G_SOURCE_REMOVE;
}

void
picture_sources_close (PictureSources *self, Presentation *presentation)
{
  PictureSource *source = NULL;

  g_mutex_lock (&self->lock);
  g_hash_table_steal_extended (self->all, presentation, NULL, (gpointer *) &source);
  g_mutex_unlock (&self->lock);
  if (source)
    close_source (source);
}

// ---- joining ----

// Call with the lock held.
static PictureSource *
make (PictureSources *sources, Presentation *presentation)
{
  PictureSource *self = g_new0 (PictureSource, 1);

  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->sources = sources;
  self->presentation = presentation_ref (presentation);
  presentation_use (presentation);
  self->id = sources->n_made++;
  self->waiters = g_array_new (FALSE, FALSE, sizeof (Waiter));
  g_hash_table_insert (sources->all, presentation, self);
  g_main_context_invoke (NULL, begin_checks, source_ref (self));
  return self;
}

PictureSource *
picture_sources_join (
    PictureSources *self, Presentation *presentation, void (*wake) (gpointer data), gpointer data)
{
  const Waiter waiter = { wake, data };
  PictureSource *source;

  g_mutex_lock (&self->lock);
  source = g_hash_table_lookup (self->all, presentation);
  if (!source)
    source = make (self, presentation);
  source_ref (source);
  source->n_waiters++;
  g_mutex_unlock (&self->lock);
  g_mutex_lock (&source->lock);
  g_array_append_val (source->waiters, waiter);
  g_mutex_unlock (&source->lock);
  return source;
}

void
picture_source_leave (PictureSource *self, gpointer data)
{
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->waiters->len; i++) {
    if (g_array_index (self->waiters, Waiter, i).data == data) {
      g_array_remove_index_fast (self->waiters, i);
      break;
    }
  }
  g_mutex_unlock (&self->lock);
  g_mutex_lock (&self->sources->lock);
  self->n_waiters--;
  self->left = clock_now ();
  g_mutex_unlock (&self->sources->lock);
  source_unref (self);
}

PictureSources *
picture_sources_new (void)
{
  PictureSources *self = g_new0 (PictureSources, 1);

  self->decoder = picture_decoder_new ();
  self->all = g_hash_table_new (NULL, NULL);
  self->n_made = g_random_int (); // tags of the last run of the proxy are others
  g_mutex_init (&self->lock);
  return self;
}

void
picture_sources_free (PictureSources *self)
{
  GHashTableIter iter;
  gpointer source;

  g_hash_table_iter_init (&iter, self->all);
  while (g_hash_table_iter_next (&iter, NULL, &source)) {
    g_hash_table_iter_steal (&iter);
    close_source (source);
  }
  picture_decoder_free (self->decoder);
  g_hash_table_unref (self->all);
  g_mutex_clear (&self->lock);
  g_free (self);
}
