// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Numbers by which many of the same kind, such as readers, do not act in step: the same seed gives
// the same ones. Nobody is kept from guessing them.

#include <stdint.h>

// Draws a number that is not 0 (xorshift: Marsaglia, "Xorshift RNGs", 2003). `state` begins with
// any seed but 0.
static inline uint32_t
weir_random_draw (uint32_t *state)
{
  *state ^= *state << 13;
  *state ^= *state >> 17;
  *state ^= *state << 5;
  return *state;
}
