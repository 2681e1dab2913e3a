// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/reading.h"

#include "store/reader.h"

#include <gio/gio.h>

static WeirBlockRead *
read_new (
    WeirBlockReader *self, WeirStoredTitle *title, const WeirBlockName *name, gint64 deadline_ns)
{
  const WeirIndex *index = weir_stored_title_get_index (title);
  WeirBlockRead *read = g_new0 (WeirBlockRead, 1);

  read->name = *name;
  read->block = index->blocks[name->number];
  read->title = g_strdup (index->name);
  read->remote = weir_remote_ref (title->remote);
  read->deadline_ns = deadline_ns;
  g_hash_table_insert (self->reads, &read->name, read);
  return read;
}

// Joins the read of the block, or begins one. Returns FALSE if none of the block's disks is known.
static void
join_read (WeirBlockReader *self, WeirBlockRequest *request, const WeirBlockName *name,
    const gchar *const *paths)
{
  WeirBlockRead *read = g_hash_table_lookup (self->reads, name);

  if (read) {
    self->n_shared++;
    weir_block_reader_hasten (self, read, request->deadline_ns);
  } else {
    request->began = TRUE;
    read = read_new (self, request->title, name, request->deadline_ns);
    for (guint i = 0; i < read->block.n_copies; i++)
      weir_block_reader_get_disk (self, read->block.disks[i], paths[i]);
    if (read->remote)
      weir_block_reader_get_disk (self, WEIR_REMOTE_CACHE, paths[WEIR_INDEX_COPIES_MAX]);
  }
  request->read = read;
  request->link.data = request;
  g_queue_push_tail_link (&read->requests, &request->link);
  // Without a disk, the thread answers.
  if (read->requests.length == 1 && read->users == 0
      && !weir_block_reader_start_copy (self, read, weir_block_reader_now ())) {
    read->users++;
    g_queue_push_tail (&self->unsearched, read);
    weir_block_reader_wake (self);
  }
}

WeirBlockRequest *
weir_block_request (
    WeirStoredTitle *title, guint32 number, gint64 deadline_ns, WeirBlockFunc done, gpointer data)
{
  WeirBlockStore *store = weir_stored_title_get_store (title);
  const WeirIndex *index = weir_stored_title_get_index (title);
  WeirBlockReader *self = weir_block_reader_get (store);
  WeirBlockRequest *request = g_new0 (WeirBlockRequest, 1);
  const gchar *paths[WEIR_INDEX_COPIES_MAX + 1] = { NULL }; // the last is that of the cache
  GError *error = NULL;
  WeirBlock *block = NULL;
  WeirBlockName name;

  request->reader = self;
  request->title = weir_stored_title_ref (title);
  request->deadline_ns = deadline_ns;
  request->done = done;
  request->data = data;
  if (number >= index->n_blocks) {
    g_set_error (&error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NOT_FOUND, "title '%s' has no block %u",
        index->name, number);
  } else {
    for (guint i = 0; i < index->blocks[number].n_copies; i++)
      paths[i] = weir_block_store_get_disk_path (store, index->blocks[number].disks[i]);
    if (title->remote)
      paths[WEIR_INDEX_COPIES_MAX] = weir_block_store_get_disk_path (store, WEIR_REMOTE_CACHE);
    weir_blocks_name (&name, index, number);
    g_mutex_lock (&self->lock);
    self->n_asked++;
    weir_policy_ask (&self->policy, name.key);
    block = weir_blocks_find (self, &name);
    if (block)
      self->n_hits++;
    else
      join_read (self, request, &name, paths);
    g_mutex_unlock (&self->lock);
  }
  if (block || error)
    done (block, error, data);
  g_clear_error (&error);
  return request;
}

gboolean
weir_block_request_began (const WeirBlockRequest *request)
{
  return request->began;
}

void
weir_block_request_free (WeirBlockRequest *request)
{
  WeirBlockReader *self = request->reader;
  WeirBlockRead *read;

  g_mutex_lock (&self->lock);
  while (self->running == request && self->thread != g_thread_self ())
    g_cond_wait (&self->ran, &self->lock);
  read = request->read;
  if (read) {
    g_queue_unlink (&read->requests, &request->link);
    weir_block_reader_drop_read (self, read);
  }
  g_mutex_unlock (&self->lock);
  weir_stored_title_unref (request->title);
  g_free (request);
}

// ---- waiting ----

typedef struct {
  GMutex lock;
  GCond changed;
  gboolean done, cancelled;
  WeirBlock *block;
  GError *error;
} Wait;

static void
take_answer (WeirBlock *block, const GError *error, gpointer data)
{
  Wait *wait = data;

  g_mutex_lock (&wait->lock);
  wait->done = TRUE;
  wait->block = block;
  wait->error = error ? g_error_copy (error) : NULL;
  g_cond_signal (&wait->changed);
  g_mutex_unlock (&wait->lock);
}

static void
take_cancel (GCancellable *cancellable, gpointer data)
{
  Wait *wait = data;

  g_mutex_lock (&wait->lock);
  wait->cancelled = TRUE;
  g_cond_signal (&wait->changed);
  g_mutex_unlock (&wait->lock);
}

