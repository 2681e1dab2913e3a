// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/clock.h"
#include "relay/tape_private.h"

#define BYTES_MAX (32 * 1024 * 1024)

struct _Tape {
  gatomicrefcount refs;
  gint64 keep_ns;
  GMutex lock;                      // protects all below
  void (*changed) (gpointer owner); // NULL once it is stopped
  gpointer owner;
  GPtrArray *caps; // of GstCaps; NULL until they are known
  TapeTrack tracks[RELAY_MAX_TRACKS];
  gboolean is_placed;
  TitlePlace place;
  GstQueueArray *items; // of TapeItem
  gint64 first;         // the position of the first of them
  gsize bytes;
  gboolean ended;
  GPtrArray *waiting; // of LoopWatch: players that have played all
};

// ---- the relay's side ----

// Call with the lock held.
static void
wake_all (Tape *self)
{
  for (guint i = 0; i < self->waiting->len; i++)
    loop_set_due (g_ptr_array_index (self->waiting, i), 0);
  g_ptr_array_set_size (self->waiting, 0);
}

static void
on_begun (gpointer data, Relay *relay, GPtrArray *caps, gint64 start)
{
  Tape *self = data;

  g_mutex_lock (&self->lock);
  if (self->caps) { // players cannot go on with other tracks
    self->ended = TRUE;
    wake_all (self);
  } else {
    self->caps = g_ptr_array_ref (caps);
  }
  for (guint i = 0; i < caps->len && i < RELAY_MAX_TRACKS; i++) {
    gint rate = 0;

    gst_structure_get_int (
        gst_caps_get_structure (g_ptr_array_index (caps, i), 0), "clock-rate", &rate);
    self->tracks[i].rate = rate > 0 ? (guint32) rate : 90000;
  }
  g_mutex_unlock (&self->lock);
}

static void
drop_first (Tape *self)
{
  TapeItem *item = gst_queue_array_pop_head_struct (self->items);

  self->bytes -= gst_buffer_get_size (item->buffer);
  gst_buffer_unref (item->buffer);
  self->first++;
}

static gboolean
is_over (Tape *self, gint64 now)
{
  const TapeItem *item = gst_queue_array_peek_head_struct (self->items);

  return item && (self->bytes > BYTES_MAX || now - item->now > self->keep_ns);
}

static void
on_push (gpointer data, const RelayPacket *packet)
{
  Tape *self = data;
  TapeItem item = { packet->buffer, packet->track, packet->now, packet->time };

  g_mutex_lock (&self->lock);
  if (self->ended) {
    gst_buffer_unref (item.buffer);
  } else {
    if (self->tracks[item.track].base == RELAY_NO_BASE)
      self->tracks[item.track].base = packet->base;
    gst_queue_array_push_tail_struct (self->items, &item);
    self->bytes += gst_buffer_get_size (item.buffer);
    while (is_over (self, item.now))
      drop_first (self);
    if (!packet->more)
      wake_all (self);
  }
  g_mutex_unlock (&self->lock);
}

static void
on_mapped (gpointer data, guint track, const WeirNtpMap *map)
{
  Tape *self = data;

  g_mutex_lock (&self->lock);
  self->tracks[track].ntp = *map;
  g_mutex_unlock (&self->lock);
}

static void
on_placed (gpointer data, const TitlePlace *place)
{
  Tape *self = data;

  g_mutex_lock (&self->lock);
  self->is_placed = TRUE;
  self->place = *place;
  if (self->changed)
    self->changed (self->owner);
  g_mutex_unlock (&self->lock);
}

static void
on_ended (gpointer self)
{
  tape_unref (self);
}

static const RelaySink sink = {
  .begun = on_begun, .push = on_push, .mapped = on_mapped, .ended = on_ended, .placed = on_placed
};

// ---- the players' side ----

