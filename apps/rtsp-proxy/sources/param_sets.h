// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

// Makes each keyframe that rtph264pay gets begin with parameter sets: those that the payloader has
// seen so far, unless the keyframe has its own. The payloader's config-interval must be 0: with -1
// it writes parameter sets before each slice of a keyframe, where they begin another picture
// (H.264, 7.4.1.2.3), so decoders lose pictures of several slices. rtph265pay writes them once a
// picture by itself.
void param_sets_add (GstElement *payloader);
