// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the address and the format of the track that a relaysrc receives, from a URI such as
// rtp://239.1.2.3:5000?encoding-name=H264&payload=96 or a session description (RFC 8866).

#include <gst/gst.h>

#include "core/net/address.h"

G_BEGIN_DECLS

typedef struct {
  WeirAddress rtp;   // address of this host, or a multicast group
  guint iface;       // index of the network interface; 0: chosen by the routes
  guint16 rtcp_port; // the port of `rtp`: RTCP comes with the media
  GstCaps *caps;     // application/x-rtp
} RelayDescription;

// Read the description of a track, counted from 0; a rtp:// URI has one track. A sdp:// URI names a
// file. Return FALSE with an error that says what is wrong. Free `out` with
// relay_description_clear().
gboolean relay_description_from_uri (
    const gchar *uri, guint track, RelayDescription *out, GError **error);
gboolean relay_description_from_sdp (
    const gchar *text, guint track, RelayDescription *out, GError **error);

void relay_description_clear (RelayDescription *self);

G_END_DECLS
