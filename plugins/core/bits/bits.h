// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Bits of a NAL unit of H.264: the emulation prevention bytes (the 3 in 0 0 3) are left out when
// reading and put in when writing. Like WeirBytes: what does not fit gives 0 and marks a failure.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bits/bytes.h"

typedef struct {
  WeirBytes from;
  unsigned zeros; // bytes of 0 in a row before this one
  uint8_t byte;
  unsigned left; // bits of `byte` not read yet
} WeirBits;

static inline WeirBits
weir_bits (WeirBytes from)
{
  return (WeirBits) { .from = from };
}

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

static inline uint32_t
weir_bits_u (WeirBits *b, unsigned n)
{
  uint32_t value = 0;

  while (n-- > 0)
    value = value << 1 | weir_bit (b);
  return value;
}

// Exp-Golomb: unsigned, and signed by its sequence 0, 1, -1, 2, -2, ...
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
  unsigned used; // bits of `byte` written
  bool failed;
} WeirBitWriter;

static inline void
weir_bits_put_byte (WeirBitWriter *w, uint8_t byte)
{
  if (w->len == w->size)
    w->failed = true;
  else
    w->to[w->len++] = byte;
}

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

static inline void
weir_bits_put_se (WeirBitWriter *w, int32_t value)
{
  weir_bits_put_ue (w, value > 0 ? (uint32_t) value * 2 - 1 : (uint32_t) -(int64_t) value * 2);
}

// The stop bit, and zeros to the end of the byte.
static inline void
weir_bits_put_end (WeirBitWriter *w)
{
  weir_bits_put (w, 1, 1);
  while (w->used > 0)
    weir_bits_put (w, 0, 1);
}
