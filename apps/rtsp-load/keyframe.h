// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Finds out when all packets of a stream's first keyframe are there, in whatever order they come
// behind its first one.

#include "rtp/rtp.h"

#include <glib.h>

// All zeros: none has begun.
typedef struct {
  gboolean begun, ended;
  guint32 timestamp;
  guint16 first, last; // sequence numbers; `last` counts once it ended
  guint n;             // packets
} Keyframe;

// Takes a packet, each once. `starts`: a keyframe starts in it. Returns whether a keyframe is
// complete with it. A newer keyframe replaces one that is not.
gboolean keyframe_add (Keyframe *self, const WeirRtp *rtp, gboolean starts);
