// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Numbers as AV1 writes them (leb128): seven bits a byte, the lowest first.

#include "bits/bytes.h"

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
