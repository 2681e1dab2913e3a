// SPDX-License-Identifier: LGPL-2.1-or-later
#include "control/broadcast_figures.h"

#define AT(field) G_STRUCT_OFFSET (BroadcastStats, field)

const Figure broadcast_figures[] = {
  { "titles", "broadcast_titles", "gauge", "Titles whose packets are numbered.", AT (titles) },
  { "preparing", "broadcast_preparing", "gauge", "Titles whose packets are being numbered.",
      AT (preparing) },
  { "channels", "broadcast_channels", "gauge", "Groups in use.", AT (channels) },
  { "rate", "broadcast_rate", "gauge", "Bits a second that are sent on all groups.", AT (rate) },
  { "admitted", "broadcast_admitted_total", "counter", "Clients that got a description.",
      AT (admitted) },
  { "refused-groups", "broadcast_refused_groups_total", "counter",
      "Clients refused because too few groups are free.", AT (refused_groups) },
  { "refused-rate", "broadcast_refused_rate_total", "counter",
      "Clients refused because the key rate does not suffice.", AT (refused_rate) },
  { "refused-preparing", "broadcast_refused_preparing_total", "counter",
      "Clients that were told to ask again later, because the title was not prepared yet.",
      AT (refused_preparing) },
  { "refused-other", "broadcast_refused_other_total", "counter",
      "Clients refused because there is no such title, or it cannot be broadcast.",
      AT (refused_other) },
  { "sent-packets", "broadcast_sent_packets_total", "counter", "Packets sent on groups.",
      AT (packets_sent) },
  { "sent-bytes", "broadcast_sent_bytes_total", "counter", "Bytes of these packets.",
      AT (bytes_sent) },
  { "frames", "broadcast_frames_total", "counter", "Frames sent on groups.", AT (frames_sent) },
  { "late-frames", "broadcast_late_frames_total", "counter",
      "Frames sent more than 1 ms after their time.", AT (frames_late) },
  { "missed-frames", "broadcast_missed_frames_total", "counter",
      "Frames not sent, because their packets were read too late.", AT (frames_missed) },
  { "unicast-packets", "broadcast_unicast_packets_total", "counter",
      "Packets given to single clients.", AT (unicast_packets) },
  { "unicast-bytes", "broadcast_unicast_bytes_total", "counter", "Bytes of these packets.",
      AT (unicast_bytes) },
  { "blocks", "broadcast_blocks_total", "counter", "Blocks of packets that were needed.",
      AT (cache_asked) },
  { "cached-blocks", "broadcast_cached_blocks_total", "counter",
      "Blocks of packets that were in memory.", AT (cache_hits) },
  { "read-bytes", "broadcast_read_bytes_total", "counter", "Bytes of blocks read from the disk.",
      AT (cache_bytes_read) },
  { NULL },
};

#undef AT

gboolean
broadcast_figures_sample (Mount *mount, gpointer stats)
{
  Broadcast *broadcast = mount_dup_broadcast (mount);
  LiveBroadcast *live = mount_dup_live_broadcast (mount);
  gboolean has = broadcast || live;

  if (broadcast)
    broadcast_get_stats (broadcast, stats);
  else if (live)
    live_broadcast_get_stats (live, stats);
  g_clear_pointer (&broadcast, broadcast_unref);
  g_clear_pointer (&live, live_broadcast_unref);
  return has;
}

void
broadcast_figures_write (JsonBuilder *builder, Mount *mount)
{
  BroadcastStats stats;

  if (!broadcast_figures_sample (mount, &stats))
    return;
  json_builder_set_member_name (builder, "broadcast");
  json_builder_begin_object (builder);
  figures_write (broadcast_figures, &stats, builder);
  json_builder_end_object (builder);
}
