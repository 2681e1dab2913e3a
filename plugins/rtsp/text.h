// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/rtsp/gstrtspmessage.h>

// Appends the wire format of a message to `out`: a request or a response with its headers and body,
// or interleaved data. Returns FALSE for another kind of message, or data longer than 65535 bytes.
// `cseq` is the number of the last request, which this increments for each request.
gboolean weir_rtsp_text (GstRTSPMessage *message, guint *cseq, GByteArray *out);
