// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Serves live mounts to browsers over WebRTC, and lets them publish: the port of the media, and the
// URLs of WHEP and WHIP, which are routes of the HTTP outlet. Call from the main thread only.

#include "config/webrtc_config.h"
#include "outlets/http/http_route.h"
#include "proxy/proxy.h"

typedef struct _WebrtcOutlet WebrtcOutlet;

// Opens the port. Returns NULL and sets `error` if the system refuses.
WebrtcOutlet *webrtc_outlet_new (Proxy *proxy, const WebrtcConfig *config, GError **error);

// Sets the routes of its URLs, which are valid until webrtc_outlet_free().
void webrtc_outlet_get_routes (WebrtcOutlet *self, HttpRoute *whep, HttpRoute *whip);

// Ends all sessions. Call after the HTTP outlet has stopped. Returns FALSE if there are still some
// after `timeout_ms`; then do not free the outlet.
gboolean webrtc_outlet_stop (WebrtcOutlet *self, guint timeout_ms);
void webrtc_outlet_free (WebrtcOutlet *self);
