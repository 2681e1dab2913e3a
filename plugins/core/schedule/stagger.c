// SPDX-License-Identifier: LGPL-2.1-or-later
#include "schedule/stagger.h"

#define TRIED_MAX 256 // delays
#define PERIODS 8     // of `own` over which pulses of other periods are compared
#define PULSES_MAX 4096

static int64_t
modulo (int64_t value, int64_t period)
{
  const int64_t rest = value % period;

  return rest < 0 ? rest + period : rest;
}

// Returns for how long a pulse is busy from time 0 to `at_ns`, with a pulse that starts at
// `start_ns`, 0 to less than its period.
static int64_t
busy_until (const WeirPulse *pulse, int64_t start_ns, int64_t at_ns)
{
  // The pulse before may reach past time 0.
  const int64_t before = start_ns + pulse->busy_ns - pulse->period_ns;
  int64_t busy = 0, rest;

  if (before > 0)
    busy += at_ns < before ? at_ns : before;
  if (at_ns <= start_ns)
    return busy;
  busy += (at_ns - start_ns) / pulse->period_ns * pulse->busy_ns;
  rest = (at_ns - start_ns) % pulse->period_ns;
  return busy + (rest < pulse->busy_ns ? rest : pulse->busy_ns);
}

// Returns the mean time in common of a period of `own`.
static double
overlap (const WeirPulse *own, int64_t delay_ns, const WeirPulse *other)
{
  // Whole periods of the other one, if it is a multiple of its own.
  const int64_t times = (other->period_ns - 1) / own->period_ns + 1;
  int64_t common = 0, n = own->period_ns == other->period_ns ? 1 : PERIODS * times;

  if (n > PULSES_MAX)
    n = PULSES_MAX;
  for (int64_t i = 0; i < n; i++) {
    const int64_t from =
        modulo (own->start_ns + delay_ns + i * own->period_ns - other->start_ns, other->period_ns);
    common += busy_until (other, 0, from + own->busy_ns) - busy_until (other, 0, from);
  }
  return (double) common / (double) n;
}

uint32_t
weir_stagger_choose (
    const WeirPulse *own, const WeirPulse *others, size_t n_others, int64_t unit_ns)
{
  const int64_t units = own->period_ns / unit_ns;
  const int64_t step = (units - 1) / TRIED_MAX + 1;
  int64_t best = 0;
  double least = 0;

  for (int64_t delay = 0; delay < units; delay += step) {
    double common = 0;
    for (size_t i = 0; i < n_others; i++)
      common += overlap (own, delay * unit_ns, &others[i]);
    if (delay == 0 || common < least) {
      least = common;
      best = delay;
    }
  }
  return (uint32_t) best;
}
