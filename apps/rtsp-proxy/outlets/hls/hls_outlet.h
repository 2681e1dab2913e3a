// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The HLS outlet: serves live presentations to HTTP clients as HLS and Low-Latency HLS (RFC
// 8216bis). What readers get is muxed once for all of them. It is a route of the HTTP outlet. Call
// from the main thread only.

#include "outlets/hls/hls_settings.h"
#include "outlets/http/http_route.h"

typedef struct _HlsOutlet HlsOutlet;

// `mounts` must outlive the result.
HlsOutlet *hls_outlet_new (const HlsSettings *settings, Mounts *mounts);

// Returns the route of its URLs.
HttpRoute hls_outlet_get_route (HlsOutlet *self);

// Ends all sessions. Call after the HTTP outlet has stopped, and before the mounts are freed.
void hls_outlet_free (HlsOutlet *self);
