// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/clock.h"

#include <time.h>

gint64
clock_now (void)
{
  struct timespec now;

  clock_gettime (CLOCK_MONOTONIC, &now);
  return (gint64) now.tv_sec * G_GINT64_CONSTANT (1000000000) + now.tv_nsec;
}
