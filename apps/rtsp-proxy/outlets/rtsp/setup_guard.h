// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Decides where the media of a reader may go: only to the address of its connection, to ports that
// no service and no other reader has.

#include <gst/rtsp-server/rtsp-server.h>

#include "outlets/rtsp/transport_check.h"

// Checks the header Transport of a SETUP before gst-rtsp-server parses the request, and replaces it
// with the transports that are allowed. Returns the status to answer if there are none, else OK.
// `tls` says whether the client uses TLS.
GstRTSPStatusCode setup_guard_check (GstRTSPContext *ctx, gboolean tls);

// Returns the whole header Transport, which the parser has split at its commas. (transfer full)
gchar *setup_guard_dup_transport (GstRTSPMessage *request);

// Logs and counts a refused SETUP. Returns the status to answer.
GstRTSPStatusCode setup_guard_refuse (GstRTSPContext *ctx, TransportVerdict verdict);

// Returns FALSE if the current SETUP asks for SRTP, which its stream cannot be served with.
gboolean setup_guard_allows_srtp (GstRTSPContext *ctx);

// Reports whether the current SETUP may have its transport: SRTP as above; UDP ports, which it
// takes for the session, only if no other session has one of them; channels only if they are free
// in the session. The ports are given back when the transport changes, at TEARDOWN, and with the
// session. `host` is the client's.
gboolean setup_guard_allows (
    GstRTSPContext *ctx, const GstRTSPTransport *transport, const gchar *host);

// Connects to the signals of a client.
void setup_guard_watch (GstRTSPClient *client);

// Returns the number of SETUP requests that were refused with this verdict. Call from any thread.
guint64 setup_guard_count (TransportVerdict verdict);
