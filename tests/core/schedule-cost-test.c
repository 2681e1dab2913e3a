// SPDX-License-Identifier: LGPL-2.1-or-later
#include "schedule/scheme.h"
#include "schedule/theory.h"

#include <stdlib.h>

#include "schedulesim.h"
#include "tap.h"

#define MB 1e6
#define HOUR 3600

// The titles of Bradshaw et al., table 1.
static const SimCase tommy = { .length_s = 1200,
  .frames_a_second = 30,
  .bits_a_second = 3e5,
  .arrivals = 2. / 60,
  .warm_s = HOUR,
  .counted_s = 60 * HOUR,
  .rule = WEIR_POLICY_LFU,
  .seed = 1 };
static const SimCase blade2 = { .length_s = 900.9,
  .frames_a_second = 30,
  .bits_a_second = 3e6,
  .arrivals = 5. / 180,
  .warm_s = 4 * HOUR,
  .counted_s = 12 * HOUR,
  .rule = WEIR_POLICY_LFU,
  .seed = 1 };
static const WeirSchemeConfig gdb10 = { .kind = WEIR_SCHEME_GDB, .first = 300 };
static const WeirSchemeConfig patching = { .kind = WEIR_SCHEME_PATCHING };

static SimResult
simulate (SimCase sim, WeirSchemeConfig scheme)
{
  SimResult result = { 0 };

  sim.scheme = scheme;
  CHECK (sim_run (&sim, 1024, &result));
  CHECK_INT (result.refused, 0);
  return result;
}

static void
check_near (const char *name, double got, double expected, double within)
{
  if (fabs (got - expected) > within * expected) {
    printf ("# %s is %g, expected %g within %g %%\n", name, got, expected, 100 * within);
    tap_ok = false;
  }
}

#define CHECK_NEAR(got, expected, within) check_near (#got, got, expected, within)

static double
gdb_streams (const SimCase *sim, double first_s, double cached_s)
{
  WeirSegment segments[WEIR_SEGMENTS_MAX];
  const double fps = sim->frames_a_second;
  const int n = weir_segments_cut (
      WEIR_CUT_GDB, (uint32_t) (sim->length_s * fps), (uint32_t) (first_s * fps), 0, 0, segments);

  return weir_segments_streams (segments, n, (uint32_t) (cached_s * fps));
}

static double
patching_streams (const SimCase *sim, double cached_s)
{
  const double threshold = weir_patching_threshold (sim->length_s, sim->arrivals);

  return weir_patching_streams (sim->length_s, sim->arrivals, threshold, cached_s);
}

// Section 6.4 of the paper: 2.09, 2.32 and 12 Mb/s, with a threshold of 4 minutes.
static void
bandwidths_are_those_of_the_theory_and_of_the_paper (void)
{
  const double gdb = gdb_streams (&tommy, 10, 0) * 3e5;
  const double patches = patching_streams (&tommy, 0) * 3e5;
  WeirSchemeConfig alone = patching;
  SimCase few = tommy;

  CHECK_NEAR (weir_patching_threshold (1200, 2. / 60), 240, 0.0001);
  CHECK_NEAR (gdb, 2.09e6, 0.03);
  CHECK_NEAR (patches, 2.32e6, 0.05);
  CHECK_NEAR (simulate (tommy, gdb10).sent, gdb, 0.03);
  CHECK_NEAR (simulate (tommy, patching).sent, patches, 0.03);
  alone.threshold = 1; // of one frame: hardly a client shares a stream
  few.counted_s = 30 * HOUR;
  CHECK_NEAR (simulate (few, alone).sent, 12e6, 0.03);
}

// The paper's figure 7 has the crossing of its broadcast curve at 0.046 requests a second and
// 25 Mb/s. That is 3-GDB, of 24.5 Mb/s; 10-GDB has 19.3 Mb/s and crosses at 0.030.
static void
patching_costs_more_than_broadcast_above_the_crossing (void)
{
  static const double firsts[] = { 3, 10 }, papers[] = { 24.53e6, 19.27e6 };
  static const double crossings[] = { 0.0462, 0.0300 };

  for (int i = 0; i < 2; i++) {
    const double streams = gdb_streams (&blade2, firsts[i], 0);
    SimCase at = blade2;
    at.arrivals = weir_patching_crossing (blade2.length_s, 0, 0, streams);
    at.counted_s = 50 * HOUR;
    CHECK_NEAR (streams * 3e6, papers[i], 0.001);
    CHECK_NEAR (at.arrivals, crossings[i], 0.01);
    CHECK_NEAR (simulate (at, patching).sent, streams * 3e6, 0.03);
    at.arrivals *= 1.1;
    CHECK (simulate (at, patching).sent > streams * 3e6);
    at.arrivals /= 1.21;
    CHECK (simulate (at, patching).sent < streams * 3e6);
  }
}

static void
a_cache_moves_the_crossing_to_lower_rates (void)
{
  static const double caches[] = { 0, 16 * MB, 32 * MB, 48 * MB, 64 * MB }; // figure 7
  double before = 1;

  for (int i = 0; i < 5; i++) {
    const double cached = caches[i] * 8 / 3e6;
    const double crossing =
        weir_patching_crossing (blade2.length_s, 0, cached, gdb_streams (&blade2, 10, cached));
    const WeirSchemeConfig config = {
      .kind = WEIR_SCHEME_AUTO, .first = 300, .cached = (uint32_t) (cached * 30)
    };
    char why[WEIR_SCHEME_WHY];
    WeirGroupPool pool;
    WeirScheme scheme;
    CHECK (crossing < before);
    before = crossing;
    CHECK_INT (weir_group_pool_init (&pool, 8), 0);
    CHECK_INT (weir_scheme_init (&scheme, &config, 27027, 33333333, &pool, 0, why), 0);
    CHECK_NEAR (scheme.crossing, crossing, 0.01);
    weir_scheme_free (&scheme, 0);
    weir_group_pool_free (&pool);
  }
}

