// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Changes the parts of a transport stream that would make tsdemux abort the process.

#include <gst/gst.h>

// Call before the demultiplexer gets its first byte.
void ts_guard_add (GstElement *demux);
