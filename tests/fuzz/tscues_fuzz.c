// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the reader of cues in transport streams, and the one of single cues.

#include <errno.h>

#include "codec/tscues.h"
#include "fuzz.h"

static void
check (void *data, const WeirCue *cue)
{
  require (cue->delay >= 0 && cue->duration >= 0);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  WeirTsCues *cues = calloc (1, sizeof *cues);
  WeirScte35 cue;
  int result = weir_scte35_read (data, size, &cue);

  require (result == 0 || result == -EINVAL || result == -ENOTSUP);
  require (cue.time < WEIR_SCTE35_TIMES && cue.duration < WEIR_SCTE35_TIMES);
  weir_ts_cues_take (cues, data, size / 3, check, NULL);
  weir_ts_cues_take (cues, data + size / 3, size - size / 3, check, NULL);
  free (cues);
  return 0;
}
