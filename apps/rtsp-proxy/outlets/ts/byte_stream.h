// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Frames of H.264 and H.265 in the form that transport streams carry: each unit behind a start
// code (ITU-T H.264, annex B), where frames/ has them behind their lengths.

#include <gst/gst.h>

// Returns a copy of the frame. A frame of H.264 begins with a delimiter, which ITU-T H.222.0,
// 2.14.1, wants. Drops units that are cut short. (transfer full)
GstBuffer *byte_stream_copy (GstBuffer *frame, gboolean is_h264);

// Returns the caps of such frames. (transfer full)
GstCaps *byte_stream_caps (const GstCaps *caps);
