// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <stddef.h>
#include <stdint.h>

// Writes the lowest `size` bytes (1 to 8) of `value` at `at`, in big-endian order. Returns the
// position after them.
static inline uint8_t *
weir_put (uint8_t *at, size_t size, uint64_t value)
{
  for (size_t i = 0; i < size; i++)
    at[i] = (uint8_t) (value >> 8 * (size - 1 - i));
  return at + size;
}
