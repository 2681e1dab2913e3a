// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "weir-rtsp.h"

// Reports whether a media is a WEIR_TYPE_RELAY_MEDIA.
gboolean weir_is_relay_media (GstRTSPMedia *media);

// The lower transport that a UDP transport of such a media says while gst-rtsp-server completes the
// streams for a PLAY: all allowed ones at once, for which it makes no element.
#define WEIR_RELAY_LOWER_TRANS                                                                     \
  ((GstRTSPLowerTrans) (GST_RTSP_LOWER_TRANS_UDP | GST_RTSP_LOWER_TRANS_TCP))
