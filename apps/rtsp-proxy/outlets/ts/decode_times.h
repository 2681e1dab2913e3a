// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Finds when each picture of a stream is decoded (DTS) from the times of presentation (PTS), in the
// order of decoding: a picture is decoded at the PTS that is `depth` places earlier in the order of
// presentation, where `depth` is by how many pictures the stream reorders. The depth is learned;
// until then, and of a stream that reorders at all, it is assumed to be at least 2, as of most
// encoders with B-pictures, which reorder by less for minutes, so that times never go back.
// (h264timestamper of GStreamer 1.22 changes the PTS of the first picture.)

#include <glib.h>

#define DECODE_TIMES_MAX 16 // pictures that a stream reorders at most (H.264 and H.265, DPB)

typedef struct {
  gint64 recent[DECODE_TIMES_MAX + 1]; // PTS in ns, in falling order
  guint n_recent, depth;
  guint n_seen; // since the depth is being learned
  gboolean has_last;
  gint64 last; // DTS
} DecodeTimes;

// Returns the DTS of the next picture, in ns. It is at most `pts` unless the stream reorders by
// more than was known. `duration` is of a picture.
gint64 decode_times_next (DecodeTimes *self, gint64 pts, gint64 duration);

// Learns the depth anew, as what follows is of another encoder.
void decode_times_relearn (DecodeTimes *self);
