// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Serves live mounts to browsers over WebRTC: the port of the media, and the URLs of WHEP, which
// are a route of the HTTP outlet. Call from the main thread only.

#include "config/webrtc_config.h"
#include "outlets/http/http_route.h"
#include "proxy/proxy.h"

typedef struct _WebrtcOutlet WebrtcOutlet;

// Opens the port. Returns NULL and sets `error` if the system refuses.
WebrtcOutlet *webrtc_outlet_new (Proxy *proxy, const WebrtcConfig *config, GError **error);

// Returns the route of its URLs, which is valid until webrtc_outlet_free().
HttpRoute webrtc_outlet_get_route (WebrtcOutlet *self);

// Ends all sessions. Call after the HTTP outlet has stopped. Returns FALSE if there are still some
// after `timeout_ms`; then do not free the outlet.
gboolean webrtc_outlet_stop (WebrtcOutlet *self, guint timeout_ms);
void webrtc_outlet_free (WebrtcOutlet *self);
