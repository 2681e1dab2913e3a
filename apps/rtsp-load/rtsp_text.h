// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// RTSP messages as bytes: writing requests, reading answers out of a buffer that may hold part of
// one, or more than one.

#include <glib.h>
#include <gst/rtsp/rtsp.h>

#define RTSP_TEXT_MAX (256 * 1024) // a longer message is no message

// How far rtsp_text_read() came.
typedef enum {
  RTSP_TEXT_PARTIAL, // more bytes are needed
  RTSP_TEXT_ANSWER,
  RTSP_TEXT_REQUEST, // of the server; it is skipped
  RTSP_TEXT_BAD,
} RtspText;

// Reads the first message. For an answer `out` is set, to be freed by the caller. `used` is how
// many bytes a whole message has.
RtspText rtsp_text_read (const guint8 *data, gsize len, GstRTSPMessage **out, gsize *used);

// Appends a request without a body. `headers` are whole lines, or NULL.
void rtsp_text_request (
    GString *out, const gchar *method, const gchar *uri, guint cseq, const gchar *headers);

// The value of a header, or NULL.
const gchar *rtsp_text_header (const GstRTSPMessage *message, GstRTSPHeaderField field);

// What an SDP's control attribute (or NULL) stands for.
gchar *rtsp_text_control (const gchar *base, const gchar *control);
