// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The URLs of WHEP (draft-ietf-wish-whep-03): /PATH/whep takes an offer by POST, and answers with
// the URL of a session, /PATH/whep/NAME, which PATCH changes and DELETE ends.

#include "config/webrtc_config.h"
#include "outlets/http/http_route.h"
#include "outlets/webrtc/webrtc_port.h"
#include "outlets/webrtc/whep_sessions.h"

// What the requests need.
typedef struct {
  WhepSessions *sessions;
  WebrtcPort *port;
  GStrv stun_servers; // URIs, or NULL
} Whep;

// Returns the route of the URLs. `whep` must outlive the HTTP outlet.
HttpRoute whep_get_route (Whep *whep);
