// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Weir in a program that serves with gst-rtsp-server: one call. Link `weirrtsp`.

#include <gst/rtsp-server/rtsp-server.h>

#include "weir.h"

G_BEGIN_DECLS

// Gives a server the engine, for every reader over UDP and over TCP (interleaved) that connects
// from now on: weir_use_fanoutsink(), and one writer for each connection, through which answers and
// media leave in order without ever waiting for a reader. TLS and HTTP tunnels, and streams that
// the program allows over TCP only, stay as the library does them. Call it after gst_init() and
// before the server is attached. FALSE and an error if the plugin is not there; then all is as it
// was.
gboolean weir_serve (GstRTSPServer *server, GError **error);

// Why the engine closed this client's connection; NULL if it did not. To be freed.
gchar *weir_client_get_close_reason (GstRTSPClient *client);

// From a handler of pre-describe-request or another such signal: puts the request aside, so that
// waiting for something holds up nobody else whom the thread serves. Where it gives TRUE the
// handler returns any status but OK, which is not answered; weir_client_resume(), from any thread,
// has the request handled anew. FALSE: one is put aside already, or the library writes by itself.
gboolean weir_client_defer (GstRTSPClient *client, GstRTSPContext *ctx);
void weir_client_resume (GstRTSPClient *client);

// Whether a transport of a session is TCP. Those that the engine serves say in their
// `lower_transport` that they are UDP.
gboolean weir_transport_is_tcp (const GstRTSPTransport *transport);

G_END_DECLS
