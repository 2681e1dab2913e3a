// SPDX-License-Identifier: LGPL-2.1-or-later
// Prints the most microseconds for which each CPU in turn did not run a thread of the highest
// priority: interrupts, and time that the host of a virtual machine gave to others. A time that a
// bench measures says nothing if it is not longer than that. Needs root.
#include <sched.h>
#include <stdio.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#define S 1000000000LL
#define SPIN (S * 9 / 10) // the kernel stops real-time threads that run for longer
#define REST_US 200000
#define ROUNDS 3 // of each CPU

static int64_t
now (void)
{
  struct timespec time;

  clock_gettime (CLOCK_MONOTONIC, &time);
  return (int64_t) time.tv_sec * S + time.tv_nsec;
}

static int64_t
find_longest (void)
{
  int64_t end = now () + SPIN, last = now (), longest = 0;

  while (last < end) {
    int64_t time = now ();

    if (time - last > longest)
      longest = time - last;
    last = time;
  }
  return longest;
}

int
main (void)
{
  const struct sched_param first = { .sched_priority = sched_get_priority_max (SCHED_FIFO) };
  long n = sysconf (_SC_NPROCESSORS_ONLN);
  int64_t longest = 0;

  if (sched_setscheduler (0, SCHED_FIFO, &first) < 0) {
    perror ("machine_pauses: real-time priority");
    return 1;
  }
  for (long cpu = 0; cpu < n * ROUNDS; cpu++) {
    cpu_set_t one;
    int64_t pause;

    CPU_ZERO (&one);
    CPU_SET ((unsigned) (cpu % n), &one);
    if (sched_setaffinity (0, sizeof one, &one) < 0)
      continue; // it may not run there
    usleep (REST_US);
    pause = find_longest ();
    if (pause > longest)
      longest = pause;
  }
  printf ("%.1f\n", (double) longest / 1e3);
  return 0;
}
