// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "arrivals.h"

#include <math.h>

#define SECOND G_GINT64_CONSTANT (1000000000)

gdouble
arrivals_draw_exponential (GRand *random, gdouble mean)
{
  return mean * -log (1 - g_rand_double (random));
}

gint64
arrivals_draw_gap (const Options *options, GRand *random)
{
  switch (options->arrivals) {
    case ARRIVALS_UNIFORM:
      return (gint64) (SECOND / options->rate);
    case ARRIVALS_POISSON:
      return (gint64) (SECOND * arrivals_draw_exponential (random, 1 / options->rate));
    default:
      return 0;
  }
}
