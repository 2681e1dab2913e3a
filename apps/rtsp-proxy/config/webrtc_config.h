// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The key `webrtc` of the configuration.

#include "config/listen_address.h"
#include "text/schema.h"

typedef struct {
  ListenAddress listen;   // the address is NULL if there is no WebRTC
  GStrv additional_hosts; // IP addresses, or NULL
  GStrv stun_servers;     // URIs (RFC 7064), or NULL
  gboolean tcp;
} WebrtcConfig;

extern const SchemaObject webrtc_config_object;

void webrtc_config_copy (WebrtcConfig *self, const WebrtcConfig *from);
void webrtc_config_clear (WebrtcConfig *self);
