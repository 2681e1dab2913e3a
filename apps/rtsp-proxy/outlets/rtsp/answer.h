// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Answers to requests: those that gst-rtsp-server does not handle, and what its own answers lack.
// Call in the client's thread.

#include <gst/rtsp-server/rtsp-server.h>

// ---- answers of the proxy, while it checks a request ----

// The status of a request that has been answered.
#define ANSWERED GST_RTSP_STS_INVALID

// Begins the answer to the request, in `ctx->response`.
void answer_begin (GstRTSPContext *ctx, GstRTSPStatusCode status);

void answer_add_body (GstRTSPContext *ctx, const gchar *type, gconstpointer data, gsize size);

// Sends the answer, with the header Session unless `session` is NULL. Returns ANSWERED.
GstRTSPStatusCode answer_send (GstRTSPContext *ctx, GstRTSPSession *session);

// Answers an error, with its reason as the body, and the header Retry-After unless `retry_s` is 0.
// Returns ANSWERED.
GstRTSPStatusCode answer_refuse (
    GstRTSPContext *ctx, GstRTSPStatusCode status, guint retry_s, const gchar *why);

// ---- answers of gst-rtsp-server ----

// Sets the function of a class that corrects the status of errors.
void answer_class_init (GstRTSPClientClass *klass);

// Adds headers that the status of an answer requires. Call before it is sent.
void answer_complete (GstRTSPMessage *answer);
