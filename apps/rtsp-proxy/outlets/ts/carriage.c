// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/ts/carriage.h"

#include "relay/left_out.h"

// With avc, the depayloader's frames stay whole. Of a byte stream, h264parse would begin a frame at
// each parameter set, and some senders have those before each slice of a keyframe.
#define H264                                                                                       \
  "rtph264depay wait-for-keyframe=true ! video/x-h264,stream-format=avc,alignment=au ! "           \
  "h264parse config-interval=-1 ! "
// rtph265depay of GStreamer 1.22 has no wait-for-keyframe; h265parse waits for parameter sets.
#define H265                                                                                       \
  "rtph265depay ! video/x-h265,stream-format=byte-stream,alignment=au ! "                          \
  "h265parse config-interval=-1 ! "

static const CarriageRow ts_rows[] = {
  { "H264", H264 "video/x-h264,stream-format=byte-stream,alignment=au", TRUE },
  { "H265", H265 "video/x-h265,stream-format=byte-stream,alignment=au", TRUE },
  { "MPV", "rtpmpvdepay ! mpegvideoparse" },
  { "MPEG4-GENERIC", "rtpmp4gdepay ! aacparse" },
  { "MP4A-LATM", "rtpmp4adepay ! aacparse" },
  { "OPUS", "rtpopusdepay ! opusparse" },
  { "MPA", "rtpmpadepay ! mpegaudioparse" },
  { "AC3", "rtpac3depay ! ac3parse" },
  { NULL },
};

static const CarriageRow flv_rows[] = {
  { "H264", H264 "video/x-h264,stream-format=avc,alignment=au", TRUE },
  { "MPEG4-GENERIC", "rtpmp4gdepay ! aacparse ! audio/mpeg,stream-format=raw" },
  { "MP4A-LATM", "rtpmp4adepay ! aacparse ! audio/mpeg,stream-format=raw" },
  { "MPA", "rtpmpadepay ! mpegaudioparse ! audio/mpeg,layer=3" },
  { NULL },
};

const Carriage carriage_ts = { "MPEG-TS", "mpegtsmux name=mux alignment=0 pcr-interval=900",
  ts_rows, 8, 8, FALSE };
const Carriage carriage_flv = { "FLV", "flvmux name=mux streamable=true start-time-selection=first",
  flv_rows, 1, 1, TRUE };

static const CarriageRow *
find (const Carriage *self, const GstCaps *caps)
{
  const gchar *name = gst_structure_get_string (gst_caps_get_structure (caps, 0), "encoding-name");

  for (const CarriageRow *row = self->rows; row->encoding; row++) {
    if (name && !g_ascii_strcasecmp (name, row->encoding))
      return row;
  }
  return NULL;
}

guint32
carriage_choose (const Carriage *self, const GPtrArray *caps, gchar **left_out)
{
  GString *others = g_string_new (NULL);
  guint n_video = 0, n_audio = 0;
  guint32 tracks = 0;

  for (guint i = 0; i < caps->len; i++) {
    const GstCaps *track = g_ptr_array_index (caps, i);
    gboolean video =
        !g_strcmp0 (gst_structure_get_string (gst_caps_get_structure (track, 0), "media"), "video");
    guint *n = video ? &n_video : &n_audio, max = video ? self->max_video : self->max_audio;

    if (!find (self, track)) {
      left_out_add (others, i, "%s cannot carry %s", self->name, left_out_codec (track));
    } else if (*n == max) {
      left_out_add (others, i, "%s carries %u %s track%s at most", self->name, max,
          video ? "video" : "audio", max > 1 ? "s" : "");
    } else {
      tracks |= 1u << i;
      ++*n;
    }
  }
  *left_out = g_string_free (others, others->len == 0);
  return tracks;
}

gchar *
carriage_dup_launch (const Carriage *self, const GPtrArray *caps, guint32 tracks,
    WeirLayerSet layers, const gchar *tail)
{
  gchar *filter = g_strdup_printf (
      "svclayerfilter max-spatial=%d max-quality=%d max-temporal=%d output-mode=avc ! ",
      layers.spatial, layers.quality, layers.temporal);
  gboolean all = weir_layer_set_equal (layers, WEIR_LAYER_SET_ALL);
  GString *text = g_string_new (NULL);

  g_string_append_printf (text, "%s ! %s ", self->mux,
      tail ? tail : "appsink name=out sync=false async=false buffer-list=true");
  for (guint i = 0; i < caps->len; i++) {
    const CarriageRow *row = find (self, g_ptr_array_index (caps, i));

    if (tracks & 1u << i)
      g_string_append_printf (text,
          "appsrc name=in%u format=time max-bytes=8388608 leaky-type=downstream ! %s%s ! queue "
          "name=frames%u max-size-buffers=0 max-size-bytes=16777216 max-size-time=0 "
          "leaky=downstream ! mux. ",
          i, row->has_layers && !all ? filter : "", row->launch, i);
  }
  g_free (filter);
  return g_string_free (text, FALSE);
}
