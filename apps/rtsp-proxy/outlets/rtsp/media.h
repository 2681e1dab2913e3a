// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The media of a presentation in gst-rtsp-server. All readers share it. It has a feed, a
// pass-through payloader and a fanoutsink for each track.

#include <gst/rtsp-server/rtsp-server.h>

#include "content/presentation.h"

// Returns the factory of the presentation's media (transfer full). `ipv6`: readers may come over
// IPv6.
GstRTSPMediaFactory *media_factory_new (Presentation *presentation, gboolean ipv6);

// Applies the presentation's configuration to the sinks of its media. Call from any thread.
void media_configure (GstRTSPMedia *media, Presentation *presentation);

// Keeps media prepared as long as the presentation needs it. Call from any thread.
void media_keep (GstRTSPMedia *media, Presentation *presentation);

// Prepares the factory's media in another thread, which then calls presentation_media_opened().
// Call from any thread.
void media_factory_open (GstRTSPMediaFactory *factory);
