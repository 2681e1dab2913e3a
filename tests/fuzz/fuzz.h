// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

// Called once before the first input.
int LLVMFuzzerInitialize (int *argc, char ***argv);

// Ends the process if a promise of the code under test does not hold.
#define require(condition)                                                                         \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf (stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                   \
      abort ();                                                                                    \
    }                                                                                              \
  } while (0)
