// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "store/reader.h"

#ifdef HAVE_LIBURING

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <sys/eventfd.h>

#define ENTRIES 256
#define COMPLETIONS 4096 // more than the reads and closes that 256 disks can have at work
#define WORKERS 256      // threads of the kernel for calls that block, such as those of a sick disk

enum { STAGE_OPEN, STAGE_READ, STAGE_LOOK }; // LOOK: is the disk there?

struct _WeirReadRing {
  struct io_uring ring;
  int wake_fd;
  eventfd_t wake_value;
  gboolean listening; // to wake_fd
};

WeirReadRing *
weir_read_ring_new (int wake_fd)
{
  WeirReadRing *self = g_new0 (WeirReadRing, 1);
  unsigned workers[2] = { WORKERS, WORKERS };
  struct io_uring_params params = { .flags = IORING_SETUP_CLAMP | IORING_SETUP_CQSIZE,
    .cq_entries = COMPLETIONS };

  if (io_uring_queue_init_params (ENTRIES, &self->ring, &params) < 0) {
    g_free (self);
    return NULL;
  }
  // The default is four for each processor: two sick disks could use them all.
  io_uring_register_iowq_max_workers (&self->ring, workers);
  self->wake_fd = wake_fd;
  return self;
}

void
weir_read_ring_free (WeirReadRing *self)
{
  io_uring_queue_exit (&self->ring);
  g_free (self);
}

static struct io_uring_sqe *
next_entry (WeirReadRing *self)
{
  struct io_uring_sqe *entry;

  // A submission makes room. It never waits for completions to be taken: there is room for all.
  while (!(entry = io_uring_get_sqe (&self->ring)))
    io_uring_submit (&self->ring);
  return entry;
}

static void
submit_open (WeirReadRing *self, WeirCopyRead *copy, guint stage)
{
  struct io_uring_sqe *entry = next_entry (self);
  const int flags = O_RDONLY | O_CLOEXEC | (stage == STAGE_OPEN && copy->direct ? O_DIRECT : 0);

  copy->stage = stage;
  io_uring_prep_openat (
      entry, AT_FDCWD, stage == STAGE_LOOK ? copy->disk_path : copy->path, flags, 0);
  io_uring_sqe_set_data (entry, copy);
}

// The rest of the block, up to a multiple of what O_DIRECT needs: the extent is as large.
static void
submit_read (WeirReadRing *self, WeirCopyRead *copy)
{
  struct io_uring_sqe *entry = next_entry (self);
  const gsize end = (copy->length + WEIR_EXTENT_ALIGN - 1) & ~(gsize) (WEIR_EXTENT_ALIGN - 1);

  copy->stage = STAGE_READ;
  io_uring_prep_read (
      entry, copy->fd, copy->extent->bytes + copy->got, (unsigned) (end - copy->got), copy->got);
  io_uring_sqe_set_data (entry, copy);
}

static void
submit_close (WeirReadRing *self, int fd)
{
  struct io_uring_sqe *entry = next_entry (self);

  io_uring_prep_close (entry, fd);
  io_uring_sqe_set_data (entry, NULL);
}

void
weir_read_ring_submit (WeirReadRing *self, WeirCopyRead *copy)
{
  copy->got = 0;
  submit_open (self, copy, STAGE_OPEN);
}

// Goes one step on with a copy. Returns TRUE if it has been read, or cannot be.
static gboolean
step (WeirReadRing *self, WeirCopyRead *copy, int result)
{
  const gboolean opening = copy->stage != STAGE_READ;

  if (result == -EINTR || result == -EAGAIN) {
    if (opening)
      submit_open (self, copy, copy->stage);
    else
      submit_read (self, copy);
    return FALSE;
  }
  if (copy->stage == STAGE_LOOK) {
    copy->result = result >= 0 ? WEIR_COPY_LOST : WEIR_COPY_NO_DISK;
    if (result >= 0)
      submit_close (self, result);
    return TRUE;
  }
  // The file system knows no O_DIRECT, or has other needs.
  if (result == -EINVAL && copy->direct) {
    copy->direct = FALSE;
    if (!opening)
      submit_close (self, copy->fd);
    copy->fd = -1;
    submit_open (self, copy, STAGE_OPEN);
    return FALSE;
  }
  if (opening && (result == -ENOENT || result == -ENOTDIR)) {
    submit_open (self, copy, STAGE_LOOK);
    return FALSE;
  }
  if (result < 0) {
    copy->error = -result;
    return TRUE;
  }
  if (opening)
    copy->fd = result;
  else
    copy->got += (gsize) result;
  // A direct read that ends elsewhere than at a multiple has met the end of the file.
  if (!opening
      && (result == 0 || copy->got >= copy->length
          || (copy->direct && copy->got % WEIR_EXTENT_ALIGN != 0)))
    return TRUE;
  submit_read (self, copy);
  return FALSE;
}

static void
listen_to_wake (WeirReadRing *self)
{
  struct io_uring_sqe *entry;

  if (self->listening)
    return;
  self->listening = TRUE;
  entry = next_entry (self);
  io_uring_prep_read (entry, self->wake_fd, &self->wake_value, sizeof self->wake_value, 0);
  io_uring_sqe_set_data (entry, self);
}

void
weir_read_ring_wait (WeirReadRing *self, gint64 timeout_ns, GPtrArray *done)
{
  struct __kernel_timespec timeout = { timeout_ns / WEIR_READ_SECOND,
    timeout_ns % WEIR_READ_SECOND };
  struct io_uring_cqe *entry;
  const guint first = done->len;

  listen_to_wake (self);
  io_uring_submit_and_wait_timeout (
      &self->ring, &entry, 1, timeout_ns >= 0 ? &timeout : NULL, NULL);
  while (io_uring_peek_cqe (&self->ring, &entry) == 0) {
    gpointer data = io_uring_cqe_get_data (entry);
    const int result = entry->res;

    io_uring_cqe_seen (&self->ring, entry);
    if (data == self) {
      self->listening = FALSE;
    } else if (data && step (self, data, result)) {
      WeirCopyRead *copy = data;
      copy->done_ns = weir_block_reader_now ();
      if (copy->fd >= 0)
        submit_close (self, copy->fd);
      g_ptr_array_add (done, copy);
    }
  }
  for (guint i = first; i < done->len; i++)
    weir_copy_read_check (done->pdata[i]);
}

#else

WeirReadRing *
weir_read_ring_new (int wake_fd)
{
  return NULL;
}

void
weir_read_ring_free (WeirReadRing *self)
{
}

void
weir_read_ring_submit (WeirReadRing *self, WeirCopyRead *copy)
{
}

void
weir_read_ring_wait (WeirReadRing *self, gint64 timeout_ns, GPtrArray *done)
{
}

#endif
