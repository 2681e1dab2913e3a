// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bits/startcode.h"

#include <string.h>

// Returns the first start code at or after `at`, or `end`.
static const uint8_t *
find (const uint8_t *at, const uint8_t *end)
{
  while (end - at >= 3) {
    const uint8_t *one = memchr (at + 2, 1, (size_t) (end - at - 2));

    if (!one)
      return end;
    if (one[-1] == 0 && one[-2] == 0)
      return one - 2;
    at = one - 1;
  }
  return end;
}

bool
weir_start_code_find (WeirBytes *b)
{
  b->at = find (b->at, b->end);
  return weir_bytes_left (b) >= WEIR_START_CODE;
}

bool
weir_start_code_next (WeirBytes *b, const uint8_t **unit, uint64_t *len)
{
  const uint8_t *end = b->end, *next;

  if (!weir_start_code_find (b))
    return false;
  *unit = b->at + WEIR_START_CODE;
  next = find (*unit, end);
  b->at = next;
  while (next > *unit && next[-1] == 0)
    next--;
  *len = (uint64_t) (next - *unit);
  return true;
}

bool
weir_start_code_cut (WeirBytes *b, const uint8_t **unit, size_t *len)
{
  *len = 0;
  *unit = NULL;
  if (weir_bytes_left (b) == 0)
    return false;
  *len = (size_t) (find (b->at + 1, b->end) - b->at);
  return weir_bytes_take (b, *len, unit);
}
