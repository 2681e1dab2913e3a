// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/reader.h"

#include "store/blockstore_private.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define MEMORY_BYTES (G_GUINT64_CONSTANT (256) << 20)
#define RING_AT_WORK 2 // reads a disk is given: one, and the next, so that it need not wait
#define POOL_AT_WORK 1
#define REMOTE_AT_WORK 4 // a read waits for the network most of the time
#define CHECK_NS (20 * WEIR_READ_MS)
#define END_NS WEIR_READ_SECOND // for which the end of a reader waits for the disks

gboolean weir_block_reader_threads_only;

gint64
weir_block_reader_now (void)
{
  struct timespec now;

  clock_gettime (CLOCK_MONOTONIC, &now);
  return now.tv_sec * WEIR_READ_SECOND + now.tv_nsec;
}

static guint
hash_name (gconstpointer name)
{
  return (guint) ((const WeirBlockName *) name)->key;
}

static gboolean
same_name (gconstpointer a, gconstpointer b)
{
  const WeirBlockName *x = a, *y = b;

  return x->number == y->number && memcmp (x->id, y->id, sizeof x->id) == 0;
}

static void
free_disk (gpointer data)
{
  WeirReadDisk *disk = data;

  weir_read_queue_free (&disk->queue);
  g_ptr_array_unref (disk->at_work);
  g_cond_clear (&disk->job_given);
  g_free (disk->path);
  g_free (disk);
}

static WeirBlockReader *
reader_new (WeirBlockStore *store)
{
  WeirBlockReader *self = g_new0 (WeirBlockReader, 1);

  self->refs = 1;
  g_mutex_init (&self->lock);
  g_cond_init (&self->ran);
  self->store_path = g_strdup (weir_block_store_get_path (store));
  self->slice_ns = weir_block_store_get_slice (store);
  self->is_remote = weir_block_store_is_remote (store);
  self->wake_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  self->reads = g_hash_table_new (hash_name, same_name);
  self->blocks = g_hash_table_new (g_int64_hash, g_int64_equal);
  self->bad = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, g_free);
  self->disks = g_ptr_array_new_with_free_func (free_disk);
  self->given = g_ptr_array_new ();
  self->memory = MEMORY_BYTES;
  weir_policy_init (&self->policy, WEIR_POLICY_LFU, 0);
  if (!weir_extents_init (&self->extents) || self->wake_fd < 0)
    g_warning ("%s: blocks cannot be read: %s", self->store_path, g_strerror (errno));
  return self;
}

WeirBlockReader *
weir_block_reader_ref (WeirBlockReader *self)
{
  g_atomic_int_inc (&self->refs);
  return self;
}

void
weir_block_reader_unref (WeirBlockReader *self)
{
  if (!g_atomic_int_dec_and_test (&self->refs))
    return;
  g_hash_table_unref (self->reads);
  g_hash_table_unref (self->blocks);
  g_hash_table_unref (self->bad);
  g_ptr_array_unref (self->disks);
  g_ptr_array_unref (self->given);
  g_queue_clear_full (&self->messages, g_free);
  weir_policy_free (&self->policy);
  weir_extents_clear (&self->extents);
  if (self->wake_fd >= 0)
    close (self->wake_fd);
  g_cond_clear (&self->ran);
  g_mutex_clear (&self->lock);
  g_free (self->store_path);
  g_free (self);
}

// Evicts all blocks that nobody uses.
static void
forget_blocks (WeirBlockReader *self)
{
  WeirExtent *list;

  g_mutex_lock (&self->lock);
  self->memory = 0;
  list = weir_blocks_evict (self);
  g_mutex_unlock (&self->lock);
  weir_extents_drop (&self->extents, list);
}

// The store is freed, so there are no requests. If a disk does not answer, the threads live on
// until it does.
static void
reader_end (gpointer data)
{
  WeirBlockReader *self = data;
  const gint64 end = g_get_monotonic_time () + END_NS / 1000;

  g_mutex_lock (&self->lock);
  self->stopping = TRUE;
  weir_block_reader_cancel_repairs (self);
  for (guint i = 0; i < self->disks->len; i++)
    g_cond_broadcast (&((WeirReadDisk *) self->disks->pdata[i])->job_given);
  weir_block_reader_wake (self);
  while (self->started && self->thread != g_thread_self ()
         && g_cond_wait_until (&self->ran, &self->lock, end))
    ;
  g_mutex_unlock (&self->lock);
  forget_blocks (self);
  if (self->thread)
    g_thread_unref (self->thread);
  weir_block_reader_unref (self);
}

