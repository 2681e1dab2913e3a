// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The bounds-checked cursor through which all bytes from a network or a file are read. The first
// read beyond the end marks the cursor as failed; from then on every read fails and gives 0. A
// parser may check each read, or read a whole header and check `failed` once at the end.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  const uint8_t *at;
  const uint8_t *end;
  bool failed;
} WeirBytes;

// Returns a cursor at the first of `len` bytes. The bytes stay the caller's. `data` may be NULL if
// `len` is 0.
static inline WeirBytes
weir_bytes (const uint8_t *data, size_t len)
{
  return (WeirBytes) { data, data ? data + len : data, false };
}

// Returns the number of bytes left to read; 0 after a failed read.
static inline size_t
weir_bytes_left (const WeirBytes *b)
{
  return b->failed ? 0 : (size_t) (b->end - b->at);
}

// Points `out` at the next `len` bytes and moves past them. Returns false, with `out` NULL, if
// fewer are left.
static inline bool
weir_bytes_take (WeirBytes *b, size_t len, const uint8_t **out)
{
  if (len > weir_bytes_left (b)) {
    b->failed = true;
    *out = NULL;
    return false;
  }
  *out = b->at;
  b->at = len ? b->at + len : b->at;
  return !b->failed;
}

// Moves past `len` bytes. Returns false if fewer are left.
static inline bool
weir_bytes_skip (WeirBytes *b, size_t len)
{
  const uint8_t *unused;
  return weir_bytes_take (b, len, &unused);
}

// Reads a big-endian number of `size` bytes (0 to 8). Returns false, with `*out` 0, if fewer are
// left. The functions below do the same for numbers of 1, 2, 3, 4 and 8 bytes.
static inline bool
weir_bytes_number (WeirBytes *b, size_t size, uint64_t *out)
{
  const uint8_t *p;
  uint64_t value = 0;

  *out = 0;
  if (!weir_bytes_take (b, size, &p))
    return false;
  for (size_t i = 0; i < size; i++)
    value = value << 8 | p[i];
  *out = value;
  return true;
}

static inline bool
weir_bytes_u8 (WeirBytes *b, uint8_t *out)
{
  uint64_t value;
  bool ok = weir_bytes_number (b, 1, &value);
  *out = (uint8_t) value;
  return ok;
}

static inline bool
weir_bytes_u16 (WeirBytes *b, uint16_t *out)
{
  uint64_t value;
  bool ok = weir_bytes_number (b, 2, &value);
  *out = (uint16_t) value;
  return ok;
}

static inline bool
weir_bytes_u24 (WeirBytes *b, uint32_t *out)
{
  uint64_t value;
  bool ok = weir_bytes_number (b, 3, &value);
  *out = (uint32_t) value;
  return ok;
}

static inline bool
weir_bytes_u32 (WeirBytes *b, uint32_t *out)
{
  uint64_t value;
  bool ok = weir_bytes_number (b, 4, &value);
  *out = (uint32_t) value;
  return ok;
}

static inline bool
weir_bytes_u64 (WeirBytes *b, uint64_t *out)
{
  return weir_bytes_number (b, 8, out);
}
