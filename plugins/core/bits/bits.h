// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads and writes the bits of an H.264 NAL unit. Reading skips emulation prevention bytes (the 3
// in 0 0 3; ITU-T H.264, 7.4.1.1) and writing inserts them. A read beyond the end returns 0 and
// sets `from.failed`; a write beyond `size` bytes sets `failed`.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bits/bytes.h"

typedef struct {
  WeirBytes from;
  unsigned zeros; // zero bytes in a row up to and including `byte`
  uint8_t byte;
  unsigned left; // bits of `byte` that are not read yet
} WeirBits;

// Starts reading at the first byte that `from` has left.
static inline WeirBits
weir_bits (WeirBytes from)
{
  return (WeirBits) { .from = from };
}

// Reads one bit.
static inline unsigned
weir_bit (WeirBits *b)
{
  if (b->left == 0) {
    weir_bytes_u8 (&b->from, &b->byte);
    if (b->zeros >= 2 && b->byte == 3) {
      weir_bytes_u8 (&b->from, &b->byte);
      b->zeros = 0;
    }
    b->zeros = b->byte == 0 ? b->zeros + 1 : 0;
    b->left = 8;
  }
  return b->byte >> --b->left & 1;
}

// Reads `n` bits, the highest first, and returns the last 32 of them.
static inline uint32_t
weir_bits_u (WeirBits *b, unsigned n)
{
  uint32_t value = 0;

  while (n-- > 0)
    value = value << 1 | weir_bit (b);
  return value;
}

// Reads an unsigned Exp-Golomb number, ue(v) (ITU-T H.264, 9.1). More than 31 leading zeros are a
// failure.
static inline uint32_t
weir_bits_ue (WeirBits *b)
{
  unsigned zeros = 0;

  while (!b->from.failed && weir_bit (b) == 0) {
    if (++zeros == 32)
      b->from.failed = true;
  }
  return b->from.failed ? 0 : (uint32_t) ((1ull << zeros) - 1 + weir_bits_u (b, zeros));
}

// Reads a signed Exp-Golomb number, se(v): the sequence 0, 1, -1, 2, -2, ...
static inline int32_t
weir_bits_se (WeirBits *b)
{
  uint32_t value = weir_bits_ue (b);
  return value & 1 ? (int32_t) (value / 2 + 1) : -(int32_t) (value / 2);
}

typedef struct {
  uint8_t *to;
  size_t size, len;
  unsigned zeros;
  uint8_t byte;
  unsigned used; // bits of `byte` that are written
  bool failed;
} WeirBitWriter;

// Appends one byte of output; used by weir_bits_put() only.
static inline void
weir_bits_put_byte (WeirBitWriter *w, uint8_t byte)
{
  if (w->len == w->size)
    w->failed = true;
  else
    w->to[w->len++] = byte;
}

// Writes the lower `n` bits of `value` (`n` from 0 to 32), the highest first.
static inline void
weir_bits_put (WeirBitWriter *w, uint32_t value, unsigned n)
{
  while (n-- > 0) {
    w->byte = (uint8_t) (w->byte << 1 | (value >> n & 1));
    if (++w->used < 8)
      continue;
    if (w->zeros >= 2 && w->byte <= 3) {
      weir_bits_put_byte (w, 3);
      w->zeros = 0;
    }
    weir_bits_put_byte (w, w->byte);
    w->zeros = w->byte == 0 ? w->zeros + 1 : 0;
    w->used = 0;
    w->byte = 0;
  }
}

// Writes ue(v).
static inline void
weir_bits_put_ue (WeirBitWriter *w, uint32_t value)
{
  unsigned n = 0;

  while ((uint64_t) value + 1 >= 2ull << n)
    n++;
  weir_bits_put (w, 0, n);
  weir_bits_put (w, 1, 1);
  weir_bits_put (w, (uint32_t) (value + 1 - (1ull << n)), n);
}

// Writes se(v).
static inline void
weir_bits_put_se (WeirBitWriter *w, int32_t value)
{
  weir_bits_put_ue (w, value > 0 ? (uint32_t) value * 2 - 1 : (uint32_t) -(int64_t) value * 2);
}

// Writes the stop bit and fills the byte with zeros (rbsp_trailing_bits, 7.3.2.11).
static inline void
weir_bits_put_end (WeirBitWriter *w)
{
  weir_bits_put (w, 1, 1);
  while (w->used > 0)
    weir_bits_put (w, 0, 1);
}
