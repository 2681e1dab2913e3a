// SPDX-License-Identifier: LGPL-2.1-or-later

// The sinks of a relay.

#include "relay/relay_private.h"

// Limits of the packets held until a sink of the track is open. Beyond them, they are dropped and
// holding ends.
#define HELD_BYTES (4 * 1024 * 1024)
#define HELD_PACKETS 8192
#define KEPT_NS (10 * (gint64) GST_SECOND) // of media, for the awaited sink

// ---- held packets; with the lock held ----

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
  relay_group_clear (self);
  for (guint i = 0; i < self->n_tracks; i++) {
    self->tracks[i].holding = self->expects_sinks;
    self->tracks[i].released = FALSE;
  }
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
  if (track->held_bytes > HELD_BYTES || track->held.length > HELD_PACKETS
      || (track->released && item->time - g_array_index (track->held_times, gint64, 0) > KEPT_NS))
    drop_held (track);
}

// ---- pushing ----

void
relay_queue (Relay *self, guint track, GstBuffer *packet, gint64 now, gint64 time)
{
  RelayItem item = { packet, now, time };

  gst_queue_array_push_tail_struct (self->tracks[track].out, &item);
}

// Reports whether a sink that has is_open() is open.
static gboolean
has_open (Relay *self, guint track)
{
  for (guint i = 0; i < self->sinks->len; i++) {
    RelaySinkEntry *entry = g_ptr_array_index (self->sinks, i);

    if (relay_sink_takes (entry, track) && entry->functions->is_open
        && entry->functions->is_open (entry->sink))
      return TRUE;
  }
  return FALSE;
}

// Returns what a sink gets now. A sink with is_open() gets nothing before one is open; then it gets
// the packet with the held ones, which the relay keeps for a sink from the start that is not open
// yet. `open`: a sink is open.
static RelayGets
choose (const RelaySinkEntry *entry, guint index, const RelayTrack *track, gboolean open)
{
  if (!entry->functions->is_open)
    return RELAY_GETS_PACKET;
  if (!open)
    return RELAY_GETS_NOTHING;
  if (!entry->functions->from_start || entry->started & 1u << index)
    return track->released ? RELAY_GETS_PACKET : RELAY_GETS_ALL;
  if (entry->functions->is_open (entry->sink))
    return RELAY_GETS_ALL;
  return track->holding ? RELAY_GETS_NOTHING : RELAY_GETS_PACKET;
}

// A sink is open. Sets `before` to the held packets, unless it is NULL. Keeps them and the packet
// if the awaited sink has not started.
static void
release (Relay *self, RelayTrack *track, const RelayItem *item, gboolean started, GQueue *before,
    GArray **before_times)
{
  GstBuffer *oldest = g_queue_peek_head (&track->held);

  if (!track->first.known)
    track->first = relay_read_numbers (oldest && !track->released ? oldest : item->packet);
  for (GList *l = before ? track->held.head : NULL; l; l = l->next)
    g_queue_push_tail (before, gst_buffer_ref (l->data));
  if (before)
    *before_times = g_array_copy (track->held_times);
  track->released = TRUE;
  if (self->awaits_sink && !started && track->holding)
    hold (track, item);
  else
    drop_held (track);
}

// Finds what the sinks get now. The packets in `before` come first. Call with the lock held. The
// base is computed for each packet, not once when a sink is added: a track's first packet may come
// later. push_to() reads it without the lock, in the thread that wrote it here.
static GPtrArray *
find_sinks (Relay *self, guint index, const RelayItem *item, GQueue *before, GArray **before_times)
{
  RelayTrack *track = &self->tracks[index];
  gboolean open = has_open (self, index), started = FALSE, needs_held = FALSE;

  for (guint i = 0; i < self->sinks->len; i++) {
    RelaySinkEntry *entry = g_ptr_array_index (self->sinks, i);

    if (!relay_sink_takes (entry, index))
      continue;
    entry->base[index] = weir_splice_timestamp_at (&track->splice, entry->start);
    entry->gets[index] = choose (entry, index, track, open);
    needs_held |= entry->gets[index] == RELAY_GETS_ALL;
    if (entry->functions->from_start && entry->gets[index] == RELAY_GETS_ALL)
      entry->started |= 1u << index;
    started |= entry->started >> index & 1;
  }
  if (open)
    release (self, track, item, started, needs_held ? before : NULL, before_times);
  else if (track->holding)
    hold (track, item);
  relay_group_keep (self, index, item);
  return g_ptr_array_ref (self->sinks);
}

