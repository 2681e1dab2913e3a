// SPDX-License-Identifier: LGPL-2.1-or-later
#include "net/clones.h"

const char *
weir_clones_name (WeirClones clones)
{
  static const char *const names[WEIR_N_CLONES] = {
    [WEIR_CLONES_SENT] = "clones",
    [WEIR_CLONES_UNFIT] = "unfit",
    [WEIR_CLONES_ALONE] = "alone",
    [WEIR_CLONES_UNKNOWN] = "unknown",
    [WEIR_CLONES_ROUTE] = "route",
    [WEIR_CLONES_NEIGHBOUR] = "neighbour",
    [WEIR_CLONES_DEVICE] = "device",
    [WEIR_CLONES_SEGMENTS] = "segmentation",
    [WEIR_CLONES_RULES] = "rules",
    [WEIR_CLONES_FULL] = "queue-full",
    [WEIR_CLONES_FAILED] = "failed",
  };

  return (unsigned) clones < WEIR_N_CLONES ? names[clones] : "unknown";
}
