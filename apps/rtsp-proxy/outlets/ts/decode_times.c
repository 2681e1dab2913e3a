// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/ts/decode_times.h"

#include <string.h>

#define ASSUMED 2
#define LEARNED 32 // pictures after which the depth is known

// Inserts the PTS. Returns how many earlier pictures are presented later.
static guint
insert (DecodeTimes *self, gint64 pts)
{
  guint at = 0;

  while (at < self->n_recent && self->recent[at] > pts)
    at++;
  if (at > DECODE_TIMES_MAX)
    return at;
  if (self->n_recent <= DECODE_TIMES_MAX)
    self->n_recent++;
  memmove (
      &self->recent[at + 1], &self->recent[at], (self->n_recent - at - 1) * sizeof self->recent[0]);
  self->recent[at] = pts;
  return at;
}

gint64
decode_times_next (DecodeTimes *self, gint64 pts, gint64 duration)
{
  guint later = insert (self, pts), depth;
  gint64 dts;

  self->depth = MIN (MAX (self->depth, later), DECODE_TIMES_MAX);
  depth = self->n_seen < LEARNED || self->depth > 0 ? MAX (self->depth, ASSUMED) : 0;
  if (depth < self->n_recent)
    dts = self->recent[depth];
  else
    dts = self->recent[self->n_recent - 1] - (depth + 1 - self->n_recent) * duration;
  if (self->has_last && dts <= self->last)
    dts = self->last + 1;
  self->n_seen++;
  self->has_last = TRUE;
  self->last = dts;
  return dts;
}

void
decode_times_relearn (DecodeTimes *self)
{
  self->n_seen = self->depth = 0;
}
