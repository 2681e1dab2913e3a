// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <stdbool.h>

// Why a packet that was due to a reader was not sent.
typedef enum {
  WEIR_DROP_WOULD_BLOCK, // the socket buffer stayed full for longer than a packet may wait
  WEIR_DROP_NO_BUFFERS,  // the kernel had no memory, or the device queue was full
  WEIR_DROP_TOO_BIG,     // larger than the path MTU allows
  WEIR_DROP_ERROR,       // refused, unreachable, not permitted, or no socket of the address family
  WEIR_DROP_FLUSHED,     // dropped because the owner stopped
  WEIR_DROP_OVERRUN,     // the reader fell behind the window
  WEIR_DROP_THINNED,     // left out because the reader lags
  WEIR_DROP_CATCH_UP,    // discardable, and the reader was catching up
  WEIR_DROP_LAYERS,      // above the reader's layers, or of no use to them
  WEIR_N_DROPS
} WeirDrop;

// Reports whether the reason is a failure to send; the other packets are left out on purpose.
bool weir_drop_is_loss (WeirDrop reason);

// Returns the reason's name in statistics, such as "would-block".
const char *weir_drop_name (WeirDrop reason);