// The last sink gets the buffer itself and can write to it without a copy.
void
relay_push_to (GPtrArray *sinks, guint track, const RelayItem *item, RelayGets least, gboolean more)
{
  RelayPacket packet = { track, item->packet, item->now, item->time, 0, more };
  RelaySinkEntry *last = NULL;

  for (guint i = 0; i < sinks->len; i++) {
    RelaySinkEntry *entry = g_ptr_array_index (sinks, i);

    if (!relay_sink_takes (entry, track) || entry->gets[track] < least)
      continue;
    if (last) {
      gst_buffer_ref (item->packet);
      packet.base = last->base[track];
      last->functions->push (last->sink, &packet);
    }
    last = entry;
  }
  if (last) {
    packet.base = last->base[track];
    last->functions->push (last->sink, &packet);
  } else {
    gst_buffer_unref (item->packet);
  }
}

// Pushes the oldest packet of the queue. Returns FALSE if there is none.
static gboolean
pass_next (Relay *self, guint index)
{
  RelayTrack *track = &self->tracks[index];
  const RelayItem *head = gst_queue_array_pop_head_struct (track->out);
  RelayItem item, held;
  GQueue before = G_QUEUE_INIT;
  g_autoptr (GArray) before_times = NULL;
  GPtrArray *sinks;
  gboolean more;

  if (!head)
    return FALSE;
  item = held = *head;
  sinks = find_sinks (self, index, &item, &before, &before_times);
  more = !gst_queue_array_is_empty (track->out);
  g_mutex_unlock (&self->lock);
  for (guint i = 0; (held.packet = g_queue_pop_head (&before)); i++) {
    held.time = g_array_index (before_times, gint64, i);
    relay_push_to (sinks, index, &held, RELAY_GETS_ALL, TRUE);
  }
  relay_push_to (sinks, index, &item, RELAY_GETS_PACKET, more);
  g_ptr_array_unref (sinks);
  g_mutex_lock (&self->lock);
  return TRUE;
}

// Two threads may send packets of one track while a source takes over from another. The first of
// them pushes all queued packets, in order; the second returns at once.
void
relay_drain (Relay *self, guint index)
{
  RelayTrack *track = &self->tracks[index];

  if (track->draining)
    return;
  track->draining = TRUE;
  do
    relay_group_pass (self, index);
  while (pass_next (self, index));
  track->draining = FALSE;
}

void
relay_drain_all (Relay *self)
{
  for (guint i = 0; i < self->n_tracks; i++)
    relay_drain (self, i);
}

// ---- what happened before ----

void
relay_count (RelaySource *self, RelayCount what, guint64 n)
{
  Relay *relay = self->relay;
  g_autoptr (GPtrArray) sinks = NULL;

  g_mutex_lock (&relay->lock);
  if (self == relay->current) {
    *(what == RELAY_REFUSED + WEIR_INGEST_MALFORMED ? &relay->stats.n_bad
                                                    : &relay->stats.counts[what]) += n;
    sinks = g_ptr_array_ref (relay->sinks);
  }
  g_mutex_unlock (&relay->lock);
  for (guint i = 0; sinks && i < sinks->len; i++) {
    RelaySinkEntry *entry = g_ptr_array_index (sinks, i);

    if (entry->functions->counted)
      entry->functions->counted (entry->sink, what, n);
  }
}

// ---- adding and removing ----

void
relay_sink_entry_unref (gpointer data)
{
  RelaySinkEntry *entry = data;

  if (!g_atomic_ref_count_dec (&entry->refs))
    return;
  entry->functions->ended (entry->sink);
  g_free (entry);
}

