// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/looking.h"
#include "store/reader.h"
#include "store/upkeep.h"

#include <string.h>

// What reads indexes and writes copies may block, so it runs on threads of its own: one searches,
// for all stores of the process, and one repairs, for each store. A reader waits for neither. A
// repair that a disk holds is left to its thread, and another thread goes on with the blocks of
// other disks.

#define REPAIR_RATE (8u << 20) // bytes a second
#define REPAIRS_MAX 4096       // that wait; others are found again by the next read
#define HELD_CHECK_NS WEIR_READ_SECOND

typedef struct {
  WeirBlockRead *read;
  WeirStoredTitle *title;
} Search;

static GThreadPool *
get_pool (GThreadPool **pool, GFunc work, gint max_threads)
{
  if (g_once_init_enter (pool))
    g_once_init_leave (pool, g_thread_pool_new (work, NULL, max_threads, FALSE, NULL));
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
  weir_block_read_clear_problems (read);
}

static void
search (gpointer data, gpointer unused)
{
  WeirBlockReader *self = data;
  WeirBlockStore *store;
  guint16 disks[WEIR_INDEX_COPIES_MAX];
  const gchar *paths[WEIR_INDEX_COPIES_MAX];
  g_autoptr (GError) error = NULL;
  Search *job;
  guint n;

  g_mutex_lock (&self->lock);
  job = g_queue_pop_head (&self->searches);
  g_mutex_unlock (&self->lock);
  store = weir_stored_title_get_store (job->title);
  n = weir_stored_title_find_copies (job->title, job->read->name.number, disks, &error);
  for (guint i = 0; i < n; i++)
    paths[i] = weir_block_store_get_disk_path (store, disks[i]);
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < n; i++)
    weir_block_reader_get_disk (self, disks[i], paths[i]);
  if (n > 0)
    take_places (self, job->read, disks, n);
  job->read->removed = g_error_matches (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NOT_FOUND);
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
  g_thread_pool_push (get_pool (&pool, search, 1), weir_block_reader_ref (self), NULL);
  return TRUE;
}

// ---- repairs ----

typedef struct {
  WeirBlockName name;
  guint16 disk;
  guint64 bytes;
  gchar *title;
  gchar *why;       // what is wrong; NULL: the disk has failed for long
  gboolean missing; // the copy's file
} Repair;

static void
free_repair (gpointer data)
{
  g_free (((Repair *) data)->title);
  g_free (((Repair *) data)->why);
  g_free (data);
}

gboolean
weir_block_reader_repair (
    WeirBlockReader *self, const WeirBlockRead *read, guint16 disk, const WeirCopyProblem *problem)
{
  Repair *job;

  if (read->remote || read->block.n_copies < 2 || self->stopping
      || self->repairs.length >= REPAIRS_MAX)
    return FALSE;
  for (GList *item = self->repairs.head; item; item = item->next) {
    const Repair *other = item->data;
    if (other->disk == disk && memcmp (&other->name, &read->name, sizeof read->name) == 0)
      return TRUE;
  }
  job = g_new0 (Repair, 1);
  job->name = read->name;
  job->disk = disk;
  job->bytes = (guint64) read->block.length + read->block.table_length;
  job->title = g_strdup (read->title);
  job->why = problem ? g_strdup (problem->why) : NULL;
  job->missing = problem && problem->missing;
  g_queue_push_tail (&self->repairs, job);
  weir_block_reader_wake (self);
  return TRUE;
}

void
weir_block_reader_cancel_repairs (WeirBlockReader *self)
{
  g_queue_clear_full (&self->repairs, free_repair);
}

// Reports whether the index names a copy of the block on the disk. A title that was removed or
// replaced has none.
static gboolean
is_needed (WeirStoredTitle *title, const Repair *job)
{
  guint16 disks[WEIR_INDEX_COPIES_MAX];
  guint n;

  if (memcmp (weir_stored_title_get_index (title)->id, job->name.id, 16) != 0)
    return FALSE;
  n = weir_stored_title_find_copies (title, job->name.number, disks, NULL);
  return (n > 0 && disks[0] == job->disk) || (n > 1 && disks[1] == job->disk);
}

