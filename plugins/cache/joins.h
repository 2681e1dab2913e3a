// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Where a decoder can start, in a stream of whatever kind: in RTP by what the payload says, where
// core can read that; else at what isn't marked as a delta unit.

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

// For the buffer or list that will lie at `position`. Returns the position of what turns out to be
// a join point, which may be an earlier one, or WEIR_CACHE_NO_POSITION.
gint64 cache_joins_look (CacheJoins *joins, GstMiniObject *object, gint64 position);
