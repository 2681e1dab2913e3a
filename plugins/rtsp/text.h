// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/rtsp/gstrtspmessage.h>

// Appends a message as it goes over the wire: a request or a response with its headers and body, or
// interleaved data. FALSE if it is of another kind, or data longer than 65535 bytes. `cseq` numbers
// requests, which have no number of their own.
gboolean weir_rtsp_text (GstRTSPMessage *message, guint *cseq, GByteArray *out);
