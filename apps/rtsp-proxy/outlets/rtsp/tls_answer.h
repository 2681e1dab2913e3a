// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What gst-rtsp-server does not do for a client that came over TLS, because it sees a plain
// connection (tls/tls_front.h).

#include <gst/rtsp-server/rtsp-server.h>

// Completes the class of the proxy's clients, last: a SETUP over UDP from a client that came over
// TLS is refused (461), because media would leave in clear.
void tls_answer_class_init (GstRTSPClientClass *klass);

// Switches a client that came over TLS to its plain connection, and corrects its answers from now
// on. Does nothing for another client. Call before the client is attached, when its address is no
// longer needed from its socket.
void tls_answer_begin (GstRTSPClient *client);

// Reports whether the client has connected over TLS. Call from any thread while the client lives.
gboolean tls_answer_is_needed (GstRTSPClient *client);
