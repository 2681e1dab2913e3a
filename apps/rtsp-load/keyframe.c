// SPDX-License-Identifier: LGPL-2.1-or-later
#include "keyframe.h"

gboolean
keyframe_add (Keyframe *self, const WeirRtp *rtp, gboolean starts)
{
  if (starts && (!self->begun || (gint32) (rtp->timestamp - self->timestamp) > 0))
    *self = (Keyframe) { .begun = TRUE, .timestamp = rtp->timestamp, .first = rtp->seq };
  if (!self->begun || rtp->timestamp != self->timestamp || (gint16) (rtp->seq - self->first) < 0)
    return FALSE;
  self->n++;
  if (rtp->marker) {
    self->ended = TRUE;
    self->last = rtp->seq;
  }
  return self->ended && self->n == (guint) (guint16) (self->last - self->first) + 1;
}
