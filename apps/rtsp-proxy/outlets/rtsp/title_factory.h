// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A media factory of gst-rtsp-server that returns the media of an open title.

#include <gst/rtsp-server/rtsp-server.h>

GstRTSPMediaFactory *title_factory_new (GstRTSPMedia *media);
