// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/blockstore.h"

#include "store/blockstore_private.h"
#include "store/files.h"
#include "store/looking.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static GMutex stores_lock;
static GHashTable *stores; // real path: WeirBlockStore, without references

static void
free_disk (gpointer disk)
{
  g_free (((StoreDisk *) disk)->path);
  g_free (disk);
}

void
store_get_stamp (const gchar *path, gint64 stamp[3])
{
  struct stat st;

  memset (stamp, 0, 3 * sizeof *stamp);
  if (stat (path, &st) == 0) {
    stamp[0] = (gint64) st.st_ino;
    stamp[1] = st.st_mtim.tv_sec * G_GINT64_CONSTANT (1000000000) + st.st_mtim.tv_nsec;
    stamp[2] = st.st_size;
  }
}

static StoreDisk *
find_disk (WeirBlockStore *self, guint16 number)
{
  for (guint i = 0; i < self->disks->len; i++) {
    StoreDisk *disk = self->disks->pdata[i];

    if (disk->number == number)
      return disk;
  }
  return NULL;
}

static void
set_disk (WeirBlockStore *self, const WeirStoreFileDisk *from)
{
  StoreDisk *disk = find_disk (self, from->number);

  if (!disk) {
    disk = g_new0 (StoreDisk, 1);
    disk->number = from->number;
    g_ptr_array_add (self->disks, disk);
  }
  if (g_strcmp0 (disk->path, from->path) != 0) {
    if (disk->path)
      g_ptr_array_add (self->old_paths, disk->path);
    disk->path = g_strdup (from->path);
  }
  disk->removing = from->removing;
  disk->gone = FALSE;
}

static void
take_disks (WeirBlockStore *self, const WeirStoreFile *file)
{
  for (guint i = 0; i < self->disks->len; i++)
    ((StoreDisk *) self->disks->pdata[i])->gone = TRUE;
  for (guint i = 0; i < file->disks->len; i++)
    set_disk (self, &g_array_index (file->disks, WeirStoreFileDisk, i));
}

WeirBlockStore *
store_new (const gchar *path, const WeirStoreFile *file)
{
  WeirBlockStore *self = g_new0 (WeirBlockStore, 1);

  self->refs = 1;
  self->path = g_strdup (path);
  g_mutex_init (&self->lock);
  self->disks = g_ptr_array_new_with_free_func (free_disk);
  self->old_paths = g_ptr_array_new_with_free_func (g_free);
  self->titles = g_hash_table_new (g_str_hash, g_str_equal);
  g_strlcpy (self->id, file->id, sizeof self->id);
  self->policy = file->policy;
  self->slice_ns = file->slice_ns;
  take_disks (self, file);
  return self;
}

WeirBlockStore *
weir_block_store_open (const gchar *dir, GError **error)
{
  gchar *path = realpath (dir, NULL);
  WeirBlockStore *self = NULL;
  WeirStoreFile *file;

  if (!path) {
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NO_STORE, "%s is not a store: %s", dir,
        g_strerror (errno));
    return NULL;
  }
  file = weir_store_file_read (path, error);
  if (file) {
    g_mutex_lock (&stores_lock);
    if (!stores)
      stores = g_hash_table_new (g_str_hash, g_str_equal);
    self = g_hash_table_lookup (stores, path);
    if (self) {
      self->refs++;
    } else {
      self = store_new (path, file);
      g_hash_table_insert (stores, self->path, self);
    }
    g_mutex_unlock (&stores_lock);
    store_refresh (self);
    weir_store_file_free (file);
  }
  free (path);
  return self;
}

WeirBlockStore *
weir_block_store_ref (WeirBlockStore *self)
{
  g_mutex_lock (&stores_lock);
  self->refs++;
  g_mutex_unlock (&stores_lock);
  return self;
}

