// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the RTSP library serves of a presentation: one shared media with a feed and a pass-through
// payloader for each track.

#include <gst/rtsp-server/rtsp-server.h>

#include "content/presentation.h"

GstRTSPMediaFactory *media_factory_new (Presentation *presentation);

// Has a media of it serve readers as its configuration says now. Any thread.
void media_configure (GstRTSPMedia *media, Presentation *presentation);

// One that was prepared stays so as long as the presentation wants to keep it. Any thread.
void media_keep (GstRTSPMedia *media, Presentation *presentation);

// Has its media prepared, in a thread of its own, as the first reader would. Any thread.
void media_factory_open (GstRTSPMediaFactory *factory);
