// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A minimal Test Anything Protocol for tests in plain C: prints one line for each test function,
// and the checks in it that failed.

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int tap_n, tap_failures;
static bool tap_ok;

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      printf ("# %s:%d: %s\n", __FILE__, __LINE__, #condition);                                    \
      tap_ok = false;                                                                              \
    }                                                                                              \
  } while (0)

#define CHECK_INT(got, expected)                                                                   \
  do {                                                                                             \
    long long tap_got = (long long) (got), tap_expected = (long long) (expected);                  \
    if (tap_got != tap_expected) {                                                                 \
      printf ("# %s:%d: %s is %lld, expected %lld\n", __FILE__, __LINE__, #got, tap_got,           \
          tap_expected);                                                                           \
      tap_ok = false;                                                                              \
    }                                                                                              \
  } while (0)

static inline void
tap_run (const char *name, void (*test) (void))
{
  tap_ok = true;
  test ();
  tap_failures += !tap_ok;
  printf ("%s %d - %s\n", tap_ok ? "ok" : "not ok", ++tap_n, name);
  fflush (stdout);
}

#define RUN(test) tap_run (#test, test)

static inline int
tap_done (void)
{
  printf ("1..%d\n", tap_n);
  return tap_failures != 0;
}
