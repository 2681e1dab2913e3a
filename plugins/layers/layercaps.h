// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the caps of a layered stream, and makes the caps of a stream from which layers were
// removed: with the size, profile and level of the highest layer left, and the parameter sets of
// the layers left.

#include <gst/gst.h>

#include "layerstream.h"

// Reads codec, RTP or not, size of NAL unit lengths in bytes (0 = start codes) and RTP clock rate
// in Hz (0 = unknown) from the caps. Returns FALSE for an unknown codec.
gboolean layer_caps_read (
    GstCaps *caps, WeirCodec *codec, gboolean *rtp, guint *length_size, guint *clock_rate);

// Stores the parameter sets in the caps in the stream. H.264 only.
void layer_caps_note (GstCaps *caps, LayerStream *stream);

// Returns the RTP header extension id of the dependency descriptor in the caps, 0 if there is none.
guint8 layer_caps_dependency_id (GstCaps *caps);

// Returns the caps of the output for the caps `in` of the input. (transfer full)
GstCaps *layer_caps_make (GstCaps *in, const LayerStream *stream);
