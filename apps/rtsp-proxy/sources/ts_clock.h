// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Gives the packets of a transport stream timestamps on the sender's clock.

#include <gst/gst.h>

// Call before the demultiplexer gets its first byte. Its buffers must hold whole packets of 188
// bytes and have their arrival as timestamp.
void ts_clock_add (GstElement *demux);
