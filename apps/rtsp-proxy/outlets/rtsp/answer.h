// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Answers to requests that gst-rtsp-server does not handle. Call in the function of a PlayGuard,
// which returns what these return.

#include <gst/rtsp-server/rtsp-server.h>

// Begins the answer to the request, in `ctx->response`.
void answer_begin (GstRTSPContext *ctx, GstRTSPStatusCode status);

void answer_add_body (GstRTSPContext *ctx, const gchar *type, gconstpointer data, gsize size);

// Sends the answer, with the header Session unless `session` is NULL. Returns PLAY_GUARD_ANSWERED.
GstRTSPStatusCode answer_send (GstRTSPContext *ctx, GstRTSPSession *session);

// Answers an error, with its reason as the body, and the header Retry-After unless `retry_s` is 0.
// Returns PLAY_GUARD_ANSWERED.
GstRTSPStatusCode answer_refuse (
    GstRTSPContext *ctx, GstRTSPStatusCode status, guint retry_s, const gchar *why);
