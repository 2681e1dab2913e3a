// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Finds join points, the buffers from which a decoder can start: in RTP from the payload, if the
// core parses the codec; otherwise every buffer without the flag DELTA_UNIT.

#include <gst/gst.h>

#include "core/codec/layers.h"
#include "core/window/cacheindex.h"

typedef struct {
  gboolean read_rtp;
  WeirLayers layers;
  gboolean in_frame;
  guint32 frame_time;
  gint64 frame_start; // position
  gboolean frame_is_join;
} CacheJoins;

void cache_joins_set_caps (CacheJoins *joins, GstCaps *caps);

// Examines the buffer or buffer list that will have the position `position`. Returns the position
// of a join point that it reveals, possibly an earlier one, or WEIR_CACHE_NO_POSITION.
gint64 cache_joins_look (CacheJoins *joins, GstMiniObject *object, gint64 position);
