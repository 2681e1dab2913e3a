// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the variable-length numbers of AV1, leb128() (AV1 bitstream specification, 4.10.5): seven
// bits a byte, the lowest first.

#include "bits/bytes.h"

// Returns false for a number that is cut short or longer than 8 bytes; the cursor is failed then.
static inline bool
weir_leb128 (WeirBytes *b, uint64_t *out)
{
  uint8_t byte;

  *out = 0;
  for (unsigned shift = 0; shift < 56; shift += 7) {
    if (!weir_bytes_u8 (b, &byte))
      return false;
    *out |= (uint64_t) (byte & 127) << shift;
    if (!(byte & 128))
      return true;
  }
  b->failed = true;
  return false;
}