void
weir_block_store_unref (WeirBlockStore *self)
{
  gboolean last;

  g_mutex_lock (&stores_lock);
  last = --self->refs == 0;
  if (last && !self->is_remote)
    g_hash_table_remove (stores, self->path);
  g_mutex_unlock (&stores_lock);
  if (!last)
    return;
  if (self->reader)
    self->free_reader (self->reader);
  g_hash_table_unref (self->titles);
  g_ptr_array_unref (self->old_paths);
  g_ptr_array_unref (self->disks);
  g_mutex_clear (&self->lock);
  g_free (self->path);
  g_free (self);
}

void
store_refresh (WeirBlockStore *self)
{
  g_autofree gchar *path = g_build_filename (self->path, WEIR_STORE_FILE, NULL);
  WeirStoreFile *file;
  gint64 stamp[3];

  if (self->is_remote)
    return;
  store_get_stamp (path, stamp);
  g_mutex_lock (&self->lock);
  if (memcmp (stamp, self->file_stamp, sizeof stamp) == 0) {
    g_mutex_unlock (&self->lock);
    return;
  }
  g_mutex_unlock (&self->lock);
  // What cannot be read now does not end a store that runs.
  file = weir_store_file_read (self->path, NULL);
  if (!file)
    return;
  g_mutex_lock (&self->lock);
  if (g_str_equal (file->id, self->id)) {
    take_disks (self, file);
    memcpy (self->file_stamp, stamp, sizeof stamp);
  }
  g_mutex_unlock (&self->lock);
  weir_store_file_free (file);
}

const gchar *
weir_block_store_get_path (WeirBlockStore *self)
{
  return self->path;
}

const gchar *
weir_block_store_get_id (WeirBlockStore *self)
{
  return self->id;
}

WeirPlacementPolicy
weir_block_store_get_policy (WeirBlockStore *self)
{
  return self->policy;
}

gint64
weir_block_store_get_slice (WeirBlockStore *self)
{
  return self->slice_ns;
}

const gchar *
weir_block_store_get_disk_path (WeirBlockStore *self, guint16 number)
{
  const gchar *path = NULL;
  StoreDisk *disk;

  g_mutex_lock (&self->lock);
  disk = find_disk (self, number);
  if (disk && !disk->gone)
    path = disk->path;
  g_mutex_unlock (&self->lock);
  return path;
}

gboolean
store_is_leaving (WeirBlockStore *self, guint16 number)
{
  const StoreDisk *disk;
  gboolean leaving;

  g_mutex_lock (&self->lock);
  disk = find_disk (self, number);
  leaving = !disk || disk->gone || disk->removing;
  g_mutex_unlock (&self->lock);
  return leaving;
}

guint
weir_block_store_count_disks (WeirBlockStore *self)
{
  guint n = 0;

  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->disks->len; i++)
    n += !((const StoreDisk *) self->disks->pdata[i])->gone;
  g_mutex_unlock (&self->lock);
  return n;
}

static void
look_at_disks (WeirBlockStore *self, WeirStoreDisk *disks, guint n)
{
  g_autofree WeirDiskLook *looks = g_new0 (WeirDiskLook, n);

  for (guint i = 0; i < n; i++) {
    looks[i].path = disks[i].path;
    looks[i].number = disks[i].number;
    looks[i].state = WEIR_DISK_THERE;
  }
  if (!self->is_remote)
    weir_disks_look (self->id, looks, n);
  for (guint i = 0; i < n; i++) {
    disks[i].state = looks[i].state;
    disks[i].present = looks[i].state == WEIR_DISK_THERE;
    disks[i].bytes = looks[i].space.bytes;
    disks[i].free_bytes = looks[i].space.free_bytes;
    disks[i].device = looks[i].space.device;
  }
}

guint
weir_block_store_get_disks (WeirBlockStore *self, WeirStoreDisk *disks, guint n_max)
{
  guint n = 0;

  store_refresh (self);
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->disks->len && n < n_max; i++) {
    const StoreDisk *disk = self->disks->pdata[i];

    if (!disk->gone)
      disks[n++] = (WeirStoreDisk) {
        .number = disk->number, .path = disk->path, .removing = disk->removing
      };
  }
  g_mutex_unlock (&self->lock);
  look_at_disks (self, disks, n);
  return n;
}

/* Titles */

