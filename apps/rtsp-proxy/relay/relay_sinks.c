// SPDX-License-Identifier: LGPL-2.1-or-later

// Who takes the tracks of a relay.

#include "relay/relay_private.h"

// What is held of a track for its first sink, at most. Beyond that nobody is coming.
#define HELD_BYTES (4 * 1024 * 1024)
#define HELD_PACKETS 8192

// ---- what is held for the first, with the lock held ----

static void
drop_held (RelayTrack *track)
{
  track->holding = FALSE;
  track->held_bytes = 0;
  g_queue_clear_full (&track->held, (GDestroyNotify) gst_buffer_unref);
  g_array_set_size (track->held_times, 0);
}

void
relay_drop_held (Relay *self)
{
  for (guint i = 0; i < self->n_tracks; i++)
    drop_held (&self->tracks[i]);
}

void
relay_hold (Relay *self)
{
  relay_drop_held (self);
  for (guint i = 0; i < self->n_tracks; i++)
    self->tracks[i].holding = self->expects_sinks;
}

RelayNumbers
relay_read_numbers (GstBuffer *packet)
{
  RelayNumbers numbers = { FALSE };
  guint8 header[8];

  if (!packet || gst_buffer_extract (packet, 0, header, sizeof header) < sizeof header)
    return numbers;
  return (RelayNumbers) { TRUE, GST_READ_UINT16_BE (header + 2), GST_READ_UINT32_BE (header + 4) };
}

static void
hold (RelayTrack *track, const RelayItem *item)
{
  g_queue_push_tail (&track->held, gst_buffer_ref (item->packet));
  g_array_append_val (track->held_times, item->time);
  track->held_bytes += gst_buffer_get_size (item->packet);
  if (track->held_bytes > HELD_BYTES || track->held.length > HELD_PACKETS)
    drop_held (track);
}

// ---- handing on ----

void
relay_queue (Relay *self, guint track, GstBuffer *packet, gint64 now, gint64 time)
{
  RelayItem item = { packet, now, time };

  gst_queue_array_push_tail_struct (self->tracks[track].out, &item);
}

static gboolean
takes (const RelayTaker *taker, guint track)
{
  return taker->tracks & 1u << track;
}

// Is one of those that open?
static gboolean
has_open (Relay *self, guint track)
{
  for (guint i = 0; i < self->takers->len; i++) {
    RelayTaker *taker = g_ptr_array_index (self->takers, i);

    if (takes (taker, track) && taker->functions->is_open
        && taker->functions->is_open (taker->sink))
      return TRUE;
  }
  return FALSE;
}

typedef enum {
  ALL,
  THOSE_THAT_OPEN,
  OTHERS,
} Whom;

// Who gets the packet now; those in `before` come first, for those that open. With the lock held.
// The base is not made once when a sink is added: a track's first packet may come after that, and
// push_to() reads it without the lock, in the thread that has written it here.
static GPtrArray *
find_takers (Relay *self, guint index, const RelayItem *item, GQueue *before, GArray **before_times,
    Whom *whom)
{
  RelayTrack *track = &self->tracks[index];
  gboolean open = has_open (self, index);

  // One that opens meanwhile gets the packet with those that are held.
  *whom = open ? ALL : OTHERS;
  if (open) {
    if (!track->first.known)
      track->first =
          relay_read_numbers (track->held.head ? g_queue_peek_head (&track->held) : item->packet);
    if (track->held.head) {
      *before = track->held;
      *before_times = track->held_times;
      g_queue_init (&track->held);
      track->held_times = g_array_new (FALSE, FALSE, sizeof (gint64));
    }
    drop_held (track);
  } else if (track->holding) {
    hold (track, item);
  }
  for (guint i = 0; i < self->takers->len; i++) {
    RelayTaker *taker = g_ptr_array_index (self->takers, i);

    if (takes (taker, index))
      taker->base[index] = weir_splice_timestamp_at (&track->splice, taker->start);
  }
  return g_ptr_array_ref (self->takers);
}

// Takes the item's packet: the last one gets it, and needs no copy to write to it.
static void
push_to (GPtrArray *takers, guint track, const RelayItem *item, Whom whom)
{
  RelayPacket packet = { track, item->packet, item->now, item->time, 0 };
  RelayTaker *last = NULL;

  for (guint i = 0; i < takers->len; i++) {
    RelayTaker *taker = g_ptr_array_index (takers, i);

    if (!takes (taker, track) || whom == (taker->functions->is_open ? OTHERS : THOSE_THAT_OPEN))
      continue;
    if (last) {
      gst_buffer_ref (item->packet);
      packet.base = last->base[track];
      last->functions->push (last->sink, &packet);
    }
    last = taker;
  }
  if (last) {
    packet.base = last->base[track];
    last->functions->push (last->sink, &packet);
  } else {
    gst_buffer_unref (item->packet);
  }
}

