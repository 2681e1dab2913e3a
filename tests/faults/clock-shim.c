// SPDX-License-Identifier: LGPL-2.1-or-later
// For LD_PRELOAD: sets the wall clock of one process. The file WEIR_CLOCK_FILE holds a step in
// seconds, which the test changes while the process runs. The monotonic clock stays as it is.

#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static volatile const int64_t *step;

__attribute__ ((constructor)) static void
open_file (void)
{
  const char *path = getenv ("WEIR_CLOCK_FILE");
  int fd = path ? open (path, O_RDONLY | O_CLOEXEC) : -1;
  void *map = fd < 0 ? MAP_FAILED : mmap (NULL, sizeof *step, PROT_READ, MAP_SHARED, fd, 0);

  if (map != MAP_FAILED)
    step = map;
}

__attribute__ ((visibility ("default"))) int
clock_gettime (clockid_t clock, struct timespec *t)
{
  static int (*original) (clockid_t, struct timespec *);
  int result;

  if (!original)
    original = (int (*) (clockid_t, struct timespec *)) dlsym (RTLD_NEXT, "clock_gettime");
  result = original (clock, t);
  if (result == 0 && clock == CLOCK_REALTIME && step)
    t->tv_sec += *step;
  return result;
}

__attribute__ ((visibility ("default"))) int
gettimeofday (struct timeval *restrict t, void *restrict zone)
{
  struct timespec now;

  if (clock_gettime (CLOCK_REALTIME, &now) != 0)
    return -1;
  *t = (struct timeval) { now.tv_sec, now.tv_nsec / 1000 };
  return 0;
}
