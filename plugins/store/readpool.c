// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

gboolean (*weir_read_pool_test) (WeirCopyRead *copy);

void
weir_copy_read_check (WeirCopyRead *copy)
{
  switch (copy->error) {
    case 0:
      break;
    case ENOMEM:
    case EMFILE:
    case ENFILE:
      copy->result = WEIR_COPY_HINDERED;
      return;
    default:
      copy->result = WEIR_COPY_UNREAD;
      return;
  }
  if (copy->result != WEIR_COPY_GOOD) // lost, or no disk
    return;
  if (copy->got < copy->length || XXH3_64bits (copy->extent->bytes, copy->length) != copy->hash)
    copy->result = WEIR_COPY_WRONG;
}

static void
read_bytes (WeirCopyRead *copy)
{
  const gsize end = (copy->length + WEIR_EXTENT_ALIGN - 1) & ~(gsize) (WEIR_EXTENT_ALIGN - 1);

  copy->got = 0;
  copy->error = 0;
  while (copy->got < copy->length) {
    const gssize n =
        pread (copy->fd, copy->extent->bytes + copy->got, end - copy->got, (off_t) copy->got);

    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      copy->error = errno;
    else
      copy->got += (gsize) n;
    // A direct read that ends elsewhere than at a multiple has met the end of the file.
    if (n <= 0 || (copy->direct && copy->got % WEIR_EXTENT_ALIGN != 0))
      return;
  }
}

static void
open_and_read (WeirCopyRead *copy)
{
  copy->fd = open (copy->path, O_RDONLY | O_CLOEXEC | (copy->direct ? O_DIRECT : 0));
  if (copy->fd < 0) {
    copy->error = errno;
    return;
  }
  read_bytes (copy);
  close (copy->fd);
}

static void
read_copy (WeirCopyRead *copy)
{
  open_and_read (copy);
  if (copy->error == EINVAL && copy->direct) {
    // The file system knows no O_DIRECT, or has other needs.
    copy->direct = FALSE;
    copy->error = 0;
    open_and_read (copy);
  }
  if (copy->fd < 0 && (copy->error == ENOENT || copy->error == ENOTDIR)) {
    copy->error = 0;
    copy->result = access (copy->disk_path, F_OK) == 0 ? WEIR_COPY_LOST : WEIR_COPY_NO_DISK;
  }
}

static void
read_remote (WeirCopyRead *copy)
{
  copy->error = copy->remote->kind->read (copy->remote->data, copy->disk->number, copy->number,
      copy->offset, copy->extent->bytes, copy->length, &copy->why);
  switch (copy->error) {
    case 0:
      copy->got = copy->length;
      break;
    case ENOENT:
      copy->result = WEIR_COPY_LOST;
      break;
    case ESTALE:
      copy->result = WEIR_COPY_WRONG;
      break;
    default:
      copy->result = WEIR_COPY_UNREAD;
      break;
  }
}

typedef struct {
  WeirBlockReader *reader;
  WeirReadDisk *disk;
} Worker;

static gpointer
work (gpointer data)
{
  Worker *worker = data;
  WeirBlockReader *self = worker->reader;
  WeirReadDisk *disk = worker->disk;
  WeirCopyRead *copy;

  g_mutex_lock (&self->lock);
  for (;;) {
    while (disk->jobs.length == 0 && !self->stopping)
      g_cond_wait (&disk->job_given, &self->lock);
    copy = g_queue_pop_head (&disk->jobs);
    if (!copy)
      break;
    g_mutex_unlock (&self->lock);
    if (copy->remote) {
      read_remote (copy);
      copy->done_ns = weir_block_reader_now ();
    } else {
      if (!weir_read_pool_test || !weir_read_pool_test (copy))
        read_copy (copy);
      copy->done_ns = weir_block_reader_now ();
      weir_copy_read_check (copy);
    }
    g_mutex_lock (&self->lock);
    g_queue_push_tail (&self->finished, copy);
    weir_block_reader_wake (self);
  }
  g_mutex_unlock (&self->lock);
  weir_block_reader_unref (self);
  g_free (worker);
  return NULL;
}

void
weir_read_pool_submit (WeirBlockReader *self, WeirCopyRead *copy)
{
  WeirReadDisk *disk = copy->disk;

  if (disk->n_threads < disk->at_work->len) {
    Worker *worker = g_new (Worker, 1);

    worker->reader = weir_block_reader_ref (self);
    worker->disk = disk;
    disk->n_threads++;
    g_thread_unref (g_thread_new ("weir-store-disk", work, worker));
  }
  g_queue_push_tail (&disk->jobs, copy);
  g_cond_signal (&disk->job_given);
}
