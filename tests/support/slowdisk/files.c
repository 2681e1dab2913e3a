// SPDX-License-Identifier: LGPL-2.1-or-later
// The files and folders of the backing folder, without their data. All operations here are answered
// at once.

#include "slowdisk.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

// Files change through this file system only, so the kernel need not ask again.
#define VALID_SECONDS 3600

static void
answer (fuse_req_t req, int result)
{
  fuse_reply_err (req, result < 0 ? errno : 0);
}

static struct nodes *
bucket_of (struct slowdisk *self, ino_t number)
{
  return &self->nodes[number % SLOWDISK_BUCKETS];
}

static void
drop (struct slowdisk *self, struct node *node, uint64_t lookups)
{
  if (node == &self->root || (node->lookups -= lookups) > 0)
    return;
  TAILQ_REMOVE (bucket_of (self, node->number), node, link);
  close (node->fd);
  free (node);
}

void
slowdisk_free (struct slowdisk *self)
{
  struct node *node;

  for (size_t i = 0; i < SLOWDISK_BUCKETS; i++)
    while ((node = TAILQ_FIRST (&self->nodes[i])))
      drop (self, node, node->lookups);
  close (self->root.fd);
  free (self->scratch);
}

// Returns the node of a file, with one lookup more. Takes `fd`.
static struct node *
node_for (struct slowdisk *self, int fd, const struct stat *info)
{
  struct node *node;

  TAILQ_FOREACH (node, bucket_of (self, info->st_ino), link)
  if (node->device == info->st_dev && node->number == info->st_ino) {
    close (fd);
    node->lookups++;
    return node;
  }
  node = calloc (1, sizeof *node);
  if (!node)
    abort ();
  *node = (struct node) { .fd = fd, .device = info->st_dev, .number = info->st_ino, .lookups = 1 };
  TAILQ_INSERT_HEAD (bucket_of (self, node->number), node, link);
  return node;
}

int
files_find (fuse_req_t req, fuse_ino_t parent, const char *name, struct fuse_entry_param *entry)
{
  int fd = openat (fd_of (req, parent), name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

  *entry =
      (struct fuse_entry_param) { .attr_timeout = VALID_SECONDS, .entry_timeout = VALID_SECONDS };
  if (fd < 0)
    return errno;
  if (fstat (fd, &entry->attr) < 0) {
    int error = errno;

    close (fd);
    return error;
  }
  entry->ino = (fuse_ino_t) node_for (disk_of (req), fd, &entry->attr);
  return 0;
}

static void
answer_entry (fuse_req_t req, fuse_ino_t parent, const char *name, int result)
{
  struct fuse_entry_param entry;
  int error = result < 0 ? errno : files_find (req, parent, name, &entry);

  if (error)
    fuse_reply_err (req, error);
  else
    fuse_reply_entry (req, &entry);
}

static void
do_init (void *data, struct fuse_conn_info *conn)
{
  (void) data;
  // Without it, the kernel keeps all but 12 requests back.
  conn->max_background = conn->congestion_threshold = 4096;
  conn->want &= ~(unsigned) (FUSE_CAP_SPLICE_READ | FUSE_CAP_AUTO_INVAL_DATA);
  conn->want |= conn->capable & (FUSE_CAP_ASYNC_DIO | FUSE_CAP_ASYNC_READ);
}

static void
do_lookup (fuse_req_t req, fuse_ino_t parent, const char *name)
{
  answer_entry (req, parent, name, 0);
}

static void
do_forget (fuse_req_t req, fuse_ino_t ino, uint64_t lookups)
{
  drop (disk_of (req), node_of (req, ino), lookups);
  fuse_reply_none (req);
}

static void
do_getattr (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *file)
{
  struct stat info;

  (void) file;
  if (fstat (fd_of (req, ino), &info) < 0)
    fuse_reply_err (req, errno);
  else
    fuse_reply_attr (req, &info, VALID_SECONDS);
}

static void
do_setattr (fuse_req_t req, fuse_ino_t ino, struct stat *to, int what, struct fuse_file_info *file)
{
  struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_nsec = UTIME_OMIT } };
  char path[32];
  int result = 0;

  path_of (fd_of (req, ino), path);
  if (what & FUSE_SET_ATTR_ATIME)
    times[0] = to->st_atim;
  if (what & FUSE_SET_ATTR_ATIME_NOW)
    times[0].tv_nsec = UTIME_NOW;
  if (what & FUSE_SET_ATTR_MTIME)
    times[1] = to->st_mtim;
  if (what & FUSE_SET_ATTR_MTIME_NOW)
    times[1].tv_nsec = UTIME_NOW;
  if (what & FUSE_SET_ATTR_MODE)
    result = chmod (path, to->st_mode);
  if (result == 0 && (what & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)))
    result = chown (path, what & FUSE_SET_ATTR_UID ? to->st_uid : (uid_t) -1,
        what & FUSE_SET_ATTR_GID ? to->st_gid : (gid_t) -1);
  if (result == 0 && (what & FUSE_SET_ATTR_SIZE))
    result = truncate (path, to->st_size);
  if (result == 0)
    result = utimensat (AT_FDCWD, path, times, 0);
  if (result < 0)
    fuse_reply_err (req, errno);
  else
    do_getattr (req, ino, file);
}

