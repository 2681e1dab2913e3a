// SPDX-License-Identifier: LGPL-2.1-or-later
// Runs a fuzz target without libFuzzer: on a seed, on its prefixes of up to 3999 bytes, and on
// 20000 copies with changed bytes. The copies are the same in every run.

#include <stdint.h>
#include <stdlib.h>

#include "fuzz.h"
#include "tap.h"

#define MAX_SEED 65536
#define CHANGED_COPIES 20000

static uint8_t seed[MAX_SEED], copy[MAX_SEED];
static size_t seed_len;
static uint32_t state;

static uint32_t
draw (uint32_t below)
{
  state = state * 1664525u + 1013904223u;
  return (uint32_t) ((uint64_t) state * below >> 32);
}

static void
the_seed_is_read (void)
{
  CHECK (seed_len > 0);
  LLVMFuzzerTestOneInput (seed, seed_len);
}

static void
every_prefix_is_read (void)
{
  for (size_t len = 0; len < seed_len && len < 4000; len++)
    LLVMFuzzerTestOneInput (seed, len);
}

static void
copies_with_changed_bytes_are_read (void)
{
  state = 1;
  for (int i = 0; i < CHANGED_COPIES && seed_len > 0; i++) {
    // A copy begins where the seed begins, because the middle of a seed is not a valid input.
    size_t len = 1 + draw ((uint32_t) (seed_len < 3000 ? seed_len : 3000));

    memcpy (copy, seed, len);
    for (uint32_t n = 1 + draw (8); n > 0; n--)
      copy[draw ((uint32_t) len)] = (uint8_t) draw (256);
    LLVMFuzzerTestOneInput (copy, len);
  }
}

int
main (int argc, char **argv)
{
  FILE *f = argc > 1 ? fopen (argv[1], "rb") : NULL;

  if (!f) {
    fprintf (stderr, "usage: %s SEED; cannot read the seed\n", argv[0]);
    return 2;
  }
  seed_len = fread (seed, 1, sizeof seed, f);
  fclose (f);
  RUN (the_seed_is_read);
  RUN (every_prefix_is_read);
  RUN (copies_with_changed_bytes_are_read);
  return tap_done ();
}
