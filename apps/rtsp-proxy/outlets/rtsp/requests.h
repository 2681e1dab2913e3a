// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Checks each request of an RTSP connection before gst-rtsp-server handles it, in this order: who
// may, what the request asks for, and whether that is ready. Answers those that gst-rtsp-server
// does not know, and those that it would not survive. Call from the client's thread only.

#include "outlets/rtsp/broadcast_requests.h"
#include "outlets/rtsp/publishing.h"

typedef struct {
  RtspConnection *connection;
  BroadcastRequests broadcast;
  Publishing publishing;
} Requests;

// Checks the requests of the connection's client from now on. `connection` must outlive the
// structure; `close` closes the connection, from any thread.
void requests_init (Requests *self, RtspConnection *connection,
    void (*close) (GstRTSPClient *client, const gchar *reason));
void requests_clear (Requests *self);

// Logs why a request is answered with an error, and puts the reason into the answer, where
// gst-rtsp-server knows none. Call before the answer is sent.
void requests_explain (Requests *self, GstRTSPContext *ctx, GstRTSPStatusCode status);
