// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Tells qtdemux what the header of a fragmented MP4 file does not: it takes the duration that it
// finds there, or in an index, for the whole file, and seeks to no position behind it.

#include <gst/gst.h>

// Changes the header as it is read from `source`, which must be in pull mode and must outlive what
// reads it. Call before the demultiplexer gets its first byte, in the thread that reads; it waits
// for the file. Other files stay as they are.
void mp4_guard_add (GstElement *source);
