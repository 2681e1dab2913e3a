// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The media of a presentation in gst-rtsp-server. All readers share it. It has a feed, a
// pass-through payloader and a fanoutsink for each track.

#include <gst/rtsp-server/rtsp-server.h>

#include "outlets/rtsp/live_media.h"

// Returns the factory of the presentation's media (transfer full). `ipv6`: readers may come over
// IPv6.
GstRTSPMediaFactory *media_factory_new (Presentation *presentation, gboolean ipv6);

// Returns the presentation of the media's one reader, which it holds, or NULL: any number may read.
Presentation *media_get_own (GstRTSPMedia *media);

// Ends the presentation's media. Main thread only.
void media_factory_stop (GstRTSPMediaFactory *factory);

// Returns the media of the presentation that is published under `path` (transfer full), or NULL.
// Call from any thread.
LiveMedia *media_find_live (GstRTSPMountPoints *points, const gchar *path);
