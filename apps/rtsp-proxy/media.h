// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the RTSP library serves of a mount: one shared media with a feed and a pass-through
// payloader for each track.

#include "mount.h"

// A factory for the mount.
GstRTSPMediaFactory *media_factory_new (Mount *mount);
