// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The codecs of which frames can be made, and the elements that make them.

#include <gst/gst.h>

typedef struct {
  const gchar *encoding; // its name in SDP, in capitals
  const gchar *depay, *parse;
  const gchar *caps;   // of the frames
  gboolean is_video;   // keyframes can be asked for
  gboolean has_layers; // svclayerfilter knows them
} FrameKind;

// Returns the kind of RTP caps, or NULL.
const FrameKind *frame_kind_find (const GstCaps *caps);

// Reports whether the frames are of H.264 or H.265, so that each begins with its parameter sets.
gboolean frame_kind_has_sets (const FrameKind *self);
