// SPDX-License-Identifier: LGPL-2.1-or-later
#include "frames/frame_kind.h"

// With avc and hvc1, the depayloader's frames stay whole. Of a byte stream, the parser would begin
// a frame at each parameter set, and some senders have those before each slice of a keyframe.
static const FrameKind kinds[] = {
  { "H264", "rtph264depay", "h264parse", "video/x-h264,stream-format=avc,alignment=au", TRUE,
      TRUE },
  { "H265", "rtph265depay", "h265parse", "video/x-h265,stream-format=hvc1,alignment=au", TRUE,
      TRUE },
  { "VP9", "rtpvp9depay", "vp9parse", "video/x-vp9,alignment=super-frame", TRUE, TRUE },
  { "AV1", "rtpav1depay", "av1parse", "video/x-av1,stream-format=obu-stream,alignment=tu", TRUE,
      TRUE },
  { "MPV", "rtpmpvdepay", "mpegvideoparse", "video/mpeg", TRUE },
  { "MPEG4-GENERIC", "rtpmp4gdepay", "aacparse", "audio/mpeg,mpegversion=4,stream-format=raw" },
  { "MP4A-LATM", "rtpmp4adepay", "aacparse", "audio/mpeg,mpegversion=4,stream-format=raw" },
  { "OPUS", "rtpopusdepay", "opusparse", "audio/x-opus" },
  { "MPA", "rtpmpadepay", "mpegaudioparse", "audio/mpeg,mpegversion=1" },
  { "AC3", "rtpac3depay", "ac3parse", "audio/x-ac3" },
};

const FrameKind *
frame_kind_find (const GstCaps *caps)
{
  const GstStructure *structure = gst_caps_get_structure (caps, 0);
  const gchar *encoding = gst_structure_get_string (structure, "encoding-name");

  for (guint i = 0; encoding && i < G_N_ELEMENTS (kinds); i++) {
    if (g_ascii_strcasecmp (encoding, kinds[i].encoding) == 0)
      return &kinds[i];
  }
  return NULL;
}

gboolean
frame_kind_has_sets (const FrameKind *self)
{
  return g_str_has_prefix (self->caps, "video/x-h26");
}
