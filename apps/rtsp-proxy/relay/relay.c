// SPDX-License-Identifier: LGPL-2.1-or-later
#include "relay/relay_caps.h"
#include "relay/relay_private.h"

// A track that is this far behind the others is sparse: it has nothing to send now.
#define SPARSE_AFTER GST_SECOND

// ---- tracks; with the lock held ----

static void
clear_track (RelayTrack *track)
{
  RelayItem *item;

  gst_clear_caps (&track->caps);
  g_clear_pointer (&track->sets, relay_sets_free);
  track->first.known = FALSE;
  while ((item = gst_queue_array_pop_head_struct (track->out)))
    gst_buffer_unref (item->packet);
}

gboolean
relay_has_tracks (Relay *self, GPtrArray *caps)
{
  if (self->n_tracks != MIN (caps->len, RELAY_MAX_TRACKS))
    return FALSE;
  for (guint i = 0; i < self->n_tracks; i++) {
    if (!relay_caps_same (self->tracks[i].caps, g_ptr_array_index (caps, i)))
      return FALSE;
  }
  return TRUE;
}

void
relay_set_tracks (Relay *self, GPtrArray *caps)
{
  relay_drop_held (self);
  relay_group_clear (self);
  relay_end_fixed_sinks (self);
  for (guint i = 0; i < self->n_tracks; i++)
    clear_track (&self->tracks[i]);
  self->n_tracks = MIN (caps->len, RELAY_MAX_TRACKS);
  self->last_arrival = 0;
  for (guint i = 0; i < self->n_tracks; i++) {
    RelayTrack *track = &self->tracks[i];
    GstCaps *received = g_ptr_array_index (caps, i);
    gint clock_rate = 0;

    gst_structure_get_int (gst_caps_get_structure (received, 0), "clock-rate", &clock_rate);
    track->payload = -1;
    gst_structure_get_int (gst_caps_get_structure (received, 0), "payload", &track->payload);
    track->ssrc = g_random_int ();
    track->caps = relay_caps_publish (received, track->ssrc);
    track->sets = relay_sets_new (track->caps);
    track->mid_frame = track->resumes = FALSE;
    track->sent_until = 0;
    track->key_wanted = FALSE;
    track->key_asked = 0;
    weir_splice_init (&track->splice, (guint32) MAX (clock_rate, 0));
  }
}

gint64
relay_common_time (Relay *self)
{
  gint64 latest = 0, common;

  for (guint i = 0; i < self->n_tracks; i++)
    latest = MAX (latest, relay_track_end (&self->tracks[i]));
  common = latest;
  for (guint i = 0; i < self->n_tracks; i++) {
    gint64 end = relay_track_end (&self->tracks[i]);

    if (end > latest - (gint64) SPARSE_AFTER)
      common = MIN (common, end);
  }
  return common;
}

// ---- NTP ----

// Returns the current source's mapping in outgoing timestamps. Call with the lock held.
static WeirNtpMap
outgoing_ntp (Relay *self, guint index)
{
  WeirNtpMap map = { 0 };

  if (self->current && self->current->tracks[index].alive) {
    map = self->current->tracks[index].ntp;
    map.timestamp += self->tracks[index].splice.ts_offset;
    map.ssrc = self->tracks[index].ssrc;
  }
  return map;
}

void
relay_pass_ntp (Relay *self, guint index)
{
  g_autoptr (GPtrArray) sinks = NULL;
  WeirNtpMap map;

  g_mutex_lock (&self->lock);
  if (index >= self->n_tracks) {
    g_mutex_unlock (&self->lock);
    return;
  }
  map = outgoing_ntp (self, index);
  sinks = g_ptr_array_ref (self->sinks);
  g_mutex_unlock (&self->lock);
  for (guint i = 0; i < sinks->len; i++) {
    RelaySinkEntry *entry = g_ptr_array_index (sinks, i);

    if (entry->functions->mapped && entry->tracks & 1u << index)
      entry->functions->mapped (entry->sink, index, &map);
  }
}

void
relay_pass_all_ntp (Relay *self)
{
  for (guint i = 0; i < RELAY_MAX_TRACKS; i++)
    relay_pass_ntp (self, i);
}

gboolean
relay_get_ntp (Relay *self, guint index, guint64 *ntp, gint64 *time)
{
  WeirNtpMap map = { 0 };

  g_mutex_lock (&self->lock);
  if (index < self->n_tracks && self->current && self->current->tracks[index].alive) {
    map = self->current->tracks[index].ntp;
    *ntp = map.ntp;
    *time = weir_splice_time (&self->tracks[index].splice, map.timestamp);
  }
  g_mutex_unlock (&self->lock);
  return map.known;
}

gboolean
relay_get_ntp_at (Relay *self, guint index, guint32 timestamp, guint64 *ntp)
{
  WeirNtpMap map = { 0 };

  g_mutex_lock (&self->lock);
  if (index < self->n_tracks)
    map = outgoing_ntp (self, index);
  if (map.known)
    *ntp = weir_ntp_at (&map, timestamp, self->tracks[index].splice.clock_rate);
  g_mutex_unlock (&self->lock);
  return map.known;
}

// ---- tracks as sinks see them ----

guint
relay_n_tracks (Relay *self)
{
  guint n;

  g_mutex_lock (&self->lock);
  n = self->n_tracks;
  g_mutex_unlock (&self->lock);
  return n;
}

