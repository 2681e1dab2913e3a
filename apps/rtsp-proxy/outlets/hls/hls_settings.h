// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "frames/segment_cutter.h"

typedef struct {
  SegmentLengths lengths;
  guint n_segments; // in the playlist
} HlsSettings;