// Opens the store anew, as a repair that waits does not keep it open. Returns FALSE without an
// error if no repair is needed.
static gboolean
repair_block (const gchar *path, const Repair *job, GError **error)
{
  WeirBlockStore *store = weir_block_store_open (path, error);
  WeirStoredTitle *title = store ? weir_block_store_open_title (store, job->title, error) : NULL;
  gboolean repaired = FALSE;

  if (title && is_needed (title, job))
    repaired = weir_block_store_repair_block (title, job->name.number, job->disk, error);
  g_clear_pointer (&title, weir_stored_title_unref);
  g_clear_pointer (&store, weir_block_store_unref);
  return repaired;
}

// Counts and reports what came of a repair. Lock held.
static void
report (WeirBlockReader *self, const Repair *job, gboolean repaired, const GError *error)
{
  WeirReadDisk *disk = weir_block_reader_get_disk (self, job->disk, NULL);
  g_autofree gchar *what = NULL;

  if (repaired)
    weir_block_reader_trust (self, &job->name, job->disk);
  self->n_repaired += repaired;
  disk->n_errors += job->missing && (repaired || error);
  if (error)
    what = g_strdup_printf ("%s; it cannot be written anew: %s",
        job->why ? job->why : "the disk has failed for long", error->message);
  else if (repaired && job->why)
    what = g_strconcat (job->why, "; written anew from the other copy", NULL);
  if (what)
    weir_block_reader_report_copy (self, job->title, job->name.number, disk, what);
}

static void
repair (gpointer data, gpointer unused)
{
  WeirBlockReader *self = data;
  GError *error = NULL;
  gboolean repaired;
  Repair *job;

  g_mutex_lock (&self->lock);
  job = g_queue_pop_head (&self->begun_repairs);
  g_mutex_unlock (&self->lock);
  repaired = repair_block (self->store_path, job, &error);
  // The title is gone; or the disk has failed for long, which was said, and no other takes its
  // place.
  if (g_error_matches (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NOT_FOUND)
      || (!job->why && g_error_matches (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_DISK)))
    g_clear_error (&error);
  g_mutex_lock (&self->lock);
  if (self->repair == job)
    self->repair = NULL;
  else
    self->n_held--;
  report (self, job, repaired, error);
  weir_block_reader_wake (self);
  g_mutex_unlock (&self->lock);
  g_clear_error (&error);
  free_repair (job);
  weir_block_reader_unref (self);
}

// Reports whether a disk holds the repair at work. As a disk that is stuck gets no further work,
// the next repair is not held by the same.
static gboolean
is_held (const WeirBlockReader *self, gint64 now_ns)
{
  if (now_ns < self->repair_since_ns + weir_disk_patience_us * 1000)
    return FALSE;
  for (guint i = 0; i < self->disks->len; i++) {
    if (weir_disk_is_stuck (((const WeirReadDisk *) self->disks->pdata[i])->path))
      return TRUE;
  }
  return FALSE;
}

// Returns the time in ns until another repair may begin.
static gint64
wait_for_repair (WeirBlockReader *self, gint64 now_ns)
{
  if (self->repair && self->n_held < self->disks->len && is_held (self, now_ns)) {
    self->repair = NULL;
    self->n_held++;
  }
  return self->repair ? HELD_CHECK_NS : MAX (self->next_repair_ns - now_ns, 0);
}

gint64
weir_block_reader_next_repair (WeirBlockReader *self, gint64 now_ns)
{
  static GThreadPool *pool;
  Repair *job;
  gint64 wait;

  if (self->repairs.length == 0)
    return -1;
  wait = wait_for_repair (self, now_ns);
  if (wait > 0)
    return wait;
  job = g_queue_pop_head (&self->repairs);
  g_queue_push_tail (&self->begun_repairs, job);
  self->repair = job;
  self->repair_since_ns = now_ns;
  self->next_repair_ns = now_ns + (gint64) (job->bytes * (guint64) WEIR_READ_SECOND / REPAIR_RATE);
  g_thread_pool_push (get_pool (&pool, repair, -1), weir_block_reader_ref (self), NULL);
  return self->repairs.length > 0 ? HELD_CHECK_NS : -1;
}
