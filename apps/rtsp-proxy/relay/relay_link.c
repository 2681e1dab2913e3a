// SPDX-License-Identifier: LGPL-2.1-or-later
#include "relay/relay_link.h"

static void
link_begun (gpointer to, Relay *from, GPtrArray *caps, gint64 start)
{
  relay_source_begin_from (to, caps, from, start);
}

static void
link_push (gpointer to, const RelayPacket *packet)
{
  (packet->more ? relay_push_more : relay_push) (
      to, packet->track, packet->buffer, packet->now, packet->base);
}

static void
link_mapped (gpointer to, guint track, const WeirNtpMap *map)
{
  relay_set_ntp_map (to, track, map);
}

static void
link_counted (gpointer to, RelayCount what, guint64 n)
{
  relay_count (to, what, n);
}

static void
link_placed (gpointer to, const TitlePlace *place)
{
  relay_set_place (to, place);
}

static const RelaySink all = { link_begun, link_push, link_mapped, relay_source_unref,
  .counted = link_counted, .placed = link_placed };
static const RelaySink some = { NULL, link_push, link_mapped, relay_source_unref,
  .counted = link_counted };

void
relay_link (Relay *self, RelaySource *to)
{
  relay_source_ask_from (to, self);
  relay_add_sink (self, &all, relay_source_ref (to), G_MAXUINT32, relay_get_time (self));
}

void
relay_link_some (Relay *self, RelaySource *to, guint32 tracks, gint64 start)
{
  relay_add_sink (self, &some, relay_source_ref (to), tracks, start);
}

void
relay_unlink (Relay *self, RelaySource *to)
{
  relay_source_set_key_handler (to, NULL, NULL, NULL);
  relay_remove_sink (self, to);
}
