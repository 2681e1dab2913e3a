// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Limits the rate at which the kernel sends from a socket (SO_MAX_PACING_RATE). TCP obeys by
// itself; UDP only with the queueing discipline fq, which limits the rate to each destination.

#include <stdint.h>

// Sets the limit in bits per second; 0 removes it. It is a hint: sockets without the option are
// left unchanged.
void weir_set_max_pacing_rate (int fd, uint64_t bits_per_s);
