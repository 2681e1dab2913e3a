// SPDX-License-Identifier: LGPL-2.1-or-later
// The data of files: reads, writes and syncs go through the disk.

#include "slowdisk.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// The kernel's largest request, unless libfuse and fs.fuse.max_pages_limit allow more.
#define CUT_BYTES (1 << 20)

struct handle {
  int fd;
  bool direct; // opened with O_DIRECT: the kernel sends all pieces of a cut request at once
};

struct request {
  struct disk_request part; // first
  fuse_req_t answer;
  int fd;
};

static struct handle *
handle_of (const struct fuse_file_info *info)
{
  return (struct handle *) info->fh;
}

// Takes `fd`.
static void
take_handle (struct fuse_file_info *file, int fd)
{
  struct handle *handle = calloc (1, sizeof *handle);

  if (!handle)
    abort ();
  *handle = (struct handle) { .fd = fd, .direct = (file->flags & O_DIRECT) != 0 };
  file->fh = (uint64_t) handle;
  // The page cache would hide the disk. A file that is opened with O_DIRECT passes it anyway.
  file->direct_io = !handle->direct;
}

static int
flags_of (const struct fuse_file_info *file)
{
  return (file->flags & ~(O_DIRECT | O_NOFOLLOW | O_CREAT | O_EXCL | O_APPEND)) | O_CLOEXEC;
}

void
data_open (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *file)
{
  char path[32];
  int fd;

  if (disk_of (req)->disk.factors.refuse_direct && (file->flags & O_DIRECT)) {
    fuse_reply_err (req, EINVAL);
    return;
  }
  fd = open (path_of (fd_of (req, ino), path), flags_of (file));
  if (fd < 0) {
    fuse_reply_err (req, errno);
    return;
  }
  take_handle (file, fd);
  fuse_reply_open (req, file);
}

void
data_create (
    fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *file)
{
  struct fuse_entry_param entry;
  int fd, error;

  if (refuse_full (req))
    return;
  fd = openat (fd_of (req, parent), name, flags_of (file) | O_CREAT | (file->flags & O_EXCL), mode);
  error = fd < 0 ? errno : files_find (req, parent, name, &entry);
  if (error) {
    if (fd >= 0)
      close (fd);
    fuse_reply_err (req, error);
    return;
  }
  take_handle (file, fd);
  fuse_reply_create (req, &entry, file);
}

void
data_release (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *file)
{
  (void) ino;
  close (handle_of (file)->fd);
  free (handle_of (file));
  fuse_reply_err (req, 0);
}

// Copies, because a splice of many pages takes three times as long.
static void
answer_read (struct slowdisk *self, const struct request *request)
{
  const size_t size = request->part.bytes;
  ssize_t n;

  if (size > self->scratch_size) {
    self->scratch = realloc (self->scratch, size);
    self->scratch_size = size;
  }
  if (!self->scratch)
    abort ();
  n = pread (request->fd, self->scratch, size, (off_t) request->part.offset);
  if (n < 0)
    fuse_reply_err (request->answer, errno);
  else
    fuse_reply_buf (request->answer, self->scratch, (size_t) n);
}

static void
finish (struct slowdisk *self, struct request *request)
{
  if (request->part.error)
    fuse_reply_err (request->answer, request->part.error);
  else if (request->part.kind == DISK_READ)
    answer_read (self, request);
  else if (request->part.kind == DISK_WRITE)
    fuse_reply_write (request->answer, request->part.bytes);
  else
    fuse_reply_err (request->answer, 0);
  free (request);
}

void
slowdisk_finish (struct slowdisk *self)
{
  struct disk_request *part;

  while ((part = disk_take (&self->disk, slowdisk_now ())))
    finish (self, (struct request *) part);
}

// Whoever waits for the request is being killed.
static void
interrupted (fuse_req_t req, void *data)
{
  struct request *request = data;

  disk_drop (&disk_of (req)->disk, &request->part);
  request->part.error = EINTR;
  finish (disk_of (req), request);
}

static void
queue (fuse_req_t req, const struct fuse_file_info *file, struct disk_request part)
{
  struct request *request = malloc (sizeof *request);

  if (!request)
    abort ();
  part.file = (uint64_t) handle_of (file);
  *request = (struct request) { .part = part, .answer = req, .fd = handle_of (file)->fd };
  disk_add (&disk_of (req)->disk, &request->part, slowdisk_now ());
  fuse_req_interrupt_func (req, interrupted, request);
}

void
data_read (fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *file)
{
  const struct handle *handle = handle_of (file);
  struct stat info;

  (void) ino;
  if (fstat (handle->fd, &info) < 0)
    fuse_reply_err (req, errno);
  else if (offset >= info.st_size)
    fuse_reply_buf (req, NULL, 0);
  else
    queue (req, file,
        (struct disk_request) { .kind = DISK_READ,
            .offset = (uint64_t) offset,
            .bytes =
                size < (size_t) (info.st_size - offset) ? size : (size_t) (info.st_size - offset),
            .cut = !handle->direct && size >= CUT_BYTES });
}

static bool
all_zero (const char *data, size_t size)
{
  return size > 0 && data[0] == 0 && memcmp (data, data + 1, size - 1) == 0;
}

// Makes the file at least as long. Returns 0 or an errno.
static int
extend (int fd, off_t length)
{
  struct stat info;

  if (fstat (fd, &info) < 0 || (info.st_size < length && ftruncate (fd, length) < 0))
    return errno;
  return 0;
}

// Writes zeros as a hole, so that large titles of zeros take no memory. Returns 0 or an errno.
static int
write_hole (int fd, size_t size, off_t offset)
{
  if (fallocate (fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, (off_t) size) < 0)
    return errno;
  return extend (fd, offset + (off_t) size);
}

static int
write_data (int fd, const char *data, size_t size, off_t offset)
{
  if (all_zero (data, size) && write_hole (fd, size, offset) == 0)
    return 0;
  while (size > 0) {
    ssize_t n = pwrite (fd, data, size, offset);

    if (n < 0)
      return errno;
    data += n;
    size -= (size_t) n;
    offset += n;
  }
  return 0;
}

// The bytes are in the backing file at once, because libfuse owns `data`. They are lost with the
// imitation, not with the disk, so it makes no difference that the answer comes later.
void
data_write (fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t offset,
    struct fuse_file_info *file)
{
  struct slowdisk *self = disk_of (req);
  int error;

  (void) ino;
  if (refuse_full (req))
    return;
  error =
      self->disk.factors.error == 100 ? EIO : write_data (handle_of (file)->fd, data, size, offset);
  queue (req, file,
      (struct disk_request) {
          .kind = DISK_WRITE, .offset = (uint64_t) offset, .bytes = size, .error = error });
}

void
data_fsync (fuse_req_t req, fuse_ino_t ino, int data_only, struct fuse_file_info *file)
{
  (void) ino;
  (void) data_only;
  queue (req, file, (struct disk_request) { .kind = DISK_SYNC });
}

void
data_fallocate (
    fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t size, struct fuse_file_info *file)
{
  const int fd = handle_of (file)->fd;

  (void) ino;
  if (mode & FALLOC_FL_PUNCH_HOLE)
    fuse_reply_err (req, fallocate (fd, mode, offset, size) < 0 ? errno : 0);
  else if (mode != 0 && mode != FALLOC_FL_KEEP_SIZE)
    fuse_reply_err (req, EOPNOTSUPP);
  else if (!refuse_full (req)) // space that is only reserved takes no memory
    fuse_reply_err (req, mode ? 0 : extend (fd, offset + size));
}
