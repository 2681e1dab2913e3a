// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/rtsp-server/rtsp-server.h>

// In a handler of setup-request: what the reader of this transport reports over UDP is read here
// from now on, and not by the library.
void weir_reports_watch (GstRTSPContext *ctx);

// The pad "PREFIX_N" of stream N that the media's rtpbin has, or what stands in its place; with a
// reference. NULL: it has none.
GstPad *weir_reports_find_pad (GstRTSPStream *stream, const gchar *prefix);
