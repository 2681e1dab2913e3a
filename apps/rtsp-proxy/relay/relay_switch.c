// SPDX-License-Identifier: LGPL-2.1-or-later

// Changes a relay from one source to another.

#include "relay/relay_private.h"

#include <string.h>

// RTP-Info of a standby source that is further than this from its join point is ignored.
#define STANDBY_BASE_TOLERANCE_S 30
// Greatest distance of a sender report to the join point, in s.
#define REPORT_AGE_MAX_S 60
#define IGNORE_BASES (-1) // as tolerance
// A standby source at its join point takes over at once if the current source has been silent for
// this long.
#define CURRENT_SILENCE (100 * GST_MSECOND)
// Limits if both sources have the same origin. A standby source whose join point is ahead of the
// current source waits for AHEAD_WAIT at most. A join point behind the current source may be
// BEHIND_MAX behind it, which allows for a stage's delay; after BEHIND_WAIT any join point is
// accepted.
#define AHEAD_WAIT GST_SECOND
#define BEHIND_MAX (250 * GST_MSECOND)
#define BEHIND_WAIT (5 * GST_SECOND)

// ---- standing by ----

void
relay_stand_by (Relay *relay)
{
  RelaySource *next = relay->next;

  if (!next)
    return;
  g_clear_pointer (&next->standby, standby_free);
  if (next->caps && relay_has_tracks (relay, next->caps))
    next->standby = standby_new (next->caps);
}

gboolean
relay_has_join (Relay *relay, const RelaySource *source)
{
  return source && source == relay->next && source->standby && standby_get_join (source->standby);
}

// ---- taking over; with the lock held ----

gboolean
relay_read_timestamp (GstBuffer *packet, guint32 *timestamp)
{
  guint8 header[8];

  if (gst_buffer_extract (packet, 0, header, sizeof header) < sizeof header)
    return FALSE;
  *timestamp = GST_READ_UINT32_BE (header + 4);
  return TRUE;
}

// Sets `time` to the standby source's join point, in the relay's time. Returns FALSE if the sources
// have different origins, or if the base of the join point is unknown.
static gboolean
find_join_time (Relay *relay, const RelaySource *next, gint64 *time)
{
  const StandbyPacket *join = standby_get_join (next->standby);
  guint32 timestamp, rate;

  if (!join || !next->origin || next->origin != relay->origin || join->base == RELAY_NO_BASE
      || !relay_read_timestamp (join->packet, &timestamp))
    return FALSE;
  rate = relay->tracks[join->track].splice.clock_rate;
  *time = next->start + relay->origin_offset
          + relay_ticks_from (join->base, timestamp) * (gint64) GST_SECOND / rate;
  return TRUE;
}

// Sets `*offset` to the time from a source's start of play to its join point, in ns. Returns FALSE
// if its RTP-Info is missing or ignored. For a source that does not have the relay's origin.
static gboolean
find_join_offset (const RelaySource *next, const StandbyPacket *join, gint64 *offset)
{
  gint64 rate = next->relay->tracks[join->track].splice.clock_rate;
  guint32 timestamp;
  gint64 ticks;

  *offset = 0;
  // Timestamps come back to the base after hours.
  if (join->base == RELAY_NO_BASE || !relay_read_timestamp (join->packet, &timestamp)
      || join->now - next->born > STANDBY_BASE_TOLERANCE_S * (gint64) GST_SECOND)
    return FALSE;
  ticks = relay_ticks_from (join->base, timestamp);
  if (ABS (ticks) > rate * STANDBY_BASE_TOLERANCE_S)
    return FALSE;
  *offset = ticks * (gint64) GST_SECOND / rate;
  return TRUE;
}

// Sets the bases of the tracks to the instant of the join point, by the sender reports.
static void
set_reported_bases (RelaySource *next, const StandbyPacket *join)
{
  const WeirNtpMap *key = &next->tracks[join->track].ntp;
  gint64 rate = next->relay->tracks[join->track].splice.clock_rate;
  guint32 timestamp;
  guint64 ntp;

  if (!key->known || !relay_read_timestamp (join->packet, &timestamp))
    return;
  ntp = key->ntp
        + (guint64) (relay_ticks_from (key->timestamp, timestamp) * (G_GINT64_CONSTANT (1) << 32)
                     / rate);
  for (guint i = 0; i < next->relay->n_tracks; i++) {
    const WeirNtpMap *map = &next->tracks[i].ntp;
    gdouble seconds = (gdouble) (gint64) (ntp - map->ntp) / 4294967296.0;

    if (map->known && ABS (seconds) < REPORT_AGE_MAX_S)
      next->tracks[i].base =
          map->timestamp + (guint32) (gint64) (seconds * next->relay->tracks[i].splice.clock_rate);
  }
}

void
relay_send_kept (RelaySource *self, StandbyPacket *packet, gint64 now)
{
  // Without a common origin, packets from before the join point have no time in the relay.
  if (!self->origin && !self->place.known && packet->now < self->run_arrival)
    gst_buffer_unref (packet->packet);
  else
    relay_source_send (self, packet->track, gst_buffer_make_writable (packet->packet), packet->now,
        now, packet->base);
}

