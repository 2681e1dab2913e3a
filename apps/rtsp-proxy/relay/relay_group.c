// SPDX-License-Identifier: LGPL-2.1-or-later

// The packets that a relay has sent since its newest join point, for a sink that is added later and
// begins there, as if it had been there.

#include "relay/relay_private.h"

// Call with the lock held.
static void
begin_group (Relay *self)
{
  GPtrArray *caps = g_ptr_array_new ();

  for (guint i = 0; i < self->n_tracks; i++)
    g_ptr_array_add (caps, self->tracks[i].caps);
  self->group = standby_new (caps);
  g_ptr_array_unref (caps);
}

void
relay_keep_group (Relay *self)
{
  g_mutex_lock (&self->lock);
  self->keeps_group = TRUE;
  g_mutex_unlock (&self->lock);
}

void
relay_group_clear (Relay *self)
{
  g_clear_pointer (&self->group, standby_free);
}

// The packet's time stands in place of a base.
void
relay_group_keep (Relay *self, guint track, const RelayItem *item)
{
  if (!self->keeps_group)
    return;
  if (!self->group)
    begin_group (self);
  if (track != standby_get_key_track (self->group))
    return;
  standby_push (self->group, track, gst_buffer_ref (item->packet), item->now, (guint64) item->time);
  if (standby_is_full (self->group, item->now))
    standby_clear (self->group);
}

// Chooses the sinks that get the group now. Returns FALSE if there is none. Call with the lock
// held.
static gboolean
choose_sinks (Relay *self, guint track)
{
  gboolean any = FALSE;

  for (guint i = 0; i < self->sinks->len; i++) {
    RelaySinkEntry *entry = g_ptr_array_index (self->sinks, i);
    gboolean begins = entry->functions->from_join && relay_sink_takes (entry, track)
                      && !(entry->started >> track & 1);

    entry->gets[track] = begins ? RELAY_GETS_ALL : RELAY_GETS_NOTHING;
    if (!begins)
      continue;
    entry->started |= 1u << track;
    entry->base[track] = weir_splice_timestamp_at (&self->tracks[track].splice, entry->start);
    any = TRUE;
  }
  return any;
}

static void
pass (Relay *self, guint track, GPtrArray *sinks, GArray *packets)
{
  g_mutex_unlock (&self->lock);
  for (guint i = 0; i < packets->len; i++) {
    const StandbyPacket *packet = &g_array_index (packets, StandbyPacket, i);
    const RelayItem item = { packet->packet, packet->now, (gint64) packet->base };

    relay_push_to (sinks, track, &item, RELAY_GETS_ALL, i + 1 < packets->len);
  }
  g_ptr_array_unref (sinks);
  g_mutex_lock (&self->lock);
}

void
relay_group_pass (Relay *self, guint track)
{
  while (self->joining >> track & 1) {
    GArray *packets = g_array_new (FALSE, FALSE, sizeof (StandbyPacket));

    self->joining &= ~(1u << track);
    if (choose_sinks (self, track) && self->group && track == standby_get_key_track (self->group))
      standby_ref_all (self->group, packets);
    if (packets->len > 0)
      pass (self, track, g_ptr_array_ref (self->sinks), packets);
    g_array_unref (packets);
  }
}
