// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The lines of a session description.

#include <stdbool.h>
#include <string.h>

#include "bits/bytes.h"

// Points `line` at the next line, without its end, and moves past it. Returns false at the end.
static inline bool
weir_line_next (WeirBytes *sdp, WeirBytes *line)
{
  size_t left = weir_bytes_left (sdp);
  const uint8_t *begin, *end;

  if (left == 0)
    return false;
  end = memchr (sdp->at, '\n', left);
  weir_bytes_take (sdp, end ? (size_t) (end - sdp->at) + 1 : left, &begin);
  if (!end)
    end = sdp->at;
  *line = weir_bytes (begin, (size_t) (end - begin));
  if (line->end > line->at && line->end[-1] == '\r')
    line->end--;
  return true;
}

static inline bool
weir_line_begins (const WeirBytes *line, const char *prefix)
{
  size_t length = strlen (prefix);

  return weir_bytes_left (line) >= length && memcmp (line->at, prefix, length) == 0;
}
