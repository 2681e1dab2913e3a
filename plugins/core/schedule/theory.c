// SPDX-License-Identifier: LGPL-2.1-or-later
#include "schedule/theory.h"

#include <math.h>

#define RATE_MAX 1e6 // clients a second
#define HALVINGS 100

double
weir_patching_threshold (double length, double rate)
{
  const double threshold = rate > 0 ? (sqrt (2 * length * rate + 1) - 1) / rate : length;

  return threshold < length ? threshold : length;
}

double
weir_patching_streams (double length, double rate, double threshold, double cached)
{
  const double stream = cached < length ? length - cached : 0;
  const double patch = cached < threshold ? threshold - cached : 0;

  if (rate <= 0)
    return 0;
  return (stream + rate * patch * patch / 2) / (threshold + 1 / rate);
}

double
weir_patching_crossing (double length, double threshold, double cached, double streams)
{
  double low = 0, high = RATE_MAX;

  for (int i = 0; i < HALVINGS; i++) {
    const double rate = (low + high) / 2;
    const double used = threshold > 0 ? threshold : weir_patching_threshold (length, rate);
    if (weir_patching_streams (length, rate, used, cached) < streams)
      low = rate;
    else
      high = rate;
  }
  return low;
}
