// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the RTSP library serves of a presentation: one shared media with a feed and a pass-through
// payloader for each track.

#include "presentation.h"

GstRTSPMediaFactory *media_factory_new (Presentation *presentation);
