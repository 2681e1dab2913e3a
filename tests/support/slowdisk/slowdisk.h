// SPDX-License-Identifier: LGPL-2.1-or-later
// What the files of slowdisk share.

#pragma once

#include "model.h"

#define FUSE_USE_VERSION 314
#include <errno.h>
#include <fuse_lowlevel.h>
#include <stdio.h>

#define SLOWDISK_BUCKETS 4096

// A file or folder that the kernel knows, by its descriptor in the backing folder (O_PATH).
struct node {
  TAILQ_ENTRY (node) link;
  int fd;
  dev_t device;
  ino_t number;
  uint64_t lookups;
};

struct slowdisk {
  struct disk disk;
  struct node root;
  TAILQ_HEAD (nodes, node) nodes[SLOWDISK_BUCKETS]; // by inode number, without the root
  void *scratch;                                    // for the data of a read
  size_t scratch_size;
};

// The operations on files and folders. The user data of the session is a struct slowdisk.
extern const struct fuse_lowlevel_ops slowdisk_operations;

// Answers the requests that the disk has finished by now.
void slowdisk_finish (struct slowdisk *self);

// Closes the files and frees the memory.
void slowdisk_free (struct slowdisk *self);

// The time of the clock that the disk runs by, in ns.
int64_t slowdisk_now (void);

// Sets a factor by its name, such as "rate". Returns 0 or an errno.
int factors_set (struct slowdisk *self, const char *name, const char *value, size_t size);

// Prints a factor, or all counters for the name "stats", into `to`. Returns the length, which may
// be more than `size`, or a negative errno.
int factors_get (const struct slowdisk *self, const char *name, char *to, size_t size);

// Prints the extended attributes' names, each with a NUL at its end. Returns their length.
size_t factors_list (char *to, size_t size);

// Returns the factor's name within the name of an extended attribute, or NULL.
const char *factors_name (const char *attribute);

// The operations on the data of files, in data.c.
void data_open (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *file);
void data_create (
    fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *file);
void data_release (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *file);
void data_read (
    fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *file);
void data_write (fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t offset,
    struct fuse_file_info *file);
void data_fsync (fuse_req_t req, fuse_ino_t ino, int data_only, struct fuse_file_info *file);
void data_fallocate (fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t size,
    struct fuse_file_info *file);

// Looks a file up. Returns 0 or an errno.
int files_find (
    fuse_req_t req, fuse_ino_t parent, const char *name, struct fuse_entry_param *entry);

static inline struct slowdisk *
disk_of (fuse_req_t req)
{
  return fuse_req_userdata (req);
}

static inline struct node *
node_of (fuse_req_t req, fuse_ino_t ino)
{
  return ino == FUSE_ROOT_ID ? &disk_of (req)->root : (struct node *) ino;
}

static inline int
fd_of (fuse_req_t req, fuse_ino_t ino)
{
  return node_of (req, ino)->fd;
}

// A name for calls that take no descriptor made with O_PATH.
static inline const char *
path_of (int fd, char path[32])
{
  snprintf (path, 32, "/proc/self/fd/%d", fd);
  return path;
}

// Answers ENOSPC if the disk is full. Returns whether it did.
static inline bool
refuse_full (fuse_req_t req)
{
  const bool full = disk_of (req)->disk.factors.full;

  if (full)
    fuse_reply_err (req, ENOSPC); // frees req
  return full;
}
