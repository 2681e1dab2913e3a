// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/rtsp-server/rtsp-server.h>

// Reads the receiver reports that the reader of this transport sends over UDP from now on, in place
// of gst-rtsp-server. Call in a handler of setup-request.
void weir_reports_watch (GstRTSPContext *ctx);

// Returns the pad "PREFIX_N" of stream N, of rtpbin or of the element that replaces it; NULL if
// there is none. The caller owns the reference.
GstPad *weir_reports_find_pad (GstRTSPStream *stream, const gchar *prefix);
