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

// Returns FALSE if the current SETUP asks for SRTP, which its stream cannot be served with.
gboolean setup_guard_allows_srtp (GstRTSPContext *ctx);

// Takes the UDP ports of a transport for the session. Returns FALSE if another session has one of
// them. They are given back when the transport changes, at TEARDOWN, and with the session.
gboolean setup_guard_take_ports (
    GstRTSPContext *ctx, const GstRTSPTransport *transport, const gchar *host);

// Reports whether the channels that a transport names, if it does, are free in its session. The
// reader would otherwise take the packets of one track for those of another.
gboolean setup_guard_check_channels (GstRTSPContext *ctx, const GstRTSPTransport *transport);

// Connects to the signals of a client.
void setup_guard_watch (GstRTSPClient *client);

// Returns the number of SETUP requests that were refused with this verdict. Call from any thread.
guint64 setup_guard_count (TransportVerdict verdict);