static void
do_mkdir (fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
  if (!refuse_full (req))
    answer_entry (req, parent, name, mkdirat (fd_of (req, parent), name, mode));
}

static void
do_unlink (fuse_req_t req, fuse_ino_t parent, const char *name)
{
  answer (req, unlinkat (fd_of (req, parent), name, 0));
}

static void
do_rmdir (fuse_req_t req, fuse_ino_t parent, const char *name)
{
  answer (req, unlinkat (fd_of (req, parent), name, AT_REMOVEDIR));
}

static void
do_rename (fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
    const char *new_name, unsigned flags)
{
  answer (req, renameat2 (fd_of (req, parent), name, fd_of (req, new_parent), new_name, flags));
}

static void
do_link (fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
  char path[32];
  int result = linkat (
      AT_FDCWD, path_of (fd_of (req, ino), path), fd_of (req, parent), name, AT_SYMLINK_FOLLOW);

  answer_entry (req, parent, name, result);
}

static void
do_opendir (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *file)
{
  int fd = openat (fd_of (req, ino), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *folder = fd < 0 ? NULL : fdopendir (fd);

  if (!folder) {
    fuse_reply_err (req, errno);
    return;
  }
  file->fh = (uint64_t) folder;
  fuse_reply_open (req, file);
}

static void
do_readdir (fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *file)
{
  DIR *folder = (DIR *) file->fh;
  char *names = malloc (size);
  size_t at = 0;
  struct dirent *entry;

  (void) ino;
  if (!names)
    abort ();
  seekdir (folder, offset);
  while ((entry = readdir (folder))) {
    struct stat info = { .st_ino = entry->d_ino, .st_mode = (mode_t) entry->d_type << 12 };
    size_t takes =
        fuse_add_direntry (req, names + at, size - at, entry->d_name, &info, entry->d_off);

    if (takes > size - at)
      break;
    at += takes;
  }
  fuse_reply_buf (req, names, at);
  free (names);
}

static void
do_releasedir (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *file)
{
  (void) ino;
  closedir ((DIR *) file->fh);
  fuse_reply_err (req, 0);
}

static void
do_fsyncdir (fuse_req_t req, fuse_ino_t ino, int data_only, struct fuse_file_info *file)
{
  (void) ino;
  (void) data_only;
  (void) file;
  fuse_reply_err (req, 0);
}

static void
do_statfs (fuse_req_t req, fuse_ino_t ino)
{
  struct statvfs info;

  if (fstatvfs (fd_of (req, ino), &info) < 0) {
    fuse_reply_err (req, errno);
    return;
  }
  if (disk_of (req)->disk.factors.full)
    info.f_bfree = info.f_bavail = 0;
  fuse_reply_statfs (req, &info);
}

static void
do_setxattr (fuse_req_t req, fuse_ino_t ino, const char *attribute, const char *value, size_t size,
    int flags)
{
  const char *name = ino == FUSE_ROOT_ID ? factors_name (attribute) : NULL;

  (void) flags;
  fuse_reply_err (req, name ? factors_set (disk_of (req), name, value, size) : EOPNOTSUPP);
}

static void
do_getxattr (fuse_req_t req, fuse_ino_t ino, const char *attribute, size_t size)
{
  const char *name = ino == FUSE_ROOT_ID ? factors_name (attribute) : NULL;
  char text[512];
  int length = name ? factors_get (disk_of (req), name, text, sizeof text) : -ENODATA;

  if (length < 0)
    fuse_reply_err (req, -length);
  else if (size == 0)
    fuse_reply_xattr (req, (size_t) length);
  else if ((size_t) length > size)
    fuse_reply_err (req, ERANGE);
  else
    fuse_reply_buf (req, text, (size_t) length);
}

static void
do_listxattr (fuse_req_t req, fuse_ino_t ino, size_t size)
{
  char names[1024];
  size_t length = ino == FUSE_ROOT_ID ? factors_list (names, sizeof names) : 0;

  if (size == 0)
    fuse_reply_xattr (req, length);
  else if (length > size)
    fuse_reply_err (req, ERANGE);
  else
    fuse_reply_buf (req, names, length);
}

const struct fuse_lowlevel_ops slowdisk_operations = {
  .init = do_init,
  .lookup = do_lookup,
  .forget = do_forget,
  .getattr = do_getattr,
  .setattr = do_setattr,
  .mkdir = do_mkdir,
  .unlink = do_unlink,
  .rmdir = do_rmdir,
  .rename = do_rename,
  .link = do_link,
  .open = data_open,
  .create = data_create,
  .release = data_release,
  .read = data_read,
  .write = data_write,
  .fsync = data_fsync,
  .fallocate = data_fallocate,
  .opendir = do_opendir,
  .readdir = do_readdir,
  .releasedir = do_releasedir,
  .fsyncdir = do_fsyncdir,
  .statfs = do_statfs,
  .setxattr = do_setxattr,
  .getxattr = do_getxattr,
  .listxattr = do_listxattr,
};