WeirBlockReader *
weir_block_reader_get (WeirBlockStore *store)
{
  WeirBlockReader *self;

  g_mutex_lock (&store->lock);
  self = store->reader;
  g_mutex_unlock (&store->lock);
  if (self)
    return self;
  self = reader_new (store);
  g_mutex_lock (&store->lock);
  if (!store->reader) {
    store->free_reader = reader_end;
    store->reader = self;
    self = NULL;
  }
  g_mutex_unlock (&store->lock);
  if (self) // another thread was faster
    weir_block_reader_unref (self);
  return store->reader;
}

void
weir_block_reader_say (WeirBlockReader *self, const gchar *format, ...)
{
  va_list args;

  va_start (args, format);
  g_queue_push_tail (&self->messages, g_strdup_vprintf (format, args));
  va_end (args);
}

static void
log_messages (WeirBlockReader *self)
{
  for (;;) {
    gchar *message;

    g_mutex_lock (&self->lock);
    message = g_queue_pop_head (&self->messages);
    g_mutex_unlock (&self->lock);
    if (!message)
      return;
    g_warning ("%s: %s", self->store_path, message);
    g_free (message);
  }
}

// ---- answers ----

static void
free_read (WeirBlockReader *self, WeirBlockRead *read)
{
  // A disk that is still at work for it reads for nobody.
  for (guint i = 0; i < WEIR_INDEX_COPIES_MAX; i++) {
    if (read->copies[i])
      read->copies[i]->read = NULL;
  }
  weir_block_read_clear_problems (read);
  g_clear_error (&read->error);
  weir_remote_unref (read->remote);
  g_free (read->title);
  g_free (read);
}

void
weir_block_reader_drop_read (WeirBlockReader *self, WeirBlockRead *read)
{
  if (read->users > 0 || read->requests.length > 0)
    return;
  weir_block_reader_unqueue (self, read);
  for (guint i = 0; i < WEIR_INDEX_COPIES_MAX; i++) {
    if (read->copies[i])
      return; // its block will be of use to the next
  }
  g_hash_table_remove (self->reads, &read->name);
  free_read (self, read);
}

void
weir_block_reader_answer (WeirBlockReader *self, WeirBlockRead *read, WeirBlock *block)
{
  const gint64 now = weir_block_reader_now ();
  GList *link;

  if (block)
    weir_block_reader_report_copies (self, read);
  else
    weir_block_reader_report_lost (self, read);
  read->users++;
  if (g_hash_table_lookup (self->reads, &read->name) == read)
    g_hash_table_remove (self->reads, &read->name);
  weir_block_reader_unqueue (self, read);
  // weir_block_request_free() takes requests out of this queue meanwhile.
  while ((link = g_queue_pop_head_link (&read->requests))) {
    WeirBlockRequest *request = link->data;

    request->read = NULL;
    self->running = request;
    self->n_late += now > request->deadline_ns;
    g_mutex_unlock (&self->lock);
    request->done (
        block ? weir_block_ref (block) : NULL, block ? NULL : read->error, request->data);
    g_mutex_lock (&self->lock);
    self->running = NULL;
    g_cond_broadcast (&self->ran);
  }
  free_read (self, read);
}

// Ends a read that failed, unless there is another copy.
static void
try_again (WeirBlockReader *self, WeirBlockRead *read)
{
  if (!self->stopping
      && (weir_block_reader_start_copy (self, read, weir_block_reader_now ())
          || weir_block_reader_search (self, read)))
    return;
  weir_block_reader_answer (self, read, NULL);
}

static void
finish_copy (WeirBlockReader *self, WeirCopyRead *copy)
{
  WeirBlockRead *read;
  WeirBlock *block = NULL;
  WeirExtent *drop = NULL;

  g_mutex_lock (&self->lock);
  weir_block_reader_judge (self, copy);
  read = copy->read;
  if (read)
    read->copies[copy->copy] = NULL;
  if (read && copy->result == WEIR_COPY_GOOD) {
    block = weir_blocks_add (self, read, copy->extent);
    drop = weir_blocks_evict (self);
    weir_block_reader_answer (self, read, block);
  } else {
    if (copy->extent)
      drop = weir_blocks_put_extent (self, copy->extent);
    if (read && read->requests.length > 0)
      try_again (self, read);
    else if (read)
      weir_block_reader_drop_read (self, read);
  }
  g_mutex_unlock (&self->lock);
  weir_extents_drop (&self->extents, drop);
  if (block)
    weir_block_unref (block);
  weir_copy_read_free (copy);
}

// ---- the thread ----

// Moves reads from the queues to the disks that can take one. Returns how many reads are at work.
static guint
fill_disks (WeirBlockReader *self, gint64 now)
{
  const guint most = self->is_remote ? REMOTE_AT_WORK : self->ring ? RING_AT_WORK : POOL_AT_WORK;
  guint n = 0;

  for (guint i = 0; i < self->disks->len; i++) {
    WeirReadDisk *disk = self->disks->pdata[i];

    while (disk->at_work->len < most && disk->queue.heap.n > 0 && !self->stopping) {
      WeirCopyRead *copy = (WeirCopyRead *) weir_read_queue_pop (&disk->queue);

      if (!weir_block_reader_take (self, copy, now))
        continue;
      copy->started_ns = now;
      copy->direct = !disk->buffered;
      copy->extent = weir_extents_take (&self->extents, copy->length);
      weir_disk_load_start (&disk->load, now);
      g_ptr_array_add (disk->at_work, copy);
      g_ptr_array_add (self->given, copy);
    }
    n += disk->at_work->len;
  }
  return n;
}

