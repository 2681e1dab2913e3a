// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// openat2() fails with EAGAIN when a folder on the path was renamed meanwhile.
#define TRIES 16

static int
set_errno (int error)
{
  errno = error;
  return -1;
}

static void
close_quietly (int fd)
{
  int error = errno;

  close (fd);
  errno = error;
}

// Opens `name` in the folder `from`, and follows no link.
static int
open_plain (int from, const char *name)
{
  return openat (from, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

static int
open_beneath (int from, const char *path, int flags)
{
  struct open_how how = { .flags = (uint64_t) flags | O_CLOEXEC,
    .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
  long fd = -1;

  for (int i = 0; i < TRIES; i++) {
    fd = syscall (SYS_openat2, from, path, &how, sizeof how);
    if (fd >= 0 || errno != EAGAIN)
      break;
  }
  return (int) fd;
}

// Reports whether openat2() failed because of an old kernel, or of a sandbox that blocks the call.
static bool
is_missing (int fd)
{
  return fd < 0 && (errno == ENOSYS || errno == EPERM);
}

// Opens `name` in the folder `from`, or what it links to in or below that folder.
static int
open_linked (int from, const char *name)
{
  int fd = open_beneath (from, name, O_PATH);

  return is_missing (fd) ? open_plain (from, name) : fd;
}

typedef int (*OpenFunc) (int from, const char *name);

// Opens one component of a path in the folder `from`: `len` bytes of `name`, without a slash.
static int
open_component (int from, const char *name, size_t len, OpenFunc open_name)
{
  char part[NAME_MAX + 1];

  if (len > NAME_MAX)
    return set_errno (ENAMETOOLONG);
  if (len == 0 || (len == 1 && name[0] == '.') || (len == 2 && name[0] == '.' && name[1] == '.'))
    return set_errno (EXDEV);
  memcpy (part, name, len);
  part[len] = '\0';
  return open_name (from, part);
}

static int
walk (int folder, const char *path, OpenFunc open_name)
{
  int at = fcntl (folder, F_DUPFD_CLOEXEC, 0);

  while (at >= 0) {
    size_t len = strcspn (path, "/");
    int next = open_component (at, path, len, open_name);

    close_quietly (at);
    at = next;
    if (path[len] == '\0')
      break;
    path += len + 1;
  }
  return at;
}

int
beneath_walk (int folder, const char *path)
{
  return walk (folder, path, open_plain);
}

// Opens the file behind the O_PATH descriptor `found`. Opening it by name again could open another
// file that has taken the name since.
static int
open_found (int found)
{
  char name[32];
  struct stat st;

  if (fstat (found, &st) < 0)
    return -1;
  if (!S_ISREG (st.st_mode))
    return set_errno (S_ISDIR (st.st_mode) ? EISDIR : ENXIO);
  snprintf (name, sizeof name, "/proc/self/fd/%d", found);
  return open (name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
}

int
beneath_open_at (int folder, const char *path)
{
  int found = walk (folder, path, open_linked);
  int fd;

  if (found < 0)
    return -1;
  fd = open_found (found);
  close_quietly (found);
  return fd;
}

int
beneath_open (const char *folder, const char *path)
{
  int dir = open (folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  int fd;

  if (dir < 0)
    return -1;
  fd = beneath_open_at (dir, path);
  close_quietly (dir);
  return fd;
}

int
beneath_open_any (int folder, const char *path, int flags)
{
  char name[64];
  int fd = open_beneath (folder, path, flags), found;

  if (!is_missing (fd))
    return fd;
  found = strcmp (path, ".") == 0 ? fcntl (folder, F_DUPFD_CLOEXEC, 0)
                                  : walk (folder, path, open_plain);
  if (found < 0 || flags == O_PATH)
    return found;
  snprintf (name, sizeof name, "/proc/self/fd/%d", found);
  fd = open (name, flags | O_CLOEXEC);
  close_quietly (found);
  return fd;
}
