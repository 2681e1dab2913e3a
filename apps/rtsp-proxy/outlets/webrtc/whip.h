// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The URLs of WHIP (RFC 9725), at which clients publish to mounts: /PATH/whip.

#include "outlets/webrtc/webrtc_reply.h"

// Returns the route of the URLs. `endpoints` must outlive the HTTP outlet.
HttpRoute whip_get_route (WebrtcEndpoints *endpoints);
