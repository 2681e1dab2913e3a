// SPDX-License-Identifier: LGPL-2.1-or-later
#include "net/drops.h"

const char *
weir_drop_name (WeirDrop reason)
{
  static const char *const names[WEIR_N_DROPS] = {
    [WEIR_DROP_WOULD_BLOCK] = "would-block",
    [WEIR_DROP_NO_BUFFERS] = "no-buffers",
    [WEIR_DROP_TOO_BIG] = "too-big",
    [WEIR_DROP_ERROR] = "error",
    [WEIR_DROP_FLUSHED] = "flushed",
    [WEIR_DROP_OVERRUN] = "overrun",
    [WEIR_DROP_THINNED] = "thinned",
    [WEIR_DROP_CATCH_UP] = "catch-up",
    [WEIR_DROP_LAYERS] = "layers",
  };

  return (unsigned) reason < WEIR_N_DROPS ? names[reason] : "unknown";
}

bool
weir_drop_is_loss (WeirDrop reason)
{
  switch (reason) {
    case WEIR_DROP_WOULD_BLOCK:
    case WEIR_DROP_NO_BUFFERS:
    case WEIR_DROP_TOO_BIG:
    case WEIR_DROP_ERROR:
      return true;
    case WEIR_DROP_FLUSHED:
    case WEIR_DROP_OVERRUN:
    case WEIR_DROP_THINNED:
    case WEIR_DROP_CATCH_UP:
    case WEIR_DROP_LAYERS:
    case WEIR_N_DROPS:
      break;
  }
  return false;
}
