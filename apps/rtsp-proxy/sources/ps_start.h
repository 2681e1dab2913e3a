// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

// Has an mpegpsdemux begin at the first pack of its stream. With packets before that, as from an
// encoder that has been running, it takes the time for unknown, and the first track for the only
// one.
void ps_start_add (GstElement *demuxer);