// Section 6.1.1: with 32 MB, 16.27 Mb/s with LRU and 10.14 Mb/s with LFU.
static void
read_loads_with_a_cache_are_those_of_the_paper (void)
{
  SimCase sim = blade2;

  sim.cache = 32 * MB;
  CHECK_NEAR (simulate (sim, gdb10).read, gdb_streams (&sim, 10, 32 * MB * 8 / 3e6) * 3e6, 0.03);
  CHECK (simulate (sim, gdb10).read <= 10.14e6);
  sim.rule = WEIR_POLICY_LRU;
  CHECK_NEAR (simulate (sim, gdb10).read, 16.27e6, 0.01);
}

static void
lfu_reads_no_more_than_lru (void)
{
  uint64_t random = 7;

  for (int i = 0; i < 12; i++) {
    SimCase sim = blade2;
    double lru;
    const WeirSchemeConfig scheme = {
      .kind = (WeirSchemeKind) (sim_random (&random) * WEIR_SCHEME_AUTO),
      .first = (uint32_t) (300 + 1500 * sim_random (&random)),
      .at_once = 3,
    };
    sim.seed = (uint64_t) i;
    sim.length_s = 300 + 900 * sim_random (&random);
    sim.arrivals = 0.002 + 0.08 * sim_random (&random);
    sim.cache = sim.length_s * 3e6 / 8 * sim_random (&random);
    sim.counted_s = 4 * HOUR;
    sim.rule = WEIR_POLICY_LRU;
    lru = simulate (sim, scheme).read;
    sim.rule = WEIR_POLICY_LFU;
    if (simulate (sim, scheme).read > lru) {
      printf ("# %s of %g s, %g clients/s, %g MB: LFU reads %g, LRU %g Mb/s\n",
          weir_scheme_name (scheme.kind), sim.length_s, sim.arrivals, sim.cache / MB,
          simulate (sim, scheme).read / 1e6, lru / 1e6);
      tap_ok = false;
    }
  }
}

static void
ten_thousand_clients_of_a_broadcast_cost_as_much_as_one (void)
{
  SimCase sim = tommy;
  SimResult one, many;

  sim.counted_s = 1000;
  sim.arrivals = 1. / 4600;
  one = simulate (sim, gdb10);
  sim.arrivals = 10000. / 4600;
  many = simulate (sim, gdb10);
  CHECK (one.clients < 5);
  CHECK (many.clients > 9000);
  CHECK (one.sent == many.sent && one.read == many.read && one.channels == many.channels);
}

static void
automatic_costs_no_more_than_the_cheaper_scheme (void)
{
  static const double rates[] = { 0.003, 0.015, 0.06, 1 };

  for (int i = 0; i < 4; i++) {
    SimCase sim = blade2;
    double cheaper;
    sim.arrivals = rates[i];
    sim.counted_s = fmin (1, 0.05 / rates[i]) * 60 * HOUR;
    cheaper = 3e6 * fmin (gdb_streams (&sim, 10, 0), patching_streams (&sim, 0));
    CHECK_NEAR (simulate (sim, (WeirSchemeConfig) { .kind = WEIR_SCHEME_AUTO, .first = 300 }).sent,
        cheaper, 0.05);
  }
}

// Counts the changes of scheme over 20 hours at a rate.
static int
changes (double rate)
{
  static WeirReception reception;
  uint64_t random = 99;
  char why[WEIR_SCHEME_WHY];
  WeirGroupPool pool;
  WeirScheme scheme;
  bool before = false;
  int n = 0;

  CHECK_INT (weir_group_pool_init (&pool, 64), 0);
  CHECK_INT (
      weir_scheme_init (&scheme, &(WeirSchemeConfig) { .kind = WEIR_SCHEME_AUTO, .first = 300 },
          27027, 33333333, &pool, 0, why),
      0);
  for (int64_t now = 0; now < 20 * HOUR * SIM_SECOND; now += sim_gap_ns (rate, &random)) {
    CHECK_INT (weir_scheme_admit (&scheme, now, &reception, why), 0);
    weir_scheme_advance (&scheme, now);
    n += scheme.broadcasting != before;
    before = scheme.broadcasting;
  }
  weir_scheme_free (&scheme, 20 * HOUR * SIM_SECOND);
  weir_group_pool_free (&pool);
  return n;
}

static void
automatic_does_not_change_back_and_forth (void)
{
  CHECK_INT (changes (0.015), 0);
  CHECK_INT (changes (0.06), 1);
  CHECK (changes (0.0300) <= 20); // of about 2000 arrivals, at the crossing itself
}

int
main (void)
{
  RUN (bandwidths_are_those_of_the_theory_and_of_the_paper);
  RUN (patching_costs_more_than_broadcast_above_the_crossing);
  RUN (a_cache_moves_the_crossing_to_lower_rates);
  RUN (read_loads_with_a_cache_are_those_of_the_paper);
  RUN (lfu_reads_no_more_than_lru);
  RUN (ten_thousand_clients_of_a_broadcast_cost_as_much_as_one);
  RUN (automatic_costs_no_more_than_the_cheaper_scheme);
  RUN (automatic_does_not_change_back_and_forth);
  return tap_done ();
}
