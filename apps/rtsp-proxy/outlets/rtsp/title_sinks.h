// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The sinks of a title's pipeline, which gst-rtsp-server makes.

#include <gst/gst.h>

// Sets up each sink that is added from now on: it sends packets as they come, as ratepacer has
// paced them.
void title_sinks_set_up (GstBin *pipeline);

// Returns the stream time in ns up to which all tracks were sent, or GST_CLOCK_TIME_NONE if none
// was.
GstClockTime title_sinks_get_sent (GstBin *pipeline);
