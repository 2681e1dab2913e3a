// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the library asks for a title that is open: one media, that of the title.

#include <gst/rtsp-server/rtsp-server.h>

GstRTSPMediaFactory *title_factory_new (GstRTSPMedia *media);