// Replaces the array of sinks: removes the sink `without`, or adds `with`; with neither, removes
// the sinks without begun(). Returns the old array, to be freed without the lock.
static GPtrArray *
replace_sinks (Relay *self, gconstpointer without, RelaySinkEntry *with)
{
  GPtrArray *old = self->sinks;

  self->sinks = g_ptr_array_new_with_free_func (relay_sink_entry_unref);
  for (guint i = 0; i < old->len; i++) {
    RelaySinkEntry *entry = g_ptr_array_index (old, i);

    if (without ? entry->sink != without : with || entry->functions->begun) {
      g_atomic_ref_count_inc (&entry->refs);
      g_ptr_array_add (self->sinks, entry);
    }
  }
  if (with)
    g_ptr_array_add (self->sinks, with);
  return old;
}

void
relay_end_fixed_sinks (Relay *self)
{
  GPtrArray *old = replace_sinks (self, NULL, NULL);

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
  RelaySinkEntry *entry = g_new0 (RelaySinkEntry, 1);
  GPtrArray *caps = dup_all_caps (self), *old;

  g_atomic_ref_count_init (&entry->refs);
  entry->functions = functions;
  entry->sink = sink;
  entry->tracks = tracks;
  entry->start = start;
  if (functions->begun && caps->len > 0)
    functions->begun (sink, self, caps, start);
  g_ptr_array_unref (caps);
  g_mutex_lock (&self->lock);
  old = replace_sinks (self, NULL, entry);
  for (guint i = 0; i < self->n_tracks && functions->is_open; i++) {
    if (relay_sink_takes (entry, i))
      self->tracks[i].first.known = FALSE;
  }
  if (functions->from_join) {
    self->joining |= tracks;
    relay_drain_all (self);
  }
  g_mutex_unlock (&self->lock);
  g_ptr_array_unref (old);
  for (guint i = 0; i < RELAY_MAX_TRACKS && functions->mapped; i++)
    relay_pass_ntp (self, i);
}

void
relay_remove_sink (Relay *self, gconstpointer sink)
{
  g_autoptr (GPtrArray) old = NULL;

  g_mutex_lock (&self->lock);
  old = replace_sinks (self, sink, NULL);
  g_mutex_unlock (&self->lock);
}

void
relay_expect_sinks (Relay *self, gboolean expects)
{
  g_mutex_lock (&self->lock);
  self->expects_sinks = expects;
  g_mutex_unlock (&self->lock);
}

static gboolean
track_holds_for (const RelayTrack *track, gboolean from_start)
{
  return track->holding && (from_start || !track->released);
}

gboolean
relay_holds_beginning (Relay *self)
{
  gboolean holds = TRUE;

  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->n_tracks; i++)
    holds &= track_holds_for (&self->tracks[i], FALSE);
  g_mutex_unlock (&self->lock);
  return holds;
}

gboolean
relay_holds_for (Relay *self, guint track, gboolean from_start)
{
  gboolean holds;

  g_mutex_lock (&self->lock);
  holds = track < self->n_tracks && track_holds_for (&self->tracks[track], from_start);
  g_mutex_unlock (&self->lock);
  return holds;
}

void
relay_await_sink (Relay *self, gboolean awaits)
{
  g_mutex_lock (&self->lock);
  self->awaits_sink = awaits;
  g_mutex_unlock (&self->lock);
}

void
relay_begin_sinks (Relay *self)
{
  g_autoptr (GPtrArray) caps = dup_all_caps (self);
  g_autoptr (GPtrArray) sinks = NULL, done = NULL;
  gint64 start;

  g_mutex_lock (&self->lock);
  done = g_steal_pointer (&self->done);
  sinks = g_ptr_array_ref (self->sinks);
  start = relay_common_time (self);
  for (guint i = 0; i < sinks->len; i++) {
    RelaySinkEntry *entry = g_ptr_array_index (sinks, i);

    if (entry->functions->begun)
      entry->start = start;
  }
  g_mutex_unlock (&self->lock);
  for (guint i = 0; i < sinks->len; i++) {
    RelaySinkEntry *entry = g_ptr_array_index (sinks, i);

    if (entry->functions->begun)
      entry->functions->begun (entry->sink, self, caps, start);
  }
}
