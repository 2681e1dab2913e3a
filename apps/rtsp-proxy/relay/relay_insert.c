// SPDX-License-Identifier: LGPL-2.1-or-later

// A clip between two keyframes of a live source. While the clip waits, each frame of the live
// source is kept until it is known to be no keyframe. At a keyframe the clip takes over in its
// place, and is asked to begin. The live source takes over again as after a failover, but goes on
// at its own place in the relay's time, so its tracks relate to each other as before.

#include "relay/relay_private.h"

#include <string.h>

// The live source may come back this far from where its timestamps say. Otherwise they have
// jumped, and the time since the last packet says where its run goes on.
#define PLACE_TOLERANCE (2 * GST_SECOND)

// ---- the clip ----

RelaySource *
relay_source_new_clip (Relay *relay, const RelaySourceCallbacks *callbacks, gpointer owner)
{
  RelaySource *self = relay_source_new (relay, callbacks, owner);

  self->is_clip = TRUE;
  return self;
}

GPtrArray *
relay_source_dup_caps (RelaySource *self)
{
  GPtrArray *caps;

  g_mutex_lock (&self->relay->lock);
  caps = self->caps ? g_ptr_array_ref (self->caps) : NULL;
  g_mutex_unlock (&self->relay->lock);
  return caps;
}

// ---- waiting ----

void
relay_insert_forget (Relay *relay)
{
  relay->insert = NULL;
  g_clear_pointer (&relay->scout, standby_free);
}

// Sends what is kept of the current source's frame.
static void
send_kept_frame (Relay *relay, gint64 now)
{
  StandbyPacket packet;

  while (standby_pop (relay->scout, &packet))
    relay_source_send (relay->current, packet.track, gst_buffer_make_writable (packet.packet),
        packet.now, now, packet.base);
}

void
relay_insert_rearm (Relay *relay)
{
  StandbyPacket packet;

  if (!relay->insert)
    return;
  while (standby_pop (relay->scout, &packet)) {
    gst_buffer_unref (packet.packet);
    relay->stats.n_idle++;
  }
  if (relay_has_tracks (relay, relay->insert->caps))
    standby_clear (relay->scout);
  else
    relay_insert_forget (relay);
}

gboolean
relay_insert (Relay *relay, RelaySource *clip, gint64 now)
{
  RelayKeyHandler *handler = NULL;
  guint key = 0;
  gboolean fits;

  g_mutex_lock (&relay->lock);
  fits = clip && clip->caps && relay_has_tracks (relay, clip->caps) && clip != relay->current;
  if (relay->insert) {
    if (relay->current)
      send_kept_frame (relay, now);
    relay_insert_forget (relay);
  }
  if (fits) {
    relay->insert = clip;
    relay->scout = standby_new (clip->caps);
    key = standby_get_key_track (relay->scout);
    relay->tracks[key].key_wanted = TRUE;
    handler = relay_take_key_request (relay, key, now);
  }
  relay_drain_all (relay);
  g_mutex_unlock (&relay->lock);
  relay_pass_key_request (handler, key, now);
  return fits;
}

void
relay_ask_next (Relay *relay, gint64 now)
{
  RelayKeyHandler *handler = NULL;
  guint key = 0;

  g_mutex_lock (&relay->lock);
  if (relay->next && relay->next->standby) {
    key = standby_get_key_track (relay->next->standby);
    handler = relay_source_dup_key_handler (relay->next);
  }
  g_mutex_unlock (&relay->lock);
  relay_pass_key_request (handler, key, now);
}

// ---- the clip takes over; with the lock held ----

// Notes where the current source is at the instant `time`.
static void
note_place (RelaySource *live, gint64 time)
{
  RelayPlace *place = &live->place;

  place->time = time;
  for (guint i = 0; i < live->relay->n_tracks; i++) {
    const WeirSplice *splice = &live->relay->tracks[i].splice;

    place->placed[i] = live->tracks[i].alive;
    place->stated[i] = live->tracks[i].stated;
    place->bases[i] = weir_splice_timestamp_at (splice, time) - splice->ts_offset;
  }
}

