// SPDX-License-Identifier: LGPL-2.1-or-later
#include "frames/picture_kind.h"

// A decoder of two streams, of which one is for transparency, is not meant.
static const PictureKind kinds[] = {
  { "H264", "rtph264depay", "h264parse", "video/x-h264", WEIR_CODEC_H264 },
  { "H265", "rtph265depay", "h265parse", "video/x-h265", WEIR_CODEC_H265 },
  { "VP8", "rtpvp8depay", NULL, "video/x-vp8,codec-alpha=false", WEIR_CODEC_VP8 },
  { "VP9", "rtpvp9depay", "vp9parse", "video/x-vp9,codec-alpha=false", WEIR_CODEC_VP9 },
  { "AV1", "rtpav1depay", "av1parse", "video/x-av1", WEIR_CODEC_AV1 },
  { "JPEG", "rtpjpegdepay", NULL, "image/jpeg", WEIR_CODEC_OPAQUE },
};

const PictureKind *
picture_kind_find (const GstCaps *caps)
{
  const gchar *encoding =
      gst_structure_get_string (gst_caps_get_structure (caps, 0), "encoding-name");

  for (guint i = 0; encoding && i < G_N_ELEMENTS (kinds); i++) {
    if (g_ascii_strcasecmp (encoding, kinds[i].encoding) == 0)
      return &kinds[i];
  }
  return NULL;
}
