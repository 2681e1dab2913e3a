// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The last segment of a broadcast is shorter than its period, so its group is idle at times. If the
// last segments of several titles are sent at the same times, the server sends in bursts (Bradshaw
// et al., section 6.6).

#include <stddef.h>
#include <stdint.h>

// Busy for `busy_ns` from `start_ns` on and from each multiple of `period_ns` after and before it.
typedef struct {
  int64_t start_ns, busy_ns, period_ns;
} WeirPulse;

// Chooses by how many units of `unit_ns` to delay `own`, so that it overlaps least with the
// others. All periods are positive, and no pulse is longer than its period. Returns 0 for the least
// delay, or more, and less than the units in the period of `own`.
uint32_t weir_stagger_choose (
    const WeirPulse *own, const WeirPulse *others, size_t n_others, int64_t unit_ns);
