// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "net/steps.h"

// Approximate rates of a stream with 3 x 3 layers.
static const WeirStep ladder[] = {
  { WEIR_STEP_KEYFRAMES, { 0, 0, 0 }, 30000 },
  { WEIR_STEP_LAYERS, { 0, 0, 0 }, 90000 },
  { WEIR_STEP_LAYERS, { 0, 1, 0 }, 160000 },
  { WEIR_STEP_LAYERS, { 0, 2, 0 }, 220000 },
  { WEIR_STEP_LAYERS, { 1, 0, 0 }, 370000 },
  { WEIR_STEP_LAYERS, { 1, 1, 0 }, 620000 },
  { WEIR_STEP_LAYERS, { 1, 2, 0 }, 880000 },
  { WEIR_STEP_LAYERS, { 2, 0, 0 }, 1200000 },
  { WEIR_STEP_LAYERS, { 2, 1, 0 }, 2050000 },
  { WEIR_STEP_LAYERS, { -1, -1, -1 }, 2900000 },
};
