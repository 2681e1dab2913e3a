// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The layers of an m-line (simulcast, RFC 8853). Call from any thread.

#include <gst/sdp/sdp.h>

#define SDP_LAYERS_MAX 4 // more are left out
#define SDP_RID_MAX 16   // characters of a name

// The names of the layers that the client sends, in its order.
typedef struct {
  gchar *rids[SDP_LAYERS_MAX];
  guint n;
} SdpLayers;

// Reads the layers of an m-line into `self`, which has none. What cannot be used is left out.
void sdp_layers_read (SdpLayers *self, const GstSDPMedia *media);
void sdp_layers_clear (SdpLayers *self);
