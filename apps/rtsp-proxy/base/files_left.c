// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/files_left.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

// From this limit on, the reserves are those of the table; below it they are smaller in proportion.
#define WHOLE_LIMIT 768

static const struct {
  guint needed;  // with two tracks
  guint reserve; // what stays free
} uses[] = {
  [FILES_FOR_CONNECTION] = { 4, 96 }, // over TLS
  [FILES_FOR_TITLE] = { 36, 64 },
  [FILES_FOR_PLAYING] = { 20, 64 },
  [FILES_FOR_UPSTREAM] = { 12, 64 },
  [FILES_FOR_BYTES] = { 2, 64 },
  [FILES_FOR_MEDIA] = { 12, 48 },
};

static gint promised; // atomic

// The system gives the lowest free numbers, so the next `n` files get these.
gboolean
files_are_left (FilesUse use)
{
  guint n = uses[use].needed + (guint) g_atomic_int_get (&promised);
  struct rlimit limit;
  rlim_t reserve;
  int fd = -1;

  if (getrlimit (RLIMIT_NOFILE, &limit) < 0)
    return TRUE;
  for (guint i = 0; i < n; i++) {
    fd = fcntl (STDERR_FILENO, F_DUPFD_CLOEXEC, fd + 1);
    if (fd < 0)
      return FALSE;
    close (fd);
  }
  reserve = uses[use].reserve * MIN (limit.rlim_cur, WHOLE_LIMIT) / WHOLE_LIMIT;
  return (rlim_t) fd + reserve < limit.rlim_cur;
}

gboolean
files_promise (FilesUse use)
{
  static GMutex lock;
  gboolean left;

  g_mutex_lock (&lock);
  left = files_are_left (use);
  if (left)
    g_atomic_int_add (&promised, (gint) uses[use].needed);
  g_mutex_unlock (&lock);
  return left;
}

void
files_end_promise (FilesUse use)
{
  g_atomic_int_add (&promised, -(gint) uses[use].needed);
}

void
files_change_promise (FilesUse from, FilesUse to)
{
  g_atomic_int_add (&promised, (gint) uses[to].needed - (gint) uses[from].needed);
}
