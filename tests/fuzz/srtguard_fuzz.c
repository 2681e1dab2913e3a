// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the filter of the SRT port: the kernel must pass a datagram exactly if a plain reader of
// the same rule takes it.

#include "fuzz.h"
#include "srtguard.h"

static int pair[2];

int
LLVMFuzzerInitialize (int *argc, char ***argv)
{
  require (srt_filtered_pair (pair));
  return 0;
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  if (size <= SRT_DATAGRAM_MAX)
    require (srt_pair_passes (pair, data, size) == srt_datagram_fits (data, size));
  return 0;
}
