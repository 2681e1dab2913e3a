// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Writes RTSP requests and reads answers from a buffer, which may hold a part of a message or
// several messages.

#include <glib.h>
#include <gst/rtsp/rtsp.h>

#define RTSP_TEXT_MAX (256 * 1024) // bytes; longer messages are RTSP_TEXT_BAD

// The result of rtsp_text_read().
typedef enum {
  RTSP_TEXT_PARTIAL, // more bytes are needed
  RTSP_TEXT_ANSWER,
  RTSP_TEXT_REQUEST, // from the server; callers skip it
  RTSP_TEXT_BAD,
} RtspText;

// Reads the first message. Sets `out` for an answer (transfer full). Sets `used` to the length of a
// complete message in bytes.
RtspText rtsp_text_read (const guint8 *data, gsize len, GstRTSPMessage **out, gsize *used);

// Appends a request without a body to `out`. `headers` are complete lines with CRLF. May be NULL.
void rtsp_text_request (
    GString *out, const gchar *method, const gchar *uri, guint cseq, const gchar *headers);

// Returns the value of a header, or NULL. The message owns the result.
const gchar *rtsp_text_header (const GstRTSPMessage *message, GstRTSPHeaderField field);

// Returns the URI of an SDP's control attribute. `control` may be NULL: then it is `base`. The
// caller owns the result.
gchar *rtsp_text_control (const gchar *base, const gchar *control);
