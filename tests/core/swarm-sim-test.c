// SPDX-License-Identifier: LGPL-2.1-or-later
// WEIR_SWARM_VIEWERS sets the number of viewers (default 100).
#include "swarmsim.h"
#include "tap.h"

static unsigned n_viewers = 100;

// Viewers of half an hour within two, like the 300 of an hour within four of Choe 2007,
// section 5.2.
static SimResult
simulate (WeirPicker picker, double upload, SimLeave leave, SimArrivals arrivals, double storage)
{
  const unsigned n = n_viewers;
  const SimCase sim = { .picker = picker,
    .leave = leave,
    .arrivals = arrivals,
    .n_viewers = n,
    .gap_s = 5400.0 / n,
    .length_s = 1800,
    .n_pieces = 400,
    .upload = upload,
    .window_s = 450,
    .spread_s = 300,
    .storage = storage,
    .seed = 1 };
  SimResult result;

  CHECK (sim_run (&sim, &result));
  printf ("# %4u viewers, %-8s upload %.2f, leaving %d, arrivals %d, storage %.2f: saved %.1f %%, "
          "twice %.1f %%\n",
      n, weir_picker_name (picker), upload, leave, arrivals, storage, 100 * result.saved,
      100 * result.wasted);
  CHECK_INT (result.late, 0);
  CHECK_INT (result.too_late, 0);
  CHECK_INT (result.played, n);
  return result;
}

static void
adaptive_saves_as_much_as_the_best_picker (void)
{
  static const double uploads[] = { 1, 0.75, 0.5 };

  for (size_t i = 0; i < sizeof uploads / sizeof *uploads; i++) {
    double best = 0;
    SimResult adaptive;
    for (int picker = 0; picker < WEIR_PICKER_ADAPTIVE; picker++)
      best =
          fmax (best, simulate ((WeirPicker) picker, uploads[i], SIM_STREAM, SIM_UNIFORM, 1).saved);
    adaptive = simulate (WEIR_PICKER_ADAPTIVE, uploads[i], SIM_STREAM, SIM_UNIFORM, 1);
    CHECK (adaptive.saved >= best - 0.005);
    CHECK (adaptive.saved <= uploads[i]); // what the viewers can send
    CHECK (adaptive.wasted < 0.03);
  }
}

static void
adaptive_saves_what_was_published_for_hybrid (void)
{
  CHECK (simulate (WEIR_PICKER_ADAPTIVE, 1, SIM_STREAM, SIM_UNIFORM, 1).saved >= 0.80);
  CHECK (simulate (WEIR_PICKER_ADAPTIVE, 0.5, SIM_STREAM, SIM_UNIFORM, 1).saved >= 0.47);
  CHECK (simulate (WEIR_PICKER_ADAPTIVE, 1, SIM_SEED, SIM_UNIFORM, 1).saved >= 0.90);
  CHECK (simulate (WEIR_PICKER_ADAPTIVE, 0.5, SIM_SEED, SIM_UNIFORM, 1).saved >= 0.71);
}

static void
viewers_who_start_together_save_nearly_as_much (void)
{
  const double uniform = simulate (WEIR_PICKER_ADAPTIVE, 1, SIM_STREAM, SIM_UNIFORM, 1).saved;

  CHECK (simulate (WEIR_PICKER_ADAPTIVE, 1, SIM_STREAM, SIM_TOGETHER, 1).saved >= 0.9 * uniform);
  CHECK (simulate (WEIR_PICKER_ADAPTIVE, 1, SIM_STREAM, SIM_POISSON, 1).saved >= 0.9 * uniform);
}

static void
a_small_storage_saves_nearly_as_much_and_stops_nobody (void)
{
  const double all = simulate (WEIR_PICKER_ADAPTIVE, 1, SIM_STREAM, SIM_UNIFORM, 1).saved;
  const double half = simulate (WEIR_PICKER_ADAPTIVE, 1, SIM_STREAM, SIM_UNIFORM, 0.5).saved;
  const double quarter = simulate (WEIR_PICKER_ADAPTIVE, 1, SIM_STREAM, SIM_UNIFORM, 0.25).saved;

  CHECK (half >= all - 0.02 && quarter >= all - 0.02);
  // Three pieces are too few to help, and must not cost.
  CHECK (simulate (WEIR_PICKER_ADAPTIVE, 1, SIM_STREAM, SIM_TOGETHER, 0.0076).saved >= 0);
}

int
main (void)
{
  const char *viewers = getenv ("WEIR_SWARM_VIEWERS");

  if (viewers)
    n_viewers = (unsigned) atoi (viewers);
  RUN (adaptive_saves_as_much_as_the_best_picker);
  RUN (adaptive_saves_what_was_published_for_hybrid);
  RUN (viewers_who_start_together_save_nearly_as_much);
  RUN (a_small_storage_saves_nearly_as_much_and_stops_nobody);
  return tap_done ();
}
