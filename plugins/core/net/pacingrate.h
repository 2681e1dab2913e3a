// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The most that the kernel sends from a socket per second (SO_MAX_PACING_RATE). TCP keeps to it by
// itself; of UDP only the queueing discipline fq does, to each destination.

#include <stdint.h>

// 0: as much as there is. A socket that knows no such thing stays as it is: this is a hint.
void weir_set_max_pacing_rate (int fd, uint64_t bits_per_s);
