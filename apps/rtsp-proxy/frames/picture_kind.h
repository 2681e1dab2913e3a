// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The codecs of whose keyframes still pictures are made.

#include <gst/gst.h>

#include "codec/layers.h"

typedef struct {
  const gchar *encoding; // its name in SDP, in capitals
  const gchar *depay;
  const gchar *parse; // NULL: the decoder takes what the depayloader gives
  const gchar *caps;  // that a decoder takes
  WeirCodec codec;    // as in key_frame_init()
} PictureKind;

// Returns the kind of RTP caps, or NULL.
const PictureKind *picture_kind_find (const GstCaps *caps);
