// SPDX-License-Identifier: LGPL-2.1-or-later
#include "control/swarm_figures.h"

#define AT(field) G_STRUCT_OFFSET (StoreSwarmTitle, field)

const Figure swarm_figures[] = {
  { "readers", "swarm_readers", "gauge", "Readers of titles of torrents.", AT (readers) },
  { "peers", "swarm_peers", "gauge", "Connected peers.", AT (peers) },
  { "size", NULL, NULL, NULL, AT (size) },
  { "held-bytes", "swarm_held_bytes", "gauge", "Bytes of pieces that are kept.", AT (held_bytes) },
  { "saved-permille", NULL, NULL, NULL, AT (saved_permille) },
  { "peer-bytes", "swarm_peer_bytes_total", "counter", "Bytes of titles that peers sent.",
      AT (peer_bytes) },
  { "origin-bytes", "swarm_origin_bytes_total", "counter", "Bytes of titles that origins sent.",
      AT (origin_bytes) },
  { "sent-bytes", "swarm_sent_bytes_total", "counter", "Bytes of titles that peers were sent.",
      AT (sent_bytes) },
  { "duplicate-bytes", "swarm_duplicate_bytes_total", "counter",
      "Bytes that were there when peers sent them.", AT (duplicate_bytes) },
  { "wrong-bytes", "swarm_wrong_bytes_total", "counter",
      "Bytes of pieces that did not have the hash of the torrent.", AT (wrong_bytes) },
  { "origin-errors", "swarm_origin_errors_total", "counter", "Requests that origins failed.",
      AT (origin_errors) },
  { "late-pieces", "swarm_late_pieces_total", "counter",
      "Pieces that were not there when a reader asked for them.", AT (late_pieces) },
  { "stalls", "swarm_stalls_total", "counter",
      "Times that a reader waited for a piece, except at its start and at its seeks.",
      AT (stalls) },
  { "stalled-microseconds", "swarm_stalled_microseconds_total", "counter", "Time of these waits.",
      AT (stalled_us) },
  { "start-up-microseconds", NULL, NULL, NULL, AT (start_up_us) },
  { "starts", "swarm_starts_total", "counter", "Readers that have got their first byte.",
      AT (starts) },
  { "starts-microseconds", "swarm_starts_microseconds_total", "counter",
      "Time from the opening of these readers to their first byte.", AT (starts_us) },
  { NULL },
};

#undef AT

gboolean
swarm_figures_sum (Mount *mount, gpointer sum)
{
  g_autoptr (Store) store = mount_dup_store (mount);

  return store && store_get_swarm (store, sum, NULL, NULL);
}

static void
write_title (gpointer data, const gchar *name, const StoreSwarmTitle *title)
{
  JsonBuilder *builder = data;

  json_builder_begin_object (builder);
  json_builder_set_member_name (builder, "title");
  json_builder_add_string_value (builder, name);
  figures_write (swarm_figures, title, builder);
  json_builder_end_object (builder);
}

void
swarm_figures_write (JsonBuilder *builder, Mount *mount)
{
  g_autoptr (Store) store = mount_dup_store (mount);
  StoreSwarmTitle sum;

  if (store && store->kind->get_swarm) {
    json_builder_set_member_name (builder, "swarm");
    json_builder_begin_array (builder);
    store_get_swarm (store, &sum, write_title, builder);
    json_builder_end_array (builder);
  }
}
