// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Caps of a stream with some of its layers gone: size, profile and level are those of the highest
// that is left, and parameter sets in the caps are those of the layers that are left.

#include <gst/gst.h>

#include "layerstream.h"

// What caps say of the stream. FALSE for caps without an encoding that is known.
gboolean layer_caps_read (
    GstCaps *caps, WeirCodec *codec, gboolean *rtp, guint *length_size, guint *clock_rate);

// Lets the stream learn from the parameter sets in the caps.
void layer_caps_note (GstCaps *caps, LayerStream *stream);

// The number under which RTP caps announce the dependency descriptor, 0 if they don't.
guint8 layer_caps_dependency_id (GstCaps *caps);

// The caps of what comes out, for caps that came in. (transfer full)
GstCaps *layer_caps_make (GstCaps *in, const LayerStream *stream);
