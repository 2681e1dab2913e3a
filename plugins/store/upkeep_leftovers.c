// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/disks.h"
#include "store/files.h"
#include "store/leftovers.h"
#include "store/upkeep_private.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
  Upkeep *up;
  gboolean remove, forget;
  gboolean complete;   // all indexes could be read
  GHashTable *ids;     // of all titles: id: name
  GHashTable *unknown; // ids without a title
} Search;

// A file without a title stays, unless it is to be forgotten.
static void
found (Search *self, const gchar *path, gboolean is_unknown)
{
  if (is_unknown && !self->forget) {
    self->up->result.unknown++;
    return;
  }
  self->up->result.leftovers++;
  if (self->remove)
    unlink (path);
}

static gboolean
add_id (const gchar *name, WeirStoredTitle *title, const GError *error, gpointer data)
{
  Search *self = data;
  gchar id[33];

  if (title) {
    store_print_id (title->index.id, id);
    g_hash_table_insert (self->ids, g_strdup (id), g_strdup (name));
  } else {
    self->complete = FALSE;
  }
  return TRUE;
}

static gboolean
is_named (const WeirIndex *index, guint16 disk, const gchar *file)
{
  const WeirIndexBlock *block;
  gchar *end;
  guint64 number = g_ascii_strtoull (file, &end, 16);

  if (g_str_equal (file, "index"))
    return upkeep_uses_disk (index, disk);

  if (strlen (file) != 8 || *end || number >= index->n_blocks)
    return FALSE;
  block = &index->blocks[number];
  return block->disks[0] == disk || (block->n_copies > 1 && block->disks[1] == disk);
}

// Looks through a folder of blocks of the title `name`, or of no title.
static void
search_folder (
    Search *self, guint16 disk, const gchar *path, const gchar *name, gboolean is_unknown)
{
  WeirStoredTitle *title = name ? weir_block_store_open_title (self->up->store, name, NULL) : NULL;
  GDir *dir = title || !name ? g_dir_open (path, 0, NULL) : NULL;
  const gchar *file;

  while (dir && (file = g_dir_read_name (dir))) {
    g_autofree gchar *below = g_build_filename (path, file, NULL);

    if (!title || !is_named (&title->index, disk, file))
      found (self, below, is_unknown);
  }
  if (dir)
    g_dir_close (dir);
  if (title)
    weir_stored_title_unref (title);
  if (self->remove)
    g_rmdir (path); // if nothing is left
}

static gboolean
search_disk (Search *self, const WeirStoreDisk *disk, GError **error)
{
  g_autofree gchar *blocks = g_build_filename (disk->path, "blocks", NULL);
  GDir *dir = g_dir_open (blocks, 0, NULL);
  const gchar *id;

  while (
      dir && (id = g_dir_read_name (dir)) && !g_cancellable_is_cancelled (self->up->cancellable)) {
    g_autofree gchar *path = g_build_filename (blocks, id, NULL);
    const gchar *name = g_hash_table_lookup (self->ids, id);

    gboolean is_unknown = !name && !leftovers_is_noted (self->up->store, id);

    if (!name && (!self->complete || leftovers_is_busy (self->up->store, id)))
      continue;
    if (is_unknown)
      g_hash_table_add (self->unknown, g_strdup (id));
    search_folder (self, disk->number, path, name, is_unknown);
  }
  if (dir)
    g_dir_close (dir);
  return !g_cancellable_set_error_if_cancelled (self->up->cancellable, error);
}

static void
report_unknown (Search *self)
{
  const guint n = g_hash_table_size (self->unknown);
  g_autofree gchar *text = NULL;

  if (n == 0 || self->forget)
    return;
  text = g_strdup_printf ("%" G_GUINT64_FORMAT " files of %u titles have no index; %s",
      self->up->result.unknown, n,
      self->remove ? "no disk has a copy of it, so they stay; repair --forget removes them"
                   : "repair makes it anew if a disk has a copy of it");
  upkeep_report (self->up, NULL, text);
}

gboolean
upkeep_leftovers (Upkeep *up, gboolean remove, gboolean forget, GError **error)
{
  g_autofree WeirStoreDisk *disks = g_new (WeirStoreDisk, WEIR_STORE_DISKS_MAX);
  Search self = { up, remove, forget, TRUE };
  guint n = weir_block_store_get_disks (up->store, disks, WEIR_STORE_DISKS_MAX);
  int lock = store_lock (up->store, error);
  gboolean ok;

  if (lock < 0)
    return FALSE;
  if (remove)
    up->result.leftovers += leftovers_clean (up->store);
  self.ids = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  self.unknown = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  ok = weir_block_store_list (up->store, add_id, &self, error);
  for (guint i = 0; ok && i < n; i++) {
    if (disks[i].present)
      ok = search_disk (&self, &disks[i], error);
  }
  if (ok && !self.complete)
    upkeep_report (up, NULL, "leftovers were not looked for, because an index cannot be read");
  if (ok)
    report_unknown (&self);
  g_hash_table_unref (self.unknown);
  g_hash_table_unref (self.ids);
  close (lock);
  return ok;
}
