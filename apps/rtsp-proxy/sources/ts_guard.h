// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What a transport stream may hold that tsdemux ends the process for is made harmless before it.

#include <gst/gst.h>

// To be called before the demultiplexer gets its first byte.
void ts_guard_add (GstElement *demux);
