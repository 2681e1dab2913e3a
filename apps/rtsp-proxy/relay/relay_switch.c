// SPDX-License-Identifier: LGPL-2.1-or-later

// Changes a relay from one source to another.

#include "relay/relay_private.h"

// RTP-Info of a standby source that is further than this from its join point is ignored.
#define STANDBY_BASE_TOLERANCE_S 30
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

// ---- taking over; with the lock held ----

static gboolean
read_timestamp (GstBuffer *packet, guint32 *timestamp)
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
      || !read_timestamp (join->packet, &timestamp))
    return FALSE;
  rate = relay->tracks[join->track].splice.clock_rate;
  *time = next->start + relay->origin_offset
          + relay_ticks_from (join->base, timestamp) * (gint64) GST_SECOND / rate;
  return TRUE;
}

// Returns the time from a source's start of play to its join point, in ns; 0 if its RTP-Info is
// missing or ignored. For a source that does not have the relay's origin.
static gint64
find_join_offset (Relay *relay, const StandbyPacket *join)
{
  gint64 rate = relay->tracks[join->track].splice.clock_rate;
  guint32 timestamp;
  gint64 ticks;

  if (join->base == RELAY_NO_BASE || !read_timestamp (join->packet, &timestamp))
    return 0;
  ticks = relay_ticks_from (join->base, timestamp);
  return ABS (ticks) > rate * STANDBY_BASE_TOLERANCE_S ? 0 : ticks * (gint64) GST_SECOND / rate;
}

// Makes the standby source the current one, and sends its packets from its join point on.
void
relay_switch (Relay *relay, gint64 now)
{
  RelaySource *next = relay->next;
  const StandbyPacket *join = standby_get_join (next->standby);
  gint64 start, time;
  StandbyPacket packet;

  if (find_join_time (relay, next, &time)) {
    gint64 end = weir_splice_end (&relay->tracks[join->track].splice);

    start = relay_source_find_start (next, now);
    relay->tracks[join->track].resumes = FALSE;
    if (time <= end)
      start += end + (gint64) RELAY_SPLICE_GAP - time;
  } else {
    start = relay_next_start (relay, now) - find_join_offset (relay, join);
    relay_drop_overlap (relay);
    relay->tracks[join->track].resumes = FALSE;
  }
  relay->next = NULL;
  relay->current = next;
  relay->stats.n_switches++;
  next->flows = FALSE;
  relay_source_open_run (next, start, join->now, STANDBY_BASE_TOLERANCE_S);
  while (standby_pop (next->standby, &packet)) {
    // Without a common origin, packets from before the join point have no time in the relay.
    if (!next->origin && packet.now < next->run_arrival)
      gst_buffer_unref (packet.packet);
    else
      relay_source_send (
          next, packet.track, gst_buffer_make_writable (packet.packet), packet.now, packet.base);
  }
  g_clear_pointer (&next->standby, standby_free);
}

gboolean
relay_is_switch_time (Relay *relay, guint track, GstBuffer *packet, gint64 now)
{
  RelaySource *next = relay->next, *current = relay->current;
  const StandbyPacket *join = next && next->standby ? standby_get_join (next->standby) : NULL;
  gint64 time, behind;
  guint32 timestamp;

  if (!join)
    return FALSE;
  if (!current || now - relay->last_arrival > (gint64) CURRENT_SILENCE
      || standby_is_full (next->standby))
    return TRUE;
  if (!packet || track != join->track || relay->tracks[track].mid_frame)
    return FALSE;
  if (!find_join_time (relay, next, &time) || !read_timestamp (packet, &timestamp))
    return TRUE;
  behind = weir_splice_time (&relay->tracks[track].splice, timestamp) - time;
  if (behind < -(gint64) RELAY_SAME_INSTANT)
    return now - standby_get_joined (next->standby) > (gint64) AHEAD_WAIT;
  return behind <= (gint64) BEHIND_MAX
         || now - standby_get_since (next->standby) > (gint64) BEHIND_WAIT;
}