// Sends what is due from the join point on, and frees the queue if that is all.
static void
send_all_kept (RelaySource *next, gint64 now)
{
  StandbyPacket packet;

  if (next->catch_up.rate) {
    relay_catch_up (next, now);
    return;
  }
  while (standby_pop (next->standby, &packet))
    relay_send_kept (next, &packet, now);
  g_clear_pointer (&next->standby, standby_free);
}

void
relay_source_reset_run (RelaySource *next)
{
  next->flows = FALSE;
  next->catch_up.rate = 0;
  for (guint i = 0; i < RELAY_MAX_TRACKS; i++) {
    next->tracks[i].alive = FALSE;
    next->tracks[i].base = RELAY_NO_BASE;
  }
}

// Some senders have their parameter sets in the description only. If packets have shown other ones
// since, sends these before the keyframe.
static void
send_sets (RelaySource *next, const StandbyPacket *join, gint64 now)
{
  const GstCaps *own = g_ptr_array_index (next->caps, join->track);
  guint8 head[WEIR_RTP_HEADER];
  GPtrArray *units = NULL;
  GstMapInfo map;
  WeirRtp rtp;

  if (next->origin || !gst_buffer_map (join->packet, &map, GST_MAP_READ))
    return;
  if (weir_rtp_parse (map.data, map.size, &rtp) == 0) {
    memcpy (head, map.data, sizeof head);
    units = relay_sets_find_missing (own, next->relay->tracks[join->track].caps,
        map.data + rtp.payload_offset, rtp.payload_length);
  }
  gst_buffer_unmap (join->packet, &map);
  head[0] = 0x80; // nothing between head and payload
  head[1] &= 0x7f;
  for (guint i = 0; units && i < units->len; i++) {
    gsize len = g_bytes_get_size (g_ptr_array_index (units, i));
    GstBuffer *packet = gst_buffer_new_allocate (NULL, sizeof head + len, NULL);

    weir_rtp_set_seq (head, (guint16) (rtp.seq - units->len + i));
    gst_buffer_fill (packet, 0, head, sizeof head);
    gst_buffer_fill (
        packet, sizeof head, g_bytes_get_data (g_ptr_array_index (units, i), NULL), len);
    relay_source_send (next, join->track, packet, join->now, now, join->base);
  }
  g_clear_pointer (&units, g_ptr_array_unref);
}

// Makes the standby source the current one, and sends its packets from its join point on.
void
relay_switch (Relay *relay, gint64 now)
{
  RelaySource *next = relay->next;
  const StandbyPacket *join = standby_get_join (next->standby);
  gint64 start, time, offset, tolerance_s = STANDBY_BASE_TOLERANCE_S;

  relay_insert_rearm (relay);
  relay_source_reset_run (next);
  if (find_join_time (relay, next, &time)) {
    gint64 end = relay_track_end (&relay->tracks[join->track]);

    start = relay_source_find_start (next, now);
    relay->tracks[join->track].resumes = FALSE;
    if (time <= end)
      start += end + (gint64) RELAY_SPLICE_GAP - time;
  } else if (!relay->next_is_warm && relay_find_place (next, join, now, &start)) {
    relay_drop_overlap (relay);
    relay->tracks[join->track].resumes = FALSE;
  } else {
    next->place.known = FALSE;
    if (!find_join_offset (next, join, &offset)) {
      tolerance_s = IGNORE_BASES;
      set_reported_bases (next, join);
    }
    start = relay->next_is_warm ? relay_begin_catch_up (next, now) : relay_next_start (relay, now);
    start -= offset;
    relay_drop_overlap (relay);
    relay->tracks[join->track].resumes = FALSE;
  }
  if (relay->current)
    g_clear_pointer (&relay->current->standby, standby_free);
  relay->next = NULL;
  relay->next_is_warm = FALSE;
  relay->current = next;
  relay->stats.n_switches++;
  relay_source_open_run (next, start, join->now, tolerance_s);
  send_sets (next, join, now);
  send_all_kept (next, now);
}

gboolean
relay_is_switch_time (Relay *relay, guint track, GstBuffer *packet, gint64 now)
{
  RelaySource *next = relay->next, *current = relay->current;
  const StandbyPacket *join = next && next->standby ? standby_get_join (next->standby) : NULL;
  gint64 time, behind;
  guint32 timestamp;

  if (!join || relay->next_is_warm)
    return FALSE;
  if (!current || now - relay->last_arrival > (gint64) CURRENT_SILENCE
      || standby_is_full (next->standby, now))
    return TRUE;
  if (!packet || track != join->track || relay->tracks[track].mid_frame)
    return FALSE;
  if (!find_join_time (relay, next, &time) || !relay_read_timestamp (packet, &timestamp))
    return TRUE;
  behind = weir_splice_time (&relay->tracks[track].splice, timestamp) - time;
  if (behind < -(gint64) RELAY_SAME_INSTANT)
    return now - standby_get_joined (next->standby) > (gint64) AHEAD_WAIT;
  return behind <= (gint64) BEHIND_MAX
         || now - standby_get_since (next->standby) > (gint64) BEHIND_WAIT;
}