static WeirStoredTitle *
find_title (WeirBlockStore *self, const gchar *name, const gint64 stamp[3])
{
  WeirStoredTitle *title = g_hash_table_lookup (self->titles, name);

  if (!title || memcmp (title->stamp, stamp, sizeof title->stamp) != 0)
    return NULL;
  title->refs++;
  return title;
}

// Returns the title as it is known, or NULL.
static WeirStoredTitle *
get_open_title (WeirBlockStore *self, const gchar *name)
{
  g_autofree gchar *path = store_index_path (self, name);
  WeirStoredTitle *title;
  gint64 stamp[3];

  store_get_stamp (path, stamp);
  g_mutex_lock (&self->lock);
  title = find_title (self, name, stamp);
  g_mutex_unlock (&self->lock);
  return title;
}

WeirStoredTitle *
store_share_title (WeirStoredTitle *self)
{
  WeirBlockStore *store = self->store;
  WeirStoredTitle *other;

  g_mutex_lock (&store->lock);
  other = find_title (store, self->index.name, self->stamp);
  // The key is the title's, so a title that is replaced must go with its key.
  if (!other)
    g_hash_table_replace (store->titles, self->index.name, self);
  g_mutex_unlock (&store->lock);
  if (!other)
    return self;
  weir_stored_title_unref (self);
  return other;
}

WeirStoredTitle *
weir_block_store_open_title (WeirBlockStore *self, const gchar *name, GError **error)
{
  WeirStoredTitle *title;

  if (!store_check_name (name, error))
    return NULL;
  store_refresh (self);
  title = get_open_title (self, name);
  if (title)
    return title;
  title = g_new0 (WeirStoredTitle, 1);
  title->refs = 1;
  if (!store_read_index (self, name, &title->index, title->stamp, error)) {
    g_free (title);
    return NULL;
  }
  title->store = weir_block_store_ref (self);
  return store_share_title (title);
}

WeirStoredTitle *
weir_stored_title_ref (WeirStoredTitle *self)
{
  g_mutex_lock (&self->store->lock);
  self->refs++;
  g_mutex_unlock (&self->store->lock);
  return self;
}

void
weir_stored_title_unref (WeirStoredTitle *self)
{
  WeirBlockStore *store = self->store;
  gboolean last;

  g_mutex_lock (&store->lock);
  last = --self->refs == 0;
  if (last && g_hash_table_lookup (store->titles, self->index.name) == self)
    g_hash_table_remove (store->titles, self->index.name);
  g_mutex_unlock (&store->lock);
  if (!last)
    return;
  weir_index_clear (&self->index);
  weir_remote_unref (self->remote);
  g_free (self);
  weir_block_store_unref (store);
}

const WeirIndex *
weir_stored_title_get_index (WeirStoredTitle *self)
{
  return &self->index;
}

WeirBlockStore *
weir_stored_title_get_store (WeirStoredTitle *self)
{
  return self->store;
}

guint
weir_stored_title_find_copies (
    WeirStoredTitle *self, guint32 number, guint16 disks[WEIR_INDEX_COPIES_MAX], GError **error)
{
  WeirStoredTitle *now;
  guint n = 0;

  if (self->remote)
    return 0;
  now = weir_block_store_open_title (self->store, self->index.name, error);
  if (!now)
    return 0;
  if (memcmp (now->index.id, self->index.id, sizeof self->index.id) == 0
      && number < now->index.n_blocks) {
    n = now->index.blocks[number].n_copies;
    memcpy (disks, now->index.blocks[number].disks, n * sizeof *disks);
  } else {
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NOT_FOUND,
        "title '%s' was replaced meanwhile", self->index.name);
  }
  weir_stored_title_unref (now);
  return n;
}

gchar *
weir_stored_title_dup_block_path (WeirStoredTitle *self, guint32 number, guint16 disk)
{
  const gchar *path = weir_block_store_get_disk_path (self->store, disk);
  g_autofree gchar *folder = NULL;
  gchar id[33];

  if (!path)
    return NULL;
  store_print_id (self->index.id, id);
  folder = store_blocks_path (path, id);
  return g_strdup_printf ("%s/%08x", folder, number);
}