// Packets of one track may come from two threads while one source takes over from another. Whoever
// finds nobody at it hands on what is there, in order; nobody waits.
void
relay_drain (Relay *self, guint index)
{
  RelayTrack *track = &self->tracks[index];
  RelayItem *head;

  if (track->draining)
    return;
  track->draining = TRUE;
  while ((head = gst_queue_array_pop_head_struct (track->out))) {
    RelayItem item = *head;
    GQueue before = G_QUEUE_INIT;
    GArray *before_times = NULL;
    Whom whom;
    GPtrArray *takers = find_takers (self, index, &item, &before, &before_times, &whom);
    RelayItem held = item;

    g_mutex_unlock (&self->lock);
    for (guint i = 0; (held.packet = g_queue_pop_head (&before)); i++) {
      held.time = g_array_index (before_times, gint64, i);
      push_to (takers, index, &held, THOSE_THAT_OPEN);
    }
    g_clear_pointer (&before_times, g_array_unref);
    push_to (takers, index, &item, whom);
    g_ptr_array_unref (takers);
    g_mutex_lock (&self->lock);
  }
  track->draining = FALSE;
}

// ---- who comes and goes ----

void
relay_taker_unref (gpointer data)
{
  RelayTaker *taker = data;

  if (!g_atomic_ref_count_dec (&taker->refs))
    return;
  taker->functions->ended (taker->sink);
  g_free (taker);
}

// Those that go are to be freed without the lock.
static GPtrArray *
replace_taker (Relay *self, gconstpointer without, RelayTaker *with)
{
  GPtrArray *old = self->takers;

  self->takers = g_ptr_array_new_with_free_func (relay_taker_unref);
  for (guint i = 0; i < old->len; i++) {
    RelayTaker *taker = g_ptr_array_index (old, i);

    if (without ? taker->sink != without : with || taker->functions->begun) {
      g_atomic_ref_count_inc (&taker->refs);
      g_ptr_array_add (self->takers, taker);
    }
  }
  if (with)
    g_ptr_array_add (self->takers, with);
  return old;
}

void
relay_end_takers (Relay *self)
{
  GPtrArray *old = replace_taker (self, NULL, NULL);

  if (!self->done)
    self->done = g_ptr_array_new_with_free_func ((GDestroyNotify) g_ptr_array_unref);
  g_ptr_array_add (self->done, old);
}

static GPtrArray *
dup_all_caps (Relay *self)
{
  GPtrArray *caps = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);

  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->n_tracks; i++)
    g_ptr_array_add (caps, gst_caps_ref (self->tracks[i].caps));
  g_mutex_unlock (&self->lock);
  return caps;
}

void
relay_add_sink (
    Relay *self, const RelaySink *functions, gpointer sink, guint32 tracks, gint64 start)
{
  RelayTaker *taker = g_new0 (RelayTaker, 1);
  GPtrArray *caps = dup_all_caps (self), *old;

  g_atomic_ref_count_init (&taker->refs);
  taker->functions = functions;
  taker->sink = sink;
  taker->tracks = tracks;
  taker->start = start;
  if (functions->begun && caps->len > 0)
    functions->begun (sink, self, caps, start);
  g_ptr_array_unref (caps);
  g_mutex_lock (&self->lock);
  old = replace_taker (self, NULL, taker);
  for (guint i = 0; i < self->n_tracks && functions->is_open; i++) {
    if (takes (taker, i))
      self->tracks[i].first.known = FALSE;
  }
  g_mutex_unlock (&self->lock);
  g_ptr_array_unref (old);
  for (guint i = 0; i < RELAY_MAX_TRACKS && functions->mapped; i++)
    relay_pass_ntp (self, i);
}

void
relay_remove_sink (Relay *self, gconstpointer sink)
{
  GPtrArray *old;

  g_mutex_lock (&self->lock);
  old = replace_taker (self, sink, NULL);
  g_mutex_unlock (&self->lock);
  g_ptr_array_unref (old);
}

void
relay_expect_sinks (Relay *self)
{
  g_mutex_lock (&self->lock);
  self->expects_sinks = TRUE;
  g_mutex_unlock (&self->lock);
}

void
relay_begin_sinks (Relay *self)
{
  GPtrArray *caps = dup_all_caps (self);
  GPtrArray *takers, *done;
  gint64 start;

  g_mutex_lock (&self->lock);
  done = g_steal_pointer (&self->done);
  takers = g_ptr_array_ref (self->takers);
  start = relay_common_time (self);
  for (guint i = 0; i < takers->len; i++) {
    RelayTaker *taker = g_ptr_array_index (takers, i);

    if (taker->functions->begun)
      taker->start = start;
  }
  g_mutex_unlock (&self->lock);
  for (guint i = 0; i < takers->len; i++) {
    RelayTaker *taker = g_ptr_array_index (takers, i);

    if (taker->functions->begun)
      taker->functions->begun (taker->sink, self, caps, start);
  }
  g_ptr_array_unref (takers);
  g_clear_pointer (&done, g_ptr_array_unref);
  g_ptr_array_unref (caps);
}