// Notes the clock of the current source, and by how much its sender reports say that the times of
// its tracks are wrong: all that the sinks correct of its media, they correct of the clip's too.
static void
note_clock (RelaySource *live, RelaySource *clip)
{
  RelaySync sync = { 0 };

  if (!relay_compare_reports (live->relay, &sync))
    memset (sync.offsets, 0, sizeof sync.offsets);
  for (guint i = 0; i < live->relay->n_tracks; i++) {
    clip->offsets[i] = sync.offsets[i];
    clip->maps[i] = live->tracks[i].ntp;
    clip->maps[i].known &= live->tracks[i].alive && clip->maps[i].ssrc == live->tracks[i].ssrc;
    clip->maps[i].timestamp += live->relay->tracks[i].splice.ts_offset;
  }
}

void
relay_insert_keep_clock (RelaySource *self, guint index)
{
  SourceTrack *track = &self->tracks[index];

  track->ntp = self->maps[index];
  track->ntp.timestamp -= self->relay->tracks[index].splice.ts_offset;
  track->ntp.ssrc = track->ssrc;
}

// Makes the clip the current source, in place of the keyframe that is kept.
static void
cut (Relay *relay, gint64 now)
{
  const StandbyPacket *join = standby_get_join (relay->scout);
  RelaySource *live = relay->current, *clip = relay->insert;
  RelayTrack *track = &relay->tracks[join->track];
  gint64 start = relay_next_start (relay, now), end;
  guint32 timestamp;

  live->place.known =
      live->tracks[join->track].alive && relay_read_timestamp (join->packet, &timestamp);
  if (live->place.known) {
    start = weir_splice_time (&track->splice, timestamp);
    note_place (live, start);
    end = relay_track_end (track);
    if (start <= end)
      start = end + (gint64) RELAY_SPLICE_GAP;
  }
  note_clock (live, clip);
  relay_source_reset_run (clip);
  clip->pinned = TRUE;
  clip->pin = start;
  relay_drop_overlap (relay);
  track->resumes = FALSE;
  relay_insert_rearm (relay); // drops the keyframe
  relay_insert_forget (relay);
  g_clear_pointer (&live->standby, standby_free);
  if (relay->next)
    g_clear_pointer (&relay->next->standby, standby_free);
  relay->next = NULL;
  relay->next_is_warm = FALSE;
  relay->current = clip;
  relay->stats.n_switches++;
}

RelayKeyHandler *
relay_insert_pass (
    RelaySource *self, guint index, GstBuffer *packet, gint64 now, guint64 base, guint *key)
{
  Relay *relay = self->relay;
  Standby *scout = relay->scout;
  RelaySource *clip = relay->insert;
  gboolean begins = FALSE, ends = FALSE;
  const StandbyPacket *kept;
  guint32 timestamp, before;
  guint8 second = 0;

  if (index != standby_get_key_track (scout)) {
    relay_source_send (self, index, packet, now, now, base);
    relay_drain (relay, index);
    return NULL;
  }
  kept = standby_peek (scout);
  if (kept && relay_read_timestamp (kept->packet, &before)
      && relay_read_timestamp (packet, &timestamp))
    begins = timestamp != before;
  if (begins || standby_is_full (scout, now)) {
    send_kept_frame (relay, now);
    standby_clear (scout);
  }
  gst_buffer_extract (packet, 1, &second, 1);
  ends = (second & 0x80) != 0;
  standby_push (scout, index, packet, now, base);
  if (standby_get_join (scout)) {
    *key = index;
    cut (relay, now);
    return relay_source_dup_key_handler (clip);
  }
  if (ends) {
    send_kept_frame (relay, now);
    standby_clear (scout);
  }
  relay_drain (relay, index);
  return NULL;
}

// ---- the live source comes back; with the lock held ----

gboolean
relay_find_place (RelaySource *self, const StandbyPacket *join, gint64 now, gint64 *start)
{
  Relay *relay = self->relay;
  const RelayTrack *track = &relay->tracks[join->track];
  gint64 expected = relay_next_start (relay, now), end = relay_track_end (track), time;
  RelayPlace *place = &self->place;
  guint32 timestamp;

  if (!place->known)
    return FALSE;
  place->known = place->placed[join->track] && relay_read_timestamp (join->packet, &timestamp);
  if (!place->known)
    return FALSE;
  time = place->time
         + relay_ticks_from (place->bases[join->track], timestamp) * (gint64) GST_SECOND
               / track->splice.clock_rate;
  place->known = ABS (time - expected) <= (gint64) PLACE_TOLERANCE;
  *start = place->time + (time <= end ? end + (gint64) RELAY_SPLICE_GAP - time : 0);
  return place->known;
}
