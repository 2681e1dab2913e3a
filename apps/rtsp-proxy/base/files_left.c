// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/files_left.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

// A new descriptor is the lowest free number. If even that is close to the limit, few are free.
gboolean
files_are_left (guint reserve)
{
  struct rlimit limit;
  int fd;

  if (getrlimit (RLIMIT_NOFILE, &limit) < 0)
    return TRUE;
  fd = fcntl (STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  if (fd < 0)
    return FALSE;
  close (fd);
  return (rlim_t) fd + MIN (reserve, limit.rlim_cur / 8) < limit.rlim_cur;
}