guint
tape_read (Tape *self, LoopWatch *player, gint64 *position, gint64 until, TapeItem *items,
    guint max, gint64 *next)
{
  guint n = 0;

  g_mutex_lock (&self->lock);
  *position = MAX (*position, self->first);
  *next = self->ended ? -1 : G_MAXINT64;
  while (*position - self->first < gst_queue_array_get_length (self->items)) {
    const TapeItem *item =
        gst_queue_array_peek_nth_struct (self->items, (guint) (*position - self->first));

    if (n == max || item->now > until) {
      *next = item->now;
      break;
    }
    items[n] = *item;
    gst_buffer_ref (items[n++].buffer);
    ++*position;
  }
  if (*next == G_MAXINT64 && !g_ptr_array_find (self->waiting, player, NULL))
    g_ptr_array_add (self->waiting, player);
  g_mutex_unlock (&self->lock);
  return n;
}

gboolean
tape_peek (Tape *self, gint64 position, TapeItem *item)
{
  gint64 n;
  gboolean has;

  g_mutex_lock (&self->lock);
  n = position - self->first;
  has = n >= 0 && n < gst_queue_array_get_length (self->items);
  if (has)
    *item = *(TapeItem *) gst_queue_array_peek_nth_struct (self->items, (guint) n);
  g_mutex_unlock (&self->lock);
  return has;
}

gboolean
tape_holds (Tape *self, gint64 position)
{
  gboolean holds;

  g_mutex_lock (&self->lock);
  holds = position >= self->first;
  g_mutex_unlock (&self->lock);
  return holds;
}

void
tape_forget (Tape *self, LoopWatch *player)
{
  g_mutex_lock (&self->lock);
  g_ptr_array_remove_fast (self->waiting, player);
  g_mutex_unlock (&self->lock);
}

TapeTrack
tape_get_track (Tape *self, guint track)
{
  TapeTrack got;

  g_mutex_lock (&self->lock);
  got = self->tracks[track];
  g_mutex_unlock (&self->lock);
  return got;
}

gboolean
tape_has_beginning (Tape *self)
{
  return tape_holds (self, 0);
}

gboolean
tape_get_place (Tape *self, TitlePlace *place)
{
  gboolean is_placed;

  g_mutex_lock (&self->lock);
  is_placed = self->is_placed;
  *place = self->place;
  g_mutex_unlock (&self->lock);
  return is_placed;
}

GPtrArray *
tape_dup_caps (Tape *self)
{
  GPtrArray *caps;

  g_mutex_lock (&self->lock);
  caps = self->caps ? g_ptr_array_ref (self->caps) : NULL;
  g_mutex_unlock (&self->lock);
  return caps;
}

// ---- construction ----

Tape *
tape_new (Relay *relay, gint64 keep_ns, void (*changed) (gpointer owner), gpointer owner)
{
  Tape *self = g_new0 (Tape, 1);

  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->keep_ns = keep_ns;
  self->changed = changed;
  self->owner = owner;
  self->items = gst_queue_array_new_for_struct (sizeof (TapeItem), 256);
  self->waiting = g_ptr_array_new ();
  for (guint i = 0; i < RELAY_MAX_TRACKS; i++)
    self->tracks[i].base = RELAY_NO_BASE;
  relay_add_sink (relay, &sink, tape_ref (self), G_MAXUINT32, 0);
  return self;
}

Tape *
tape_ref (Tape *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
tape_unref (Tape *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  while (!gst_queue_array_is_empty (self->items))
    drop_first (self);
  gst_queue_array_free (self->items);
  g_clear_pointer (&self->caps, g_ptr_array_unref);
  g_ptr_array_unref (self->waiting);
  g_mutex_clear (&self->lock);
  g_free (self);
}

void
tape_stop (Tape *self, Relay *relay)
{
  g_mutex_lock (&self->lock);
  self->changed = NULL;
  g_mutex_unlock (&self->lock);
  tape_end (self);
  relay_remove_sink (relay, self);
  g_mutex_lock (&self->lock);
  while (!gst_queue_array_is_empty (self->items))
    drop_first (self);
  g_mutex_unlock (&self->lock);
}

void
tape_end (Tape *self)
{
  g_mutex_lock (&self->lock);
  self->ended = TRUE;
  wake_all (self);
  g_mutex_unlock (&self->lock);
}
