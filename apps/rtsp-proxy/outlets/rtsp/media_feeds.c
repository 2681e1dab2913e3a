// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/media_feeds.h"

#include "relay/feed.h"

static Feed *
find_feed (GstRTSPMedia *media, guint i)
{
  g_autoptr (GstElement) bin = gst_rtsp_media_get_element (media);
  g_autofree gchar *name = g_strdup_printf ("feed%u", i);
  GstElement *feed = gst_bin_get_by_name (GST_BIN (bin), name);

  return (Feed *) feed;
}

void
media_feeds_attach (GstRTSPMedia *media, Relay *relay)
{
  for (guint i = 0; i < gst_rtsp_media_n_streams (media); i++) {
    Feed *feed = find_feed (media, i);

    if (feed) {
      feed_attach (feed, relay, i);
      gst_object_unref (feed);
    }
  }
}

void
media_feeds_detach (GstRTSPMedia *media, Relay *relay)
{
  for (guint i = 0; i < gst_rtsp_media_n_streams (media); i++) {
    Feed *feed = find_feed (media, i);

    if (feed) {
      feed_detach (feed, relay);
      gst_object_unref (feed);
    }
  }
}

void
media_feeds_flush (GstRTSPMedia *media)
{
  for (guint i = 0; i < gst_rtsp_media_n_streams (media); i++) {
    Feed *feed = find_feed (media, i);

    if (feed) {
      feed_flush (feed);
      gst_object_unref (feed);
    }
  }
}