WeirBlock *
weir_block_read (WeirStoredTitle *title, guint32 number, gint64 deadline_ns, gpointer cancellable,
    GError **error)
{
  Wait wait = { 0 };
  WeirBlockRequest *request;
  gulong handler = 0;

  g_mutex_init (&wait.lock);
  g_cond_init (&wait.changed);
  request = weir_block_request (title, number, deadline_ns, take_answer, &wait);
  if (cancellable)
    handler = g_cancellable_connect (cancellable, G_CALLBACK (take_cancel), &wait, NULL);
  g_mutex_lock (&wait.lock);
  while (!wait.done && !wait.cancelled)
    g_cond_wait (&wait.changed, &wait.lock);
  g_mutex_unlock (&wait.lock);
  g_cancellable_disconnect (cancellable, handler);
  weir_block_request_free (request);
  if (!wait.done)
    g_set_error (
        &wait.error, G_IO_ERROR, G_IO_ERROR_CANCELLED, "reading block %u was cancelled", number);
  g_mutex_clear (&wait.lock);
  g_cond_clear (&wait.changed);
  if (wait.error)
    g_propagate_error (error, wait.error);
  return wait.block;
}

// ---- statistics ----

guint
weir_block_store_get_stats (WeirBlockStore *store, WeirDiskStats *stats, guint n_max)
{
  WeirBlockReader *self = weir_block_reader_get (store);
  guint n = 0;

  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->disks->len && n < n_max; i++) {
    const WeirReadDisk *disk = self->disks->pdata[i];
    const WeirDiskLoad *load = &disk->load;

    stats[n++] = (WeirDiskStats) {
      .number = disk->number,
      .queue = load->requests,
      .reads = disk->n_reads,
      .errors = disk->n_errors,
      .bytes = disk->n_bytes,
      .second_choices = disk->n_second,
      .moved_here = disk->n_moved_here,
      .moved_away = disk->n_moved_away,
      .service_ns = weir_disk_load_mean (load),
      .read_bytes = weir_disk_load_mean_bytes (load),
      .access_ns = load->apart ? (gint64) load->access_ns : 0,
      .rate = load->apart ? (guint64) (8e9 / MAX (load->byte_ns, 1e-5)) : 0,
      .failing = load->failing,
    };
  }
  g_mutex_unlock (&self->lock);
  return n;
}

// Returns the store's reader locked, or NULL if there is none.
static WeirBlockReader *
lock_reader (WeirBlockStore *store)
{
  WeirBlockReader *self;

  g_mutex_lock (&store->lock);
  self = store->reader;
  g_mutex_unlock (&store->lock);
  if (self)
    g_mutex_lock (&self->lock);
  return self;
}

gboolean
store_reader_avoids (WeirBlockStore *store, guint16 number)
{
  WeirBlockReader *self = lock_reader (store);
  const WeirReadDisk *disk = self ? weir_block_reader_get_disk (self, number, NULL) : NULL;
  const gboolean avoids = disk && disk->load.failing;

  if (self)
    g_mutex_unlock (&self->lock);
  return avoids;
}

gboolean
store_reader_needs (WeirBlockStore *store, guint16 number)
{
  WeirBlockReader *self = lock_reader (store);
  const WeirReadDisk *disk = self ? weir_block_reader_get_disk (self, number, NULL) : NULL;
  const gboolean needs = disk && disk->load.requests > 0 && !disk->load.failing;

  if (self)
    g_mutex_unlock (&self->lock);
  return needs;
}

void
store_reader_count_move (WeirBlockStore *store, guint16 from, guint16 to)
{
  const guint16 numbers[] = { from, to };
  WeirBlockReader *self = weir_block_reader_get (store);

  for (guint i = 0; i < 2; i++) {
    const gchar *path = weir_block_store_get_disk_path (store, numbers[i]);
    WeirReadDisk *disk;

    g_mutex_lock (&self->lock);
    disk = weir_block_reader_get_disk (self, numbers[i], path);
    if (disk && i == 0)
      disk->n_moved_away++;
    else if (disk)
      disk->n_moved_here++;
    g_mutex_unlock (&self->lock);
  }
}

gint64
weir_disk_stats_get_time (const WeirDiskStats *stats, guint64 bytes)
{
  if (stats->rate > 0)
    return stats->access_ns + (gint64) ((gdouble) bytes * 8e9 / (gdouble) stats->rate);
  if (bytes <= stats->read_bytes)
    return stats->service_ns;
  return (gint64) ((gdouble) stats->service_ns * (gdouble) bytes
                   / (gdouble) MAX (stats->read_bytes, 1));
}

void
weir_block_store_get_read_stats (WeirBlockStore *store, WeirReadStats *stats)
{
  WeirBlockReader *self = weir_block_reader_get (store);

  g_mutex_lock (&self->lock);
  *stats = (WeirReadStats) {
    .asked = self->n_asked,
    .hits = self->n_hits,
    .shared = self->n_shared,
    .bytes = self->extents.used_bytes + self->extents.free_bytes,
    .late = self->n_late,
    .repaired = self->n_repaired,
    .lost = self->n_lost,
  };
  g_mutex_unlock (&self->lock);
}
