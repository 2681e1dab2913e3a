// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Weir for programs. A program creates Weir's elements by name, like all elements of GStreamer;
// this header declares the functions besides them. The pkg-config module is weir-0.1. Everything
// here is available since 0.1, unless the comment names another version.

#include <gst/gst.h>

G_BEGIN_DECLS

// Makes GStreamer create a `fanoutsink` for every `multiudpsink` from now on, in the whole process.
// gst-rtsp-server creates its UDP sinks under that name, so an unchanged server uses fanoutsink.
// Call this once, after gst_init() and before the first media is prepared. Returns FALSE and an
// error, and changes nothing, if GStreamer does not find the element fanoutsink.
gboolean weir_use_fanoutsink (GError **error);

// Says that a buffer holds `n` RTP packets of the same time, back to back. One buffer for the
// packets of a frame costs a pipeline far less than a buffer for each. fanoutsink and the element
// of weir_sender_bin_new() know such buffers, and ratepacer passes them on as they are; all other
// elements take them for one packet. A copy of the buffer holds the same packets. `lengths` (bytes)
// are copied, and must add up to the buffer's size. The buffer must be writable.
void weir_buffer_set_packets (GstBuffer *buffer, const guint16 *lengths, guint n);

// Returns the lengths of the packets of such a buffer, which owns them, and sets `n`; or returns
// NULL for any other buffer.
const guint16 *weir_buffer_get_packets (GstBuffer *buffer, guint *n);

G_END_DECLS
