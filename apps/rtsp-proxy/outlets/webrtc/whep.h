// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The URLs of WHEP (draft-ietf-wish-whep-03), at which live mounts are read: /PATH/whep.

#include "outlets/webrtc/webrtc_reply.h"

// Returns the route of the URLs. `endpoints` must outlive the HTTP outlet.
HttpRoute whep_get_route (WebrtcEndpoints *endpoints);
