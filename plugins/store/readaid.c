// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/reader.h"
#include "store/upkeep.h"

#include <string.h>

// What reads indexes and writes copies may block, so it runs on threads of its own, two for all
// stores of the process: one searches, one repairs. A reader waits for neither.

#define REPAIR_RATE (8u << 20) // bytes a second
#define REPAIRS_MAX 4096       // that wait; others are found again by the next read

typedef struct {
  WeirBlockRead *read;
  WeirStoredTitle *title;
} Search;

static GThreadPool *
get_pool (GThreadPool **pool, GFunc work)
{
  if (g_once_init_enter (pool))
    g_once_init_leave (pool, g_thread_pool_new (work, NULL, 1, FALSE, NULL));
  return *pool;
}

// ---- copies that were moved ----

// Takes the new places. A copy on a disk that was tried is tried again only if the other moved.
static void
take_places (WeirBlockReader *self, WeirBlockRead *read, const guint16 *disks, guint n)
{
  WeirIndexBlock *block = &read->block;
  gboolean moved = n != block->n_copies || memcmp (disks, block->disks, n * sizeof *disks) != 0;

  if (!moved)
    return;
  memcpy (block->disks, disks, n * sizeof *disks);
  block->n_copies = (guint8) n;
  memset (read->failed, 0, sizeof read->failed);
}

static void
search (gpointer data, gpointer unused)
{
  WeirBlockReader *self = data;
  WeirBlockStore *store;
  guint16 disks[WEIR_INDEX_COPIES_MAX];
  const gchar *paths[WEIR_INDEX_COPIES_MAX];
  Search *job;
  guint n;

  g_mutex_lock (&self->lock);
  job = g_queue_pop_head (&self->searches);
  g_mutex_unlock (&self->lock);
  store = weir_stored_title_get_store (job->title);
  n = weir_stored_title_find_copies (job->title, job->read->name.number, disks, NULL);
  for (guint i = 0; i < n; i++)
    paths[i] = weir_block_store_get_disk_path (store, disks[i]);
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < n; i++)
    weir_block_reader_get_disk (self, disks[i], paths[i]);
  if (n > 0)
    take_places (self, job->read, disks, n);
  g_queue_push_tail (&self->unsearched, job->read);
  weir_block_reader_wake (self);
  g_mutex_unlock (&self->lock);
  weir_stored_title_unref (job->title);
  weir_block_reader_unref (self);
  g_free (job);
}

gboolean
weir_block_reader_search (WeirBlockReader *self, WeirBlockRead *read)
{
  static GThreadPool *pool;
  WeirBlockRequest *request = g_queue_peek_head (&read->requests);
  Search *job;

  if (read->searched || !request)
    return FALSE;
  read->searched = TRUE;
  read->users++;
  job = g_new (Search, 1);
  *job = (Search) { read, weir_stored_title_ref (request->title) };
  g_queue_push_tail (&self->searches, job);
  g_thread_pool_push (get_pool (&pool, search), weir_block_reader_ref (self), NULL);
  return TRUE;
}

// ---- repairs ----

typedef struct {
  WeirBlockName name;
  guint16 disk;
  guint64 bytes;
  gchar *title;
} Repair;

static void
free_repair (gpointer data)
{
  g_free (((Repair *) data)->title);
  g_free (data);
}

void
weir_block_reader_repair (WeirBlockReader *self, const WeirBlockRead *read, guint16 disk)
{
  Repair *job;

  if (read->remote || read->block.n_copies < 2 || self->stopping
      || self->repairs.length >= REPAIRS_MAX)
    return;
  for (GList *item = self->repairs.head; item; item = item->next) {
    const Repair *other = item->data;
    if (other->disk == disk && memcmp (&other->name, &read->name, sizeof read->name) == 0)
      return;
  }
  job = g_new0 (Repair, 1);
  job->name = read->name;
  job->disk = disk;
  job->bytes = (guint64) read->block.length + read->block.table_length;
  job->title = g_strdup (read->title);
  g_queue_push_tail (&self->repairs, job);
  weir_block_reader_wake (self);
}

void
weir_block_reader_cancel_repairs (WeirBlockReader *self)
{
  g_queue_clear_full (&self->repairs, free_repair);
}

// Opens the store anew, as a repair that waits does not keep it open.
static gboolean
repair_block (const gchar *path, const Repair *job, GError **error)
{
  WeirBlockStore *store = weir_block_store_open (path, error);
  WeirStoredTitle *title = store ? weir_block_store_open_title (store, job->title, error) : NULL;
  gboolean repaired = FALSE;

  // A title that was replaced needs no repair.
  if (title && memcmp (weir_stored_title_get_index (title)->id, job->name.id, 16) == 0)
    repaired = weir_block_store_repair_block (title, job->name.number, job->disk, error);
  g_clear_pointer (&title, weir_stored_title_unref);
  g_clear_pointer (&store, weir_block_store_unref);
  return repaired;
}

static void
repair (gpointer data, gpointer unused)
{
  WeirBlockReader *self = data;
  GError *error = NULL;
  gboolean repaired;
  Repair *job;

  g_mutex_lock (&self->lock);
  job = g_queue_pop_head (&self->repairs);
  g_mutex_unlock (&self->lock);
  repaired = job && repair_block (self->store_path, job, &error);
  g_mutex_lock (&self->lock);
  self->repairing = FALSE;
  self->n_repaired += repaired;
  if (repaired)
    weir_block_reader_trust (self, &job->name, job->disk);
  if (error)
    weir_block_reader_say (self, "block %u of title '%s' cannot be repaired: %s", job->name.number,
        job->title, error->message);
  weir_block_reader_wake (self);
  g_mutex_unlock (&self->lock);
  g_clear_error (&error);
  weir_block_reader_unref (self);
  if (job)
    free_repair (job);
}

gint64
weir_block_reader_next_repair (WeirBlockReader *self, gint64 now_ns)
{
  static GThreadPool *pool;
  const Repair *job;

  if (self->repairing || self->repairs.length == 0)
    return -1;
  if (now_ns < self->next_repair_ns)
    return self->next_repair_ns - now_ns;
  job = g_queue_peek_head (&self->repairs);
  self->repairing = TRUE;
  self->next_repair_ns = now_ns + (gint64) (job->bytes * (guint64) WEIR_READ_SECOND / REPAIR_RATE);
  g_thread_pool_push (get_pool (&pool, repair), weir_block_reader_ref (self), NULL);
  return -1;
}
