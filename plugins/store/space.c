// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/space.h"

#include "store/blockstore_private.h"
#include "store/looking.h"
#include "store/writing.h"

#define RESERVE (G_GUINT64_CONSTANT (1) << 20) // of each disk, for folders and the last block's end

static WeirPlacementDisk
to_place (WeirBlockStore *store, const WeirStoreDisk *disk)
{
  return (WeirPlacementDisk) { .number = disk->number,
    .usable = disk->present && !disk->removing && !weir_disk_is_stuck (disk->path)
              && !store_reader_avoids (store, disk->number),
    .free_bytes = disk->free_bytes - MIN (disk->free_bytes, RESERVE) };
}

guint
space_get (WeirBlockStore *store, WeirPlacementDisk *disks)
{
  g_autofree WeirStoreDisk *all = g_new (WeirStoreDisk, WEIR_STORE_DISKS_MAX);
  guint n = weir_block_store_get_disks (store, all, WEIR_STORE_DISKS_MAX);

  for (guint i = 0; i < n; i++)
    disks[i] = to_place (store, &all[i]);
  return n;
}

gboolean
space_begin (
    WeirBlockStore *store, WeirPlacement *placement, WeirPlacementDisk *disks, GError **error)
{
  WeirPlacementPolicy policy = weir_block_store_get_policy (store);
  guint64 seed = (guint64) g_random_int () << 32 | g_random_int ();
  guint n = space_get (store, disks);

  if (weir_placement_init (placement, policy, disks, n, seed) == 0)
    return TRUE;
  g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_DISK,
      "policy %s needs more disks than the store has now; are all disks mounted?",
      weir_placement_name (policy));
  return FALSE;
}

gboolean
space_can_use (WeirBlockStore *store, guint16 number)
{
  const gchar *path = weir_block_store_get_disk_path (store, number);

  return path && !weir_disk_is_stuck (path) && !store_reader_avoids (store, number)
         && weir_disk_is_there (path, weir_block_store_get_id (store), number);
}

typedef struct {
  guint16 number;
  guint64 device, free_bytes;
} Room;

// Returns the rooms of the usable disks. (transfer full)
static GArray *
get_rooms (WeirBlockStore *store)
{
  g_autofree WeirStoreDisk *all = g_new (WeirStoreDisk, WEIR_STORE_DISKS_MAX);
  GArray *rooms = g_array_new (FALSE, FALSE, sizeof (Room));
  guint n = weir_block_store_get_disks (store, all, WEIR_STORE_DISKS_MAX);

  for (guint i = 0; i < n; i++) {
    WeirPlacementDisk disk = to_place (store, &all[i]);
    Room room = { disk.number, all[i].device, disk.free_bytes };

    if (disk.usable)
      g_array_append_val (rooms, room);
  }
  return rooms;
}

// Returns the room for a title that lies on one disk or on a mirror pair.
static guint64
room_of_one (const GArray *rooms, gboolean pairs)
{
  guint64 most = 0;

  for (guint i = 0; i < rooms->len; i++) {
    const Room *room = &g_array_index (rooms, Room, i);
    guint64 bytes = pairs ? 0 : room->free_bytes;

    for (guint j = 0; pairs && j < rooms->len; j++) {
      const Room *other = &g_array_index (rooms, Room, j);

      if (other->number == (room->number ^ 1))
        bytes = MIN (room->free_bytes, other->free_bytes) / (room->device == other->device ? 2 : 1);
    }
    most = MAX (most, bytes);
  }
  return most;
}

// Returns the room for the copies of a title of `bytes` bytes that lies on all disks: each disk
// gets at most one copy of a block.
static guint64
room_of_all (const GArray *rooms, guint64 bytes, guint copies)
{
  guint64 sum = 0;

  for (guint i = 0; i < rooms->len; i++) {
    const Room *room = &g_array_index (rooms, Room, i);
    gboolean first = TRUE;
    guint n = 0;

    for (guint j = 0; j < rooms->len; j++) {
      gboolean same = g_array_index (rooms, Room, j).device == room->device;

      n += same;
      first = first && !(same && j < i);
    }
    if (first)
      sum += MIN (room->free_bytes, bytes * MIN (n, copies));
  }
  return sum / copies;
}

// Unlike g_format_size(), with a plain space. (transfer full)
static gchar *
dup_size (guint64 bytes)
{
  return g_strdup_printf ("%.1f MB", (gdouble) bytes / 1e6);
}

static gboolean
set_space_error (
    WeirBlockStore *store, const gchar *what, guint64 bytes, guint64 room, GError **error)
{
  WeirPlacementPolicy policy = weir_block_store_get_policy (store);
  g_autofree gchar *needed = dup_size (bytes), *there = dup_size (room);

  g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NO_SPACE,
      "no room for %s: %s are needed, and the disks have room for %s in %s (policy %s); add a disk "
      "or remove titles",
      what, needed, there, weir_placement_copies (policy) > 1 ? "two copies" : "one copy",
      weir_placement_name (policy));
  return FALSE;
}

static gboolean
check (WeirBlockStore *store, const gchar *what, guint64 bytes, guint64 largest, GError **error)
{
  WeirPlacementPolicy policy = weir_block_store_get_policy (store);
  guint copies = weir_placement_copies (policy);
  GArray *rooms = get_rooms (store);
  gboolean pairs = policy == WEIR_PLACEMENT_RAID1;
  guint64 all = bytes > G_MAXUINT64 / 4 ? 0 : room_of_all (rooms, bytes, copies);
  guint64 one = pairs || policy == WEIR_PLACEMENT_NAIVE ? room_of_one (rooms, pairs) : G_MAXUINT64;

  g_array_unref (rooms);
  if (one < largest)
    return set_space_error (store, what, largest, one, error);
  return all >= bytes || set_space_error (store, what, bytes, all, error);
}

gboolean
space_check (WeirBlockStore *store, const guint64 *bytes, gsize n, GError **error)
{
  g_autofree gchar *what =
      n == 1 ? g_strdup ("the title") : g_strdup_printf ("the %" G_GSIZE_FORMAT " titles", n);
  g_autofree WeirPlacementDisk *disks = g_new0 (WeirPlacementDisk, WEIR_STORE_DISKS_MAX);
  guint64 sum = 0, largest = 0;
  WeirPlacement placement;

  if (!space_begin (store, &placement, disks, error))
    return FALSE;
  for (gsize i = 0; i < n; i++) {
    sum = bytes[i] > G_MAXUINT64 - sum ? G_MAXUINT64 : sum + bytes[i];
    largest = MAX (largest, bytes[i]);
  }
  return check (store, what, sum, largest, error);
}
