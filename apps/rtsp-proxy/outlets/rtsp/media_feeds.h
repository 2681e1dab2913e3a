// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The feeds of a live media, one for each track.

#include <gst/rtsp-server/rtsp-server.h>

#include "relay/relay.h"

// Let the feeds send the packets of `relay`, and no longer.
void media_feeds_attach (GstRTSPMedia *media, Relay *relay);
void media_feeds_detach (GstRTSPMedia *media, Relay *relay);

// Has the sinks drop what they have kept. Call while the feeds are detached.
void media_feeds_flush (GstRTSPMedia *media);