static void
submit_given (WeirBlockReader *self)
{
  for (guint i = 0; i < self->given->len; i++) {
    WeirCopyRead *copy = self->given->pdata[i];

    if (!copy->extent)
      copy->extent = weir_extents_add (&self->extents, copy->length, &self->lock);
    if (!copy->extent) {
      copy->error = ENOMEM;
      copy->result = WEIR_COPY_HINDERED;
      finish_copy (self, copy);
    } else if (self->ring) {
      weir_read_ring_submit (self->ring, copy);
    } else {
      g_mutex_lock (&self->lock);
      weir_read_pool_submit (self, copy);
      g_mutex_unlock (&self->lock);
    }
  }
  g_ptr_array_set_size (self->given, 0);
}

static void
check_reads (WeirBlockReader *self, gint64 now)
{
  WeirBlockRead *read;
  GList *old;

  if (now - self->checked_ns >= CHECK_NS) {
    self->checked_ns = now;
    old = weir_block_reader_check (self, now);
    for (GList *item = old; item; item = item->next) {
      self->n_lost++;
      weir_block_reader_answer (self, item->data, NULL);
    }
    g_list_free (old);
  }
  while ((read = g_queue_pop_head (&self->unsearched))) {
    read->users--;
    if (read->requests.length > 0)
      try_again (self, read);
    else
      weir_block_reader_drop_read (self, read);
  }
}

// Returns the time for which the thread may sleep, -1: for ever, or -2: it is to end.
static gint64
look_for_work (WeirBlockReader *self)
{
  const gint64 now = weir_block_reader_now ();
  gint64 wait;
  guint n;

  g_mutex_lock (&self->lock);
  self->awake = TRUE;
  check_reads (self, now);
  wait = weir_block_reader_next_repair (self, now);
  n = fill_disks (self, now);
  if (self->stopping && n == 0)
    wait = -2;
  else if (g_hash_table_size (self->reads) > 0)
    wait = wait < 0 ? CHECK_NS : MIN (wait, CHECK_NS);
  // While `awake` was set, nobody has written to the eventfd.
  if (self->finished.length > 0)
    wait = 0;
  self->awake = FALSE;
  g_mutex_unlock (&self->lock);
  submit_given (self);
  return wait;
}

static void
wait_for_pool (WeirBlockReader *self, gint64 timeout_ns, GPtrArray *done)
{
  struct pollfd wake = { .fd = self->wake_fd, .events = POLLIN };
  const struct timespec timeout = { timeout_ns / WEIR_READ_SECOND, timeout_ns % WEIR_READ_SECOND };
  WeirCopyRead *copy;
  eventfd_t value;

  if (ppoll (&wake, 1, timeout_ns >= 0 ? &timeout : NULL, NULL) > 0)
    eventfd_read (self->wake_fd, &value);
  g_mutex_lock (&self->lock);
  while ((copy = g_queue_pop_head (&self->finished)))
    g_ptr_array_add (done, copy);
  g_mutex_unlock (&self->lock);
}

static gpointer
run_reader (gpointer data)
{
  WeirBlockReader *self = data;
  GPtrArray *done = g_ptr_array_new ();
  gint64 wait;

  if (!weir_block_reader_threads_only && !self->is_remote)
    self->ring = weir_read_ring_new (self->wake_fd);
  while ((wait = look_for_work (self)) != -2) {
    log_messages (self);
    if (self->ring)
      weir_read_ring_wait (self->ring, wait, done);
    else
      wait_for_pool (self, wait, done);
    for (guint i = 0; i < done->len; i++)
      finish_copy (self, done->pdata[i]);
    g_ptr_array_set_size (done, 0);
  }
  g_ptr_array_unref (done);
  if (self->ring)
    weir_read_ring_free (self->ring);
  g_mutex_lock (&self->lock);
  self->started = FALSE;
  g_cond_broadcast (&self->ran);
  g_mutex_unlock (&self->lock);
  weir_block_reader_unref (self);
  return NULL;
}

void
weir_block_reader_wake (WeirBlockReader *self)
{
  if (!self->thread && !self->stopping) {
    self->started = self->awake = TRUE;
    self->thread = g_thread_new ("weir-store", run_reader, weir_block_reader_ref (self));
  }
  if (!self->awake) {
    self->awake = TRUE;
    eventfd_write (self->wake_fd, 1);
  }
}
