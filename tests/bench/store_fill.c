// SPDX-License-Identifier: LGPL-2.1-or-later
// Makes a block store whose titles are zeros.
//
//     store_fill DIR POLICY SLICE_MS BLOCK_BYTES BLOCKS holes|bytes DISK... < TITLES
//
// TITLES has a line "NAME FIRST" for each title. FIRST is the disk (naive), or the first disk of
// the pair (raid1), of the title; the other policies do not use it. Places come from
// core/disks/placement.h. With `holes`, the blocks are not written, so that thousands of titles
// take neither time nor memory. A disk whose file system does not ask the disk for holes needs
// `bytes`.

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "disks/index.h"
#include "disks/placement.h"
#include "store/blockstore.h"

typedef struct {
  const gchar *dir;
  WeirBlockStore *store;
  WeirPlacementPolicy policy;
  gint64 slice_ns;
  guint64 block_bytes, hash;
  guint32 n_blocks;
  guint8 *zeros; // NULL: holes
  gchar **disks;
  guint n_disks;
} Fill;

static void
make_file (const Fill *fill, const gchar *path)
{
  const gsize length = fill->block_bytes;
  int fd = open (path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

  if (fd < 0 || (fill->zeros && write (fd, fill->zeros, length) != (gssize) length)
      || ftruncate (fd, (off_t) length) < 0)
    g_error ("%s: %s", path, g_strerror (errno));
  close (fd);
}

// Makes the files of a title whose index is in the store.
static void
make_blocks (const Fill *fill, const gchar *name)
{
  g_autoptr (GError) error = NULL;
  WeirStoredTitle *title = weir_block_store_open_title (fill->store, name, &error);
  const WeirIndex *index;

  if (!title)
    g_error ("%s", error->message);
  index = weir_stored_title_get_index (title);
  for (guint32 i = 0; i < index->n_blocks; i++) {
    for (guint copy = 0; copy < index->blocks[i].n_copies; copy++) {
      g_autofree gchar *path =
          weir_stored_title_dup_block_path (title, i, index->blocks[i].disks[copy]);
      g_autofree gchar *folder = g_path_get_dirname (path);

      if (g_mkdir_with_parents (folder, 0755) < 0)
        g_error ("%s: %s", folder, g_strerror (errno));
      make_file (fill, path);
    }
  }
  weir_stored_title_unref (title);
}

static gboolean
has_first (const Fill *fill)
{
  return fill->policy == WEIR_PLACEMENT_NAIVE || fill->policy == WEIR_PLACEMENT_RAID1;
}

// Chooses the disks of the title's blocks.
static void
place (const Fill *fill, WeirIndex *index, guint first, guint64 seed)
{
  g_autofree WeirPlacementDisk *disks = g_new0 (WeirPlacementDisk, fill->n_disks);
  const gboolean pairs = fill->policy == WEIR_PLACEMENT_RAID1;
  WeirPlacement placement;

  for (guint i = 0; i < fill->n_disks; i++)
    disks[i] = (WeirPlacementDisk) { .number = (guint16) i,
      .usable = !has_first (fill) || i == first || (pairs && i == first + 1),
      .free_bytes = G_MAXINT64 };
  if (weir_placement_init (&placement, fill->policy, disks, fill->n_disks, seed) < 0)
    g_error ("too few disks for the policy");
  for (guint32 i = 0; i < index->n_blocks; i++) {
    WeirIndexBlock *block = &index->blocks[i];

    *block = (WeirIndexBlock) { .offset = i * fill->block_bytes,
      .length = (guint32) fill->block_bytes,
      .time_ns = WEIR_INDEX_NO_TIME,
      .hash = fill->hash };
    block->n_copies = (guint8) weir_placement_next (&placement, fill->block_bytes, block->disks);
  }
}

static void
write_index (const Fill *fill, const WeirIndex *index)
{
  g_autofree gchar *path = g_strdup_printf ("%s/titles/%s.index", fill->dir, index->name);
  g_autofree gchar *folder = g_path_get_dirname (path);
  g_autoptr (GError) error = NULL;
  guint8 *bytes;
  size_t length;
  guint64 hash;

  if (weir_index_write (index, &bytes, &length) < 0)
    g_error ("the index of %s is not valid", index->name);
  hash = GUINT64_TO_BE (XXH3_64bits (bytes, length));
  bytes = realloc (bytes, length + sizeof hash);
  memcpy (bytes + length, &hash, sizeof hash);
  g_mkdir_with_parents (folder, 0755);
  if (!g_file_set_contents_full (path, (gchar *) bytes, (gssize) (length + sizeof hash),
          G_FILE_SET_CONTENTS_NONE, 0644, &error))
    g_error ("%s", error->message);
  free (bytes);
}

static void
add_title (const Fill *fill, gchar *name, guint first, guint64 seed)
{
  WeirIndex index = { .name = name,
    .caps = (gchar *) "",
    .rate = fill->block_bytes * 8 * 1000000000 / (guint64) fill->slice_ns,
    .slice_ns = fill->slice_ns,
    .duration_ns = fill->slice_ns * fill->n_blocks,
    .bytes = fill->block_bytes * fill->n_blocks,
    .n_blocks = fill->n_blocks };

  for (guint i = 0; i < 8; i++)
    index.id[15 - i] = (guint8) (seed >> 8 * i);
  index.blocks = g_new0 (WeirIndexBlock, index.n_blocks);
  place (fill, &index, first, seed);
  write_index (fill, &index);
  g_free (index.blocks);
  make_blocks (fill, name);
}

int
main (int argc, char **argv)
{
  Fill fill;
  g_autofree gchar *warning = NULL;
  g_autofree guint8 *zeros = NULL;
  g_autoptr (GError) error = NULL;
  gchar name[256];
  guint first;

  if (argc < 8) {
    fprintf (stderr, "Usage: store_fill DIR POLICY SLICE_MS BLOCK_BYTES BLOCKS holes|bytes DISK... "
                     "< TITLES\n");
    return 2;
  }
  fill = (Fill) { .dir = argv[1],
    .policy = (WeirPlacementPolicy) weir_placement_policy (argv[2]),
    .slice_ns = g_ascii_strtoll (argv[3], NULL, 10) * 1000000,
    .block_bytes = g_ascii_strtoull (argv[4], NULL, 10),
    .n_blocks = (guint32) g_ascii_strtoull (argv[5], NULL, 10),
    .disks = argv + 7,
    .n_disks = (guint) argc - 7 };
  zeros = g_malloc0 (fill.block_bytes);
  fill.hash = XXH3_64bits (zeros, fill.block_bytes);
  fill.zeros = strcmp (argv[6], "bytes") == 0 ? zeros : NULL;
  if (!weir_block_store_init (fill.dir, (const gchar *const *) fill.disks, fill.policy,
          fill.slice_ns, &warning, &error))
    g_error ("%s", error->message);
  fill.store = weir_block_store_open (fill.dir, &error);
  if (!fill.store)
    g_error ("%s", error->message);
  for (guint64 n = 1; scanf ("%255s %u", name, &first) == 2; n++)
    add_title (&fill, name, first, n);
  weir_block_store_unref (fill.store);
  return 0;
}
