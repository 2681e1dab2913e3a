// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What can be pulled, as an operator writes it:
//   rtsp://HOST[:PORT]/PATH, rtsps://
//   udp://ADDR:PORT[?iface=NAME]              MPEG-TS
//   rtp://ADDR:PORT?encoding-name=H264&payload=96[&clock-rate=90000][&iface=NAME][&fmtp ...]
//   sdp:///DIR/FILE[?iface=NAME]              several tracks, as rtp://
//   file:///DIR/FILE                          looped
//   file:///DIR/                              the files in it, each from its beginning
//   launch:LINE                               with payloaders named pay0, pay1 ...

#include "sources/pull.h"

typedef enum {
  PULL_URI_FROM_API = 1 << 0, // not from who runs the proxy: a launch line could do anything
} PullUriFlags;

// Fills the URI's part of `config`, which had none; credentials are taken out of the URI. Returns
// NULL, or what is wrong (to be freed).
gchar *pull_uri_check (const gchar *uri, PullUriFlags flags, PullConfig *config);

void pull_config_clear (PullConfig *config);
