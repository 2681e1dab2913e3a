// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads bits as they are; bits.h skips the emulation prevention bytes of H.264. A read beyond the
// end sets `from.failed`, and its value is of no use.

#include "bits/bytes.h"

typedef struct {
  WeirBytes from;
  uint8_t byte;
  unsigned left; // bits of `byte` that are not read yet
  size_t n;      // bits read
} WeirPlainBits;

// Starts reading at the first byte that `from` has left.
static inline WeirPlainBits
weir_plain_bits (WeirBytes from)
{
  return (WeirPlainBits) { .from = from };
}

// Reads one bit.
static inline unsigned
weir_plain_bit (WeirPlainBits *b)
{
  if (b->left == 0) {
    weir_bytes_u8 (&b->from, &b->byte);
    b->left = 8;
  }
  b->n++;
  return b->byte >> --b->left & 1;
}

// Reads `n` bits, the highest first, and returns the last 32 of them. Stops at a failure.
static inline uint32_t
weir_plain_bits_u (WeirPlainBits *b, unsigned n)
{
  uint32_t value = 0;

  while (n-- > 0 && !b->from.failed)
    value = value << 1 | weir_plain_bit (b);
  return value;
}
