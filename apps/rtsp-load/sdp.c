// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "sdp.h"

#include "rtsp_text.h"

#include <gst/sdp/gstsdpmessage.h>
#include <stdio.h>

#define DEFAULT_CLOCK_RATE 90000
#define MAX_TRACKS 16

static GstSDPMessage *
parse (const guint8 *text, gsize len)
{
  GstSDPMessage *sdp = NULL;

  gst_sdp_message_new (&sdp);
  if (len > 0)
    gst_sdp_message_parse_buffer (text, (guint) len, sdp);
  return sdp;
}

static Track
make_track (const GstSDPMedia *media, const gchar *base)
{
  const gchar *kind = gst_sdp_media_get_media (media);
  const gchar *map = gst_sdp_media_get_attribute_val (media, "rtpmap");
  gchar name[32] = "";
  guint rate = 0;

  // "96 H264/90000"
  if (!map || sscanf (map, "%*u %31[^/]/%9u", name, &rate) != 2 || rate == 0)
    rate = DEFAULT_CLOCK_RATE;
  return (Track) {
    .control = rtsp_text_control (base, gst_sdp_media_get_attribute_val (media, "control")),
    .video = g_strcmp0 (kind, "video") == 0,
    .clock_rate = rate,
    .layers.codec = weir_codec_from_sdp (kind ? kind : "", name),
  };
}

static void
clear_track (gpointer track)
{
  g_free (((Track *) track)->control);
}

GArray *
sdp_tracks (
    const guint8 *text, gsize len, const gchar *base, gboolean video_only, const gchar **why)
{
  GstSDPMessage *sdp = parse (text, len);
  GArray *tracks = g_array_new (FALSE, TRUE, sizeof (Track));
  gboolean has_video = FALSE;

  g_array_set_clear_func (tracks, clear_track);
  for (guint i = 0; i < gst_sdp_message_medias_len (sdp) && tracks->len < MAX_TRACKS; i++) {
    Track track = make_track (gst_sdp_message_get_media (sdp, i), base);

    has_video = has_video || track.video;
    if (track.video || !video_only)
      g_array_append_val (tracks, track);
    else
      clear_track (&track);
  }
  if (!has_video) {
    *why = tracks->len || video_only ? "the description has no video"
                                     : "the description has no tracks";
    g_clear_pointer (&tracks, g_array_unref);
  }
  gst_sdp_message_free (sdp);
  return tracks;
}

gchar *
sdp_aggregate (const guint8 *text, gsize len, const gchar *base)
{
  GstSDPMessage *sdp = parse (text, len);
  gchar *uri = rtsp_text_control (base, gst_sdp_message_get_attribute_val (sdp, "control"));

  gst_sdp_message_free (sdp);
  return uri;
}
