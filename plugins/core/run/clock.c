// SPDX-License-Identifier: LGPL-2.1-or-later
#include "run/clock.h"

#include <time.h>

int64_t
weir_now_ns (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (int64_t) t.tv_sec * 1000000000 + t.tv_nsec;
}

void
weir_cond_init (pthread_cond_t *cond)
{
  pthread_condattr_t monotonic;

  pthread_condattr_init (&monotonic);
  pthread_condattr_setclock (&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init (cond, &monotonic);
  pthread_condattr_destroy (&monotonic);
}

int
weir_cond_wait_until (pthread_cond_t *cond, pthread_mutex_t *lock, int64_t due_ns)
{
  struct timespec t = { .tv_sec = due_ns / 1000000000, .tv_nsec = due_ns % 1000000000 };

  return pthread_cond_timedwait (cond, lock, &t);
}
