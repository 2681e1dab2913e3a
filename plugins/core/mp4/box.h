// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Writes the boxes of ISO/IEC 14496-12 into a caller's buffer. Bytes beyond its end are counted but
// not written, so a first pass without a buffer gives the size to allocate.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
  uint8_t *data;
  size_t size; // of `data`
  size_t at;   // bytes so far; may be more than `size`
} WeirBoxes;

static inline void
weir_boxes_put (WeirBoxes *w, const void *bytes, size_t len)
{
  if (len > 0 && w->at <= w->size && len <= w->size - w->at)
    memcpy (w->data + w->at, bytes, len);
  w->at += len;
}

// Writes the low `size` (1 to 8) bytes of a number, big-endian.
static inline void
weir_boxes_number (WeirBoxes *w, unsigned size, uint64_t value)
{
  uint8_t bytes[8];

  for (unsigned i = 0; i < size; i++)
    bytes[i] = (uint8_t) (value >> 8 * (size - 1 - i));
  weir_boxes_put (w, bytes, size);
}

static inline void
weir_boxes_u8 (WeirBoxes *w, uint8_t value)
{
  weir_boxes_number (w, 1, value);
}

static inline void
weir_boxes_u16 (WeirBoxes *w, uint16_t value)
{
  weir_boxes_number (w, 2, value);
}

static inline void
weir_boxes_u32 (WeirBoxes *w, uint32_t value)
{
  weir_boxes_number (w, 4, value);
}

static inline void
weir_boxes_u64 (WeirBoxes *w, uint64_t value)
{
  weir_boxes_number (w, 8, value);
}

static inline void
weir_boxes_zeros (WeirBoxes *w, size_t n)
{
  static const uint8_t zeros[64];

  for (; n > sizeof zeros; n -= sizeof zeros)
    weir_boxes_put (w, zeros, sizeof zeros);
  weir_boxes_put (w, zeros, n);
}

// Writes the number again that is at `at`.
static inline void
weir_boxes_set_u32 (WeirBoxes *w, size_t at, uint32_t value)
{
  WeirBoxes again = { w->data, w->size, at };

  weir_boxes_u32 (&again, value);
}

// Begins a box. Returns its place for weir_box_end(), which writes its size.
static inline size_t
weir_box_begin (WeirBoxes *w, const char type[4])
{
  size_t at = w->at;

  weir_boxes_u32 (w, 0);
  weir_boxes_put (w, type, 4);
  return at;
}

static inline size_t
weir_box_begin_full (WeirBoxes *w, const char type[4], uint8_t version, uint32_t flags)
{
  size_t at = weir_box_begin (w, type);

  weir_boxes_u32 (w, (uint32_t) version << 24 | flags);
  return at;
}

static inline void
weir_box_end (WeirBoxes *w, size_t at)
{
  weir_boxes_set_u32 (w, at, (uint32_t) (w->at - at));
}
