// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <stdbool.h>

// Why a packet that was due to a reader was not sent.
typedef enum {
  WEIR_DROP_WOULD_BLOCK, // the socket's buffer stayed full for longer than a packet may wait
  WEIR_DROP_NO_BUFFERS,  // the kernel had no memory for it, or the device's queue is full
  WEIR_DROP_TOO_BIG,     // larger than the path takes
  WEIR_DROP_ERROR,       // refused, unreachable, not permitted, no socket of that family
  WEIR_DROP_FLUSHED,     // thrown away because the owner stopped
  WEIR_DROP_OVERRUN,     // the reader fell out of the window
  WEIR_DROP_THINNED,     // left out because the reader lags
  WEIR_DROP_CATCH_UP,    // discardable, left out while the reader caught up
  WEIR_DROP_LAYERS,      // above the layers that the reader wants, or of no use to them
  WEIR_N_DROPS
} WeirDrop;

// Did the system not take it? Else it was left out on purpose.
bool weir_drop_is_loss (WeirDrop reason);

// The reason's name as statistics show it: "would-block", ...
const char *weir_drop_name (WeirDrop reason);
