// SPDX-License-Identifier: LGPL-2.1-or-later
// Simulates a server that sends a title by a scheme, for ./dev bench broadcast.
//
// schedule_bench SCHEME FIRST LENGTH RATE ARRIVALS POLICY CACHE HOURS
//   FIRST and LENGTH in s, RATE in bits/s, ARRIVALS in clients/s, POLICY lru or lfu, CACHE in bytes
//   SCHEME is one of schedule/scheme.h, or unicast
//   prints the means sent and read and the most sent in a second, and the means by the theory, in
//   bits/s (-1: no formula); then the seconds by 100 kb/s sent, and by 100 kb/s read
// schedule_bench TITLES together|staggered
//   3-GDB of titles of 900.9 s and 3 Mb/s; prints the mean and the most sent in a second, and the
//   seconds with more than 110 % of the mean in 10,000

#include <stdlib.h>
#include <string.h>

#include "schedule/theory.h"
#include "schedulesim.h"

#define FPS 30
#define TITLES_MAX 64

static double
theory (const SimCase *sim, bool unicast, double cached_s)
{
  const double length = sim->length_s, rate = sim->arrivals;
  WeirSegment segments[WEIR_SEGMENTS_MAX];
  int n;

  if (unicast)
    return cached_s > 0 ? -1 : length * rate * sim->bits_a_second;
  if (sim->rule != WEIR_POLICY_LFU && sim->cache > 0)
    return -1;
  if (sim->scheme.kind == WEIR_SCHEME_PATCHING)
    return sim->bits_a_second
           * weir_patching_streams (length, rate, weir_patching_threshold (length, rate), cached_s);
  if (sim->scheme.kind != WEIR_SCHEME_GDB)
    return -1;
  n = weir_segments_cut (
      WEIR_CUT_GDB, (uint32_t) (length * FPS), sim->scheme.first, 0, 0, segments);
  return sim->bits_a_second * weir_segments_streams (segments, n, (uint32_t) (cached_s * FPS));
}

static void
print_bins (const uint64_t bins[SIM_BINS])
{
  for (int i = 0; i < SIM_BINS; i++)
    printf ("%llu ", (unsigned long long) bins[i]);
  printf ("\n");
}

static int
run_scheme (char **args)
{
  const bool unicast = strcmp (args[0], "unicast") == 0;
  const int kind = unicast ? WEIR_SCHEME_PATCHING : weir_scheme_kind (args[0]);
  SimCase sim = {
    .scheme = { .first = (uint32_t) (atof (args[1]) * FPS), .at_once = 3, .threshold = unicast },
    .length_s = atof (args[2]),
    .frames_a_second = FPS,
    .bits_a_second = atof (args[3]),
    .arrivals = atof (args[4]),
    .warm_s = 4 * 3600,
    .counted_s = atof (args[7]) * 3600,
    .rule = strcmp (args[5], "lru") ? WEIR_POLICY_LFU : WEIR_POLICY_LRU,
    .cache = atof (args[6]),
    .seed = 1,
  };
  SimResult result;

  if (kind < 0)
    return 2;
  sim.scheme.kind = (WeirSchemeKind) kind;
  if (!sim_run (&sim, 4096, &result) || result.refused > 0)
    return 1;
  printf ("%g %g %g %g %g\n", result.sent, result.read, result.most, theory (&sim, unicast, 0),
      theory (&sim, unicast, sim.cache * 8 / sim.bits_a_second));
  print_bins (result.sent_bins);
  print_bins (result.read_bins);
  return 0;
}

static void
count_frames (void *data, const WeirChannel *channel, uint32_t from, uint32_t to, int64_t at_ns)
{
  (void) at_ns;
  (void) channel;
  *(uint32_t *) data += to - from;
}

static int
run_titles (int n, bool staggered)
{
  const int64_t frame_ns = SIM_SECOND / FPS, seconds = 10 * 768;
  static WeirScheme schemes[TITLES_MAX];
  WeirPulse pulses[TITLES_MAX];
  uint64_t bins[SIM_BINS * 8] = { 0 }, above = 0;
  uint32_t most = 0;
  double sum = 0;
  char why[WEIR_SCHEME_WHY];
  WeirGroupPool pool;

  if (n < 1 || n > TITLES_MAX || weir_group_pool_init (&pool, 9 * TITLES_MAX) < 0)
    return 2;
  for (int i = 0; i < n; i++) {
    WeirSchemeConfig config = { .kind = WEIR_SCHEME_GDB, .first = 3 * FPS };
    weir_scheme_pulse (&config, 27027, frame_ns, &pulses[i]);
    if (staggered)
      config.delay =
          config.first
          * weir_stagger_choose (&pulses[i], pulses, (size_t) i, config.first * frame_ns);
    weir_scheme_pulse (&config, 27027, frame_ns, &pulses[i]);
    if (weir_scheme_init (&schemes[i], &config, 27027, frame_ns, &pool, 0, why) < 0)
      return 1;
  }
  for (int64_t second = 768; second < 768 + seconds; second++) {
    uint32_t frames = 0;
    for (int i = 0; i < n; i++)
      weir_transmission_due (&schemes[i].transmission, second * SIM_SECOND,
          (second + 1) * SIM_SECOND, 0, count_frames, &frames);
    sum += frames;
    most = frames > most ? frames : most;
    bins[frames / FPS < SIM_BINS * 8 ? frames / FPS : SIM_BINS * 8 - 1]++;
  }
  for (uint32_t i = 0; i < SIM_BINS * 8; i++)
    above += i > 1.1 * sum / (double) seconds / FPS ? bins[i] : 0;
  printf ("%g %g %g\n", sum / (double) seconds * 1e5, most * 1e5,
      1e4 * (double) above / (double) seconds);
  for (int i = 0; i < n; i++)
    weir_scheme_free (&schemes[i], 0);
  weir_group_pool_free (&pool);
  return 0;
}

int
main (int argc, char **argv)
{
  if (argc == 3)
    return run_titles (atoi (argv[1]), strcmp (argv[2], "staggered") == 0);
  return argc == 9 ? run_scheme (argv + 1) : 2;
}
