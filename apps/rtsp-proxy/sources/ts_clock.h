// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// When a transport stream's packets came, on the clock of its sender.

#include <gst/gst.h>

// To be called before the demultiplexer gets its first byte; its buffers are to be of whole packets
// of 188 bytes, and to have their arrival as a time.
void ts_clock_add (GstElement *demux);
