// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <glib.h>

// The codecs that a reader offers, a bit for each.
typedef enum {
  WEBRTC_H264 = 1 << 0,
  WEBRTC_H265 = 1 << 1,
  WEBRTC_VP8 = 1 << 2,
  WEBRTC_VP9 = 1 << 3,
  WEBRTC_AV1 = 1 << 4,
  WEBRTC_OPUS = 1 << 5,
  WEBRTC_G722 = 1 << 6,
  WEBRTC_PCMU = 1 << 7,
  WEBRTC_PCMA = 1 << 8,
} WebrtcCodecs;

#define WEBRTC_VIDEO (WEBRTC_H264 | WEBRTC_H265 | WEBRTC_VP8 | WEBRTC_VP9 | WEBRTC_AV1)
#define WEBRTC_AUDIO (WEBRTC_OPUS | WEBRTC_G722 | WEBRTC_PCMU | WEBRTC_PCMA)

// Returns the codec of an encoding name in SDP, in any case; 0 if no browser has it.
WebrtcCodecs webrtc_codec_from_name (const gchar *name);

// Returns the names of the codecs of a set, such as "H264, OPUS", or NULL for none. (transfer full)
gchar *webrtc_codecs_dup_names (guint32 set);