GstCaps *
relay_dup_caps (Relay *self, guint index)
{
  GstCaps *caps = NULL;

  g_mutex_lock (&self->lock);
  if (index < self->n_tracks)
    caps = gst_caps_ref (self->tracks[index].caps);
  g_mutex_unlock (&self->lock);
  return caps;
}

// Returns the numbers of the packet with which a new reader begins.
static RelayNumbers
get_first (RelayTrack *track)
{
  return track->first.known ? track->first : relay_read_numbers (g_queue_peek_head (&track->held));
}

gboolean
relay_get_rtp_info (Relay *self, guint index, guint16 *seq, guint32 *timestamp)
{
  RelayNumbers first;
  gboolean known;

  g_mutex_lock (&self->lock);
  known = index < self->n_tracks && self->current && self->current->tracks[index].alive;
  first = known ? get_first (&self->tracks[index]) : (RelayNumbers) { FALSE };
  if (first.known) {
    *seq = first.seq;
    *timestamp = first.timestamp;
  } else if (known) {
    const WeirSplice *splice = &self->tracks[index].splice;

    *seq = (guint16) (splice->last_seq + 1);
    *timestamp = weir_splice_timestamp_at (splice, relay_common_time (self));
  }
  g_mutex_unlock (&self->lock);
  return known;
}

// Returns the instant of the earliest packet that waits, or the relay's time.
static gint64
waiting_time (Relay *self)
{
  gint64 earliest = G_MAXINT64;

  for (guint i = 0; i < self->n_tracks; i++) {
    const RelayItem *item = gst_queue_array_peek_head_struct (self->tracks[i].out);

    if (item)
      earliest = MIN (earliest, item->time);
  }
  return earliest < G_MAXINT64 ? earliest : relay_common_time (self);
}

gboolean
relay_get_waiting (Relay *self, guint index, guint16 *seq, guint32 *timestamp)
{
  RelayNumbers numbers = { FALSE };

  g_mutex_lock (&self->lock);
  if (index < self->n_tracks) {
    RelayTrack *track = &self->tracks[index];
    const RelayItem *item = gst_queue_array_peek_head_struct (track->out);

    if (item)
      numbers = relay_read_numbers (item->packet);
    else if (track->splice.n_runs > 0)
      numbers = (RelayNumbers) { TRUE, (guint16) (track->splice.last_seq + 1),
        weir_splice_timestamp_at (&track->splice, waiting_time (self)) };
  }
  g_mutex_unlock (&self->lock);
  *seq = numbers.seq;
  *timestamp = numbers.timestamp;
  return numbers.known;
}

gint64
relay_get_time (Relay *self)
{
  gint64 time;

  g_mutex_lock (&self->lock);
  time = relay_common_time (self);
  g_mutex_unlock (&self->lock);
  return time;
}

guint32
relay_get_timestamp (Relay *self, guint index, gint64 time)
{
  guint32 timestamp = 0;

  g_mutex_lock (&self->lock);
  if (index < self->n_tracks)
    timestamp = weir_splice_timestamp_at (&self->tracks[index].splice, time);
  g_mutex_unlock (&self->lock);
  return timestamp;
}

guint64
relay_get_origin (Relay *self, gint64 *offset)
{
  guint64 origin;

  g_mutex_lock (&self->lock);
  origin = self->origin ? self->origin : self->id;
  *offset = self->origin ? self->origin_offset : 0;
  g_mutex_unlock (&self->lock);
  return origin;
}

gboolean
relay_convert_time (Relay *self, Relay *other, gint64 *time)
{
  gint64 own_offset, offset;

  if (relay_get_origin (self, &own_offset) != relay_get_origin (other, &offset))
    return FALSE;
  *time += offset - own_offset;
  return TRUE;
}

gboolean
relay_get_ahead (Relay *self, guint index, Relay *other, guint other_index, guint32 *ahead)
{
  gint64 time = relay_get_time (self), there = time;

  if (!relay_convert_time (self, other, &there))
    return FALSE;
  *ahead =
      relay_get_timestamp (self, index, time) - relay_get_timestamp (other, other_index, there);
  return TRUE;
}

void
relay_get_stats (Relay *self, RelayStats *stats)
{
  g_mutex_lock (&self->lock);
  *stats = self->stats;
  g_mutex_unlock (&self->lock);
}

// ---- construction ----

Relay *
relay_new (void)
{
  static guint64 last_id; // atomic
  Relay *self = g_new0 (Relay, 1);

  g_atomic_ref_count_init (&self->refs);
  self->id = __atomic_add_fetch (&last_id, 1, __ATOMIC_RELAXED);
  g_mutex_init (&self->lock);
  self->sinks = g_ptr_array_new_with_free_func (relay_sink_entry_unref);
  for (guint i = 0; i < RELAY_MAX_TRACKS; i++) {
    RelayTrack *track = &self->tracks[i];

    track->held_times = g_array_new (FALSE, FALSE, sizeof (gint64));
    track->out = gst_queue_array_new_for_struct (sizeof (RelayItem), 2);
  }
  return self;
}

Relay *
relay_ref (Relay *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
relay_unref (Relay *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  relay_drop_held (self);
  g_clear_pointer (&self->group, standby_free);
  for (guint i = 0; i < RELAY_MAX_TRACKS; i++) {
    clear_track (&self->tracks[i]);
    g_array_unref (self->tracks[i].held_times);
    gst_queue_array_free (self->tracks[i].out);
  }
  g_ptr_array_unref (self->sinks);
  g_clear_pointer (&self->done, g_ptr_array_unref);
  g_mutex_clear (&self->lock);
  g_free (self);
}
