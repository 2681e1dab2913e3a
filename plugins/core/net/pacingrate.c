// SPDX-License-Identifier: LGPL-2.1-or-later
#include "net/pacingrate.h"

#include <limits.h>
#include <sys/socket.h>

// The kernel's unit is bytes per second in a long; ULONG_MAX means no limit, and 0 would stop
// sending.
static unsigned long
to_kernel (uint64_t bits_per_s)
{
  uint64_t bytes = bits_per_s / 8;

  if (bits_per_s == 0 || bytes > ULONG_MAX)
    return ULONG_MAX;
  return bytes > 0 ? (unsigned long) bytes : 1;
}

void
weir_set_max_pacing_rate (int fd, uint64_t bits_per_s)
{
  unsigned long rate = to_kernel (bits_per_s);

  setsockopt (fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate);
}
