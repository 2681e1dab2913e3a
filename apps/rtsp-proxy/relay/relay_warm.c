// SPDX-License-Identifier: LGPL-2.1-or-later

// A warm source: it stands by while another source flows, with the packets from its newest join
// point on, and replaces a dead source there, at once. The join point is seconds old, and readers
// have seen the time since then. So the source catches up, as a new reader of a fanoutsink does
// that begins at the newest keyframe: its packets from the join point on are sent faster than they
// arrived, with compressed timestamps, until they reach the live edge. Tracks without join points,
// such as audio, begin where their packets ended before.

#include "relay/relay_private.h"

// Speed of a source that catches up. As the default of fanoutsink's property catch-up-rate: faster
// than a decoder needs, without a burst that a reader's socket would not hold.
#define CATCH_UP_RATE 8

void
relay_keep_warm (Relay *self, RelaySource *source)
{
  g_mutex_lock (&self->lock);
  if (self->n_tracks == 0 || source == self->current)
    source = NULL;
  if (source != self->next || (source && !self->next_is_warm)) {
    if (self->next)
      g_clear_pointer (&self->next->standby, standby_free);
    self->next = source;
    relay_stand_by (self);
  }
  self->next_is_warm = source != NULL;
  g_mutex_unlock (&self->lock);
}

gboolean
relay_is_warm (Relay *self, RelaySource *source)
{
  gboolean warm;

  g_mutex_lock (&self->lock);
  warm = self->next_is_warm && relay_has_join (self, source);
  g_mutex_unlock (&self->lock);
  return warm;
}

gboolean
relay_fail_over (Relay *self, RelaySource *source, gint64 now)
{
  gboolean ready;

  g_mutex_lock (&self->lock);
  ready = relay_has_join (self, source);
  if (ready) {
    relay_switch (self, now);
    relay_drain_all (self);
  }
  g_mutex_unlock (&self->lock);
  if (ready)
    relay_pass_all_ntp (self);
  return ready;
}

gint64
relay_begin_catch_up (RelaySource *self, gint64 now)
{
  Relay *relay = self->relay;
  gint64 joined = standby_get_join (self->standby)->now;
  gint64 live = relay_next_start (relay, now);
  gint64 start = live - MAX (now - joined, 0);

  for (guint i = 0; i < relay->n_tracks; i++)
    relay->tracks[i].sent_until = relay_track_end (&relay->tracks[i]);
  self->key_track = standby_get_key_track (self->standby);
  self->catch_up = (WeirJoin) { .begun_ns = now,
    .from_arrival = joined,
    .from_time = start,
    .live_time = live,
    .rate = CATCH_UP_RATE,
    .compress = true };
  return start;
}

void
relay_catch_up (RelaySource *self, gint64 now)
{
  Standby *standby = self->standby;
  const StandbyPacket *first;
  StandbyPacket packet;

  while (standby_pop_other (standby, &packet))
    relay_send_kept (self, &packet, now);
  while (
      (first = standby_peek (standby))
      && (weir_join_due (&self->catch_up, first->now) <= now || standby_is_full (standby, now))) {
    standby_pop_key (standby, &packet);
    relay_send_kept (self, &packet, now);
  }
  if (!first)
    g_clear_pointer (&self->standby, standby_free);
}

// Compression goes on after the last packet was sent: times reach the live edge a little later or
// earlier than arrivals do.
gint64
relay_compress (const RelaySource *self, guint track, gint64 time)
{
  if (!self->catch_up.rate || track != self->key_track)
    return time;
  return weir_join_time (&self->catch_up, time);
}
