// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/tracks_kind.h"

#include "base/element.h"
#include "sources/loas.h"
#include "sources/param_sets.h"

static const TracksKind kinds[] = {
  { "video/x-h264", "h264parse ! video/x-h264,alignment=au",
      "rtph264pay config-interval=0 aggregate-mode=zero-latency", TRUE, 0,
      "encoding-name=(string)H264, packetization-mode=(string)1" },
  { "video/x-h265", "h265parse ! video/x-h265,alignment=au",
      "rtph265pay config-interval=-1 aggregate-mode=zero-latency", TRUE, 0,
      "encoding-name=(string)H265" },
  { "video/mpeg, mpegversion=(int){ 1, 2 }, systemstream=(boolean)false", "mpegvideoparse",
      "rtpmpegvpay", TRUE, 32, "encoding-name=(string)MPV" },
  { "video/x-vp8", "identity", "rtpvp8pay", TRUE },
  { "video/x-vp9", "identity", "rtpvp9pay", TRUE },
  { "audio/mpeg, mpegversion=(int)4, stream-format=(string){ raw, adts, adif, loas }",
      LOAS_ELEMENT " name=" LOAS_NAME " ! aacparse", "rtpmp4gpay", FALSE },
  { "audio/mpeg, mpegversion=(int)2", "aacparse", "rtpmp4gpay", FALSE },
  { "audio/mpeg, mpegversion=(int)1", "mpegaudioparse", "rtpmpapay", FALSE, 14 },
  { "audio/x-opus", "identity", "rtpopuspay", FALSE },
};

#define DECODED                                                                                    \
  " ! audioconvert ! audioresample ! audio/x-raw,format=S16BE,rate=48000,channels=[1,2]"

// If there are several decoders, the first one that is installed is used.
static const TracksKind sounds[] = {
  { "audio/x-vorbis", "vorbisdec" DECODED, "rtpL16pay", .decoder = "vorbisdec" },
  { "audio/x-flac", "flacparse ! flacdec" DECODED, "rtpL16pay", .decoder = "flacdec" },
  { "audio/x-raw", "identity" DECODED, "rtpL16pay", .decoder = "audioconvert" },
  { "audio/x-alaw", "alawdec" DECODED, "rtpL16pay", .decoder = "alawdec" },
  { "audio/x-mulaw", "mulawdec" DECODED, "rtpL16pay", .decoder = "mulawdec" },
  { "audio/x-ac3", "ac3parse ! a52dec" DECODED, "rtpL16pay", .decoder = "a52dec" },
  { "audio/x-ac3", "ac3parse ! avdec_ac3" DECODED, "rtpL16pay", .decoder = "avdec_ac3" },
  { "audio/x-eac3", "ac3parse ! avdec_eac3" DECODED, "rtpL16pay", .decoder = "avdec_eac3" },
  { "audio/x-dts", "dcaparse ! avdec_dca" DECODED, "rtpL16pay", .decoder = "avdec_dca" },
  { "audio/x-alac", "avdec_alac" DECODED, "rtpL16pay", .decoder = "avdec_alac" },
};

static gboolean
fits (const TracksKind *kind, const GstCaps *caps)
{
  GstCaps *match = gst_caps_from_string (kind->caps);
  gboolean fits = gst_caps_can_intersect (caps, match);

  gst_caps_unref (match);
  return fits;
}

const TracksKind *
tracks_find_sound (GstCaps *caps)
{
  const TracksKind *found = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (sounds) && !gst_caps_is_any (caps); i++) {
    if (!fits (&sounds[i], caps))
      continue;
    found = &sounds[i];
    if (element_is_there (found->decoder))
      break;
  }
  return found;
}

const TracksKind *
tracks_find_kind (GstCaps *caps)
{
  loas_register ();
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++) {
    if (fits (&kinds[i], caps))
      return &kinds[i];
  }
  return NULL;
}

// Gives a picture without a presentation time its decoding time: AVI has no other, and the
// payloader would give it the time of the picture before. rtpmpegvpay finds the times by itself.
static GstPadProbeReturn
complete_time (GstPad *pad, GstPadProbeInfo *info, gpointer unused)
{
  GstBuffer *picture = GST_PAD_PROBE_INFO_BUFFER (info);

  if (GST_BUFFER_PTS_IS_VALID (picture) || !GST_BUFFER_DTS_IS_VALID (picture))
    return GST_PAD_PROBE_OK;
  info->data = picture = gst_buffer_make_writable (picture);
  GST_BUFFER_PTS (picture) = GST_BUFFER_DTS (picture);
  return GST_PAD_PROBE_OK;
}

void
tracks_kind_prepare (const TracksKind *kind, GstElement *branch, const gchar *payloader)
{
  GstElement *element;
  GstPad *pad;

  if (!g_str_has_prefix (kind->payloader, "rtph26"))
    return;
  element = gst_bin_get_by_name (GST_BIN (branch), payloader);
  pad = gst_element_get_static_pad (element, "sink");
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, complete_time, NULL, NULL);
  if (g_str_has_prefix (kind->payloader, "rtph264pay"))
    param_sets_add (element);
  gst_object_unref (pad);
  gst_object_unref (element);
}
