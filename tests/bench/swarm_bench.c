// SPDX-License-Identifier: LGPL-2.1-or-later
// Simulates viewers of a title of 1 hour who help each other, for ./dev bench swarm.
//
// swarm_bench PICKER UPLOAD LEAVING ARRIVALS VIEWERS GAP WINDOW SPREAD STORAGE CHOKING SOURCE
// PIECES
//     SEED
//   UPLOAD in rates of the title; LEAVING download, stream or seed; ARRIVALS uniform, poisson or
//   together; GAP between arrivals, WINDOW and SPREAD in s; STORAGE as a share of the title;
//   CHOKING tit-for-tat or blind; SOURCE the upload of a seed beside the origin, in rates of the
//   title; PIECES of the title; SEED of random numbers, above 0
//   prints the shares of saved traffic and of traffic that came twice, and the pieces that were
//   late

#include "swarmsim.h"

#include <stdio.h>

static int
find (const char *name, const char *const *names, int n)
{
  for (int i = 0; i < n; i++) {
    if (strcmp (name, names[i]) == 0)
      return i;
  }
  return -1;
}

int
main (int argc, char **argv)
{
  static const char *const leaving[] = { "download", "stream", "seed" };
  static const char *const arrivals[] = { "uniform", "poisson", "together" };
  SimCase sim = { .length_s = 3600 };
  SimResult result;
  int picker, leave, come;

  if (argc != 14)
    return 2;
  picker = weir_picker_find (argv[1]);
  leave = find (argv[3], leaving, 3);
  come = find (argv[4], arrivals, 3);
  if (picker < 0 || leave < 0 || come < 0)
    return 2;
  sim.picker = (WeirPicker) picker;
  sim.upload = atof (argv[2]);
  sim.leave = (SimLeave) leave;
  sim.arrivals = (SimArrivals) come;
  sim.n_viewers = (unsigned) atoi (argv[5]);
  sim.gap_s = atof (argv[6]);
  sim.window_s = atof (argv[7]);
  sim.spread_s = atof (argv[8]);
  sim.storage = atof (argv[9]);
  sim.blind = strcmp (argv[10], "blind") == 0;
  sim.seed_upload = atof (argv[11]);
  sim.n_pieces = (uint32_t) atoi (argv[12]);
  sim.seed = strtoull (argv[13], NULL, 10);
  if (!sim_run (&sim, &result))
    return 1;
  printf ("%g %g %llu\n", result.saved, result.wasted, (unsigned long long) result.late);
  return 0;
}
