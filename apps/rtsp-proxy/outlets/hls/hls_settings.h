// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <glib.h>

typedef struct {
  gint64 segment_ns; // shortest duration of a segment, which ends before the next keyframe
  gint64 part_ns;    // duration of a part, of whole frames
  guint n_segments;  // in the playlist
} HlsSettings;
