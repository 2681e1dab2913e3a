// SPDX-License-Identifier: LGPL-2.1-or-later
// Runs a fuzz target without libFuzzer: on every file of a folder, on the prefixes of each of up to
// 3999 bytes, and on 20000 copies in all with changed bytes. The copies are the same in every run.

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>

#include "fuzz.h"
#include "tap.h"

#define MAX_SEED 65536
#define MAX_SEEDS 256
#define CHANGED_COPIES 20000

typedef struct {
  uint8_t *data;
  size_t len;
} Seed;

static Seed seeds[MAX_SEEDS];
static size_t n_seeds;
static uint32_t state;

// A target has this function only if it needs it.
__attribute__ ((weak)) int
LLVMFuzzerInitialize (int *argc, char ***argv)
{
  return 0;
}

static uint32_t
draw (uint32_t below)
{
  state = state * 1664525u + 1013904223u;
  return (uint32_t) ((uint64_t) state * below >> 32);
}

// Runs the target on a block of exactly `len` bytes, so that a sanitizer sees a read past its end.
static void
run_copy (const uint8_t *data, size_t len, uint32_t changes)
{
  uint8_t *copy = malloc (len ? len : 1);

  require (copy != NULL);
  memcpy (copy, data, len);
  for (uint32_t n = changes; n > 0 && len > 0; n--)
    copy[draw ((uint32_t) len)] = (uint8_t) draw (256);
  LLVMFuzzerTestOneInput (copy, len);
  free (copy);
}

static void
the_corpus_is_read (void)
{
  CHECK (n_seeds > 0);
  for (size_t i = 0; i < n_seeds; i++)
    run_copy (seeds[i].data, seeds[i].len, 0);
}

static void
every_prefix_is_read (void)
{
  for (size_t i = 0; i < n_seeds; i++) {
    for (size_t len = 0; len < seeds[i].len && len < 4000; len++)
      run_copy (seeds[i].data, len, 0);
  }
}

static void
copies_with_changed_bytes_are_read (void)
{
  state = 1;
  for (size_t i = 0; i < CHANGED_COPIES && n_seeds > 0; i++) {
    const Seed *seed = &seeds[i % n_seeds];

    // A copy begins where the seed begins, because the middle of a seed is not a valid input.
    if (seed->len > 0)
      run_copy (
          seed->data, 1 + draw ((uint32_t) (seed->len < 3000 ? seed->len : 3000)), 1 + draw (8));
  }
}

static int
is_shown (const struct dirent *entry)
{
  return entry->d_name[0] != '.';
}

static bool
read_seed (const char *folder, const char *name)
{
  char path[PATH_MAX];
  Seed *seed = &seeds[n_seeds++];
  FILE *f;

  snprintf (path, sizeof path, "%s/%s", folder, name);
  f = fopen (path, "rb");
  seed->data = malloc (MAX_SEED);
  if (!f || !seed->data)
    return false;
  seed->len = fread (seed->data, 1, MAX_SEED, f);
  fclose (f);
  return true;
}

int
main (int argc, char **argv)
{
  struct dirent **names = NULL;
  int n = argc > 1 ? scandir (argv[1], &names, is_shown, alphasort) : -1;
  bool ok = n > 0 && n <= MAX_SEEDS;

  for (int i = 0; i < n; i++) {
    ok = ok && read_seed (argv[1], names[i]->d_name);
    free (names[i]);
  }
  free (names);
  if (!ok) {
    fprintf (stderr, "usage: %s FOLDER; cannot read the 1 to %d files there\n", argv[0], MAX_SEEDS);
    return 2;
  }
  LLVMFuzzerInitialize (&argc, &argv);
  RUN (the_corpus_is_read);
  RUN (every_prefix_is_read);
  RUN (copies_with_changed_bytes_are_read);
  for (size_t i = 0; i < n_seeds; i++)
    free (seeds[i].data);
  return tap_done ();
}
