// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// faad gives no samples for its first frame, and from then on each frame the time of the one before
// it: sound is a frame early.

#include <gst/gst.h>

// Mends the times of the faad elements of a pipeline that has not started.
void faad_times_mend (GstElement *pipeline);
