// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/ts/carriage.h"

#include "relay/left_out.h"

static const CarriageRow ts_rows[] = {
  { "H264", TRUE },
  { "H265", TRUE },
  { "MPV" },
  { "MPEG4-GENERIC" },
  { "MP4A-LATM" },
  { "OPUS" },
  { "MPA" },
  { "AC3" },
  { NULL },
};

static const CarriageRow flv_rows[] = {
  { "H264" },
  { "MPEG4-GENERIC" },
  { "MP4A-LATM" },
  { "MPA" },
  { NULL },
};

const Carriage carriage_ts = { "MPEG-TS", "mpegtsmux name=mux alignment=0 pcr-interval=900",
  ts_rows, 8, 8, "", "", FALSE };
const Carriage carriage_flv = { "FLV", "flvmux name=mux streamable=true start-time-selection=first",
  flv_rows, 1, 1, "video", "audio", TRUE };

const CarriageRow *
carriage_find (const Carriage *self, const GstCaps *caps)
{
  const gchar *name = gst_structure_get_string (gst_caps_get_structure (caps, 0), "encoding-name");

  for (const CarriageRow *row = self->rows; row->encoding; row++) {
    if (name && !g_ascii_strcasecmp (name, row->encoding))
      return row;
  }
  return NULL;
}

static gboolean
is_video (const GstCaps *caps)
{
  return !g_strcmp0 (gst_structure_get_string (gst_caps_get_structure (caps, 0), "media"), "video");
}

guint32
carriage_choose (const Carriage *self, const GPtrArray *caps, gchar **left_out)
{
  GString *others = g_string_new (NULL);
  guint n_video = 0, n_audio = 0;
  guint32 tracks = 0;

  for (guint i = 0; i < caps->len; i++) {
    const GstCaps *track = g_ptr_array_index (caps, i);
    gboolean video = is_video (track);
    guint *n = video ? &n_video : &n_audio, max = video ? self->max_video : self->max_audio;

    if (!carriage_find (self, track)) {
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
carriage_dup_launch (const Carriage *self, const GPtrArray *caps, guint32 tracks, const gchar *tail)
{
  GString *text = g_string_new (NULL);

  g_string_append_printf (text, "%s ! %s ", self->mux,
      tail ? tail : "appsink name=out sync=false async=false buffer-list=true");
  for (guint i = 0; i < caps->len; i++) {
    if (tracks & 1u << i)
      g_string_append_printf (text,
          "appsrc name=in%u format=time max-bytes=16777216 leaky-type=downstream ! mux.%s ", i,
          is_video (g_ptr_array_index (caps, i)) ? self->video_pad : self->audio_pad);
  }
  return g_string_free (text, FALSE);
}
