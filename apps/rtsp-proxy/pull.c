// SPDX-License-Identifier: LGPL-2.1-or-later
#include "pull.h"

#include <time.h>

// By the beginning of an element's name; the first that fits counts.
static const struct {
  const gchar *element;
  const gchar *package;
} packages[] = {
  { "av1", "gstreamer1.0-plugins-bad" },
  { "av", "gstreamer1.0-libav" },
  { "x264enc", "gstreamer1.0-plugins-ugly" },
  { "appsink", "gstreamer1.0-plugins-base" },
  { "audioconvert", "gstreamer1.0-plugins-base" },
  { "audiorate", "gstreamer1.0-plugins-base" },
  { "audioresample", "gstreamer1.0-plugins-base" },
  { "audiotestsrc", "gstreamer1.0-plugins-base" },
  { "decodebin", "gstreamer1.0-plugins-base" },
  { "opusenc", "gstreamer1.0-plugins-base" },
  { "opusdec", "gstreamer1.0-plugins-base" },
  { "parsebin", "gstreamer1.0-plugins-base" },
  { "uridecodebin", "gstreamer1.0-plugins-base" },
  { "video", "gstreamer1.0-plugins-base" },
  { "aacparse", "gstreamer1.0-plugins-good" },
  { "alaw", "gstreamer1.0-plugins-good" },
  { "auto", "gstreamer1.0-plugins-good" },
  { "flv", "gstreamer1.0-plugins-good" },
  { "imagefreeze", "gstreamer1.0-plugins-good" },
  { "jpeg", "gstreamer1.0-plugins-good" },
  { "lame", "gstreamer1.0-plugins-good" },
  { "matroska", "gstreamer1.0-plugins-good" },
  { "mpegaudioparse", "gstreamer1.0-plugins-good" },
  { "mulaw", "gstreamer1.0-plugins-good" },
  { "pulse", "gstreamer1.0-plugins-good" },
  { "qt", "gstreamer1.0-plugins-good" },
  { "rtp", "gstreamer1.0-plugins-good" },
  { "rtsp", "gstreamer1.0-plugins-good" },
  { "udp", "gstreamer1.0-plugins-good" },
  { "v4l2", "gstreamer1.0-plugins-good" },
  { "vp8", "gstreamer1.0-plugins-good" },
  { "vp9", "gstreamer1.0-plugins-good" },
  { "fdkaac", "gstreamer1.0-plugins-bad" },
  { "h264parse", "gstreamer1.0-plugins-bad" },
  { "h265parse", "gstreamer1.0-plugins-bad" },
  { "mpegts", "gstreamer1.0-plugins-bad" },
  { "openh264", "gstreamer1.0-plugins-bad" },
  { "opusparse", "gstreamer1.0-plugins-bad" },
  { "srt", "gstreamer1.0-plugins-bad" },
  { "ts", "gstreamer1.0-plugins-bad" },
  { "voaac", "gstreamer1.0-plugins-bad" },
  { "x265enc", "gstreamer1.0-plugins-bad" },
};

gint64
pull_now (void)
{
  struct timespec now;

  clock_gettime (CLOCK_MONOTONIC, &now);
  return (gint64) now.tv_sec * GST_SECOND + now.tv_nsec;
}

gchar *
pull_missing (const gchar *element)
{
  for (guint i = 0; i < G_N_ELEMENTS (packages); i++) {
    if (g_str_has_prefix (element, packages[i].element))
      return g_strdup_printf (
          "GStreamer's %s is missing (Debian: %s)", element, packages[i].package);
  }
  return g_strdup_printf ("GStreamer has no element \"%s\" here", element);
}

GstElement *
pull_make (const gchar *element, GError **error)
{
  GstElement *made = gst_element_factory_make (element, NULL);
  gchar *missing;

  if (!made) {
    missing = pull_missing (element);
    g_set_error_literal (error, GST_CORE_ERROR, GST_CORE_ERROR_MISSING_PLUGIN, missing);
    g_free (missing);
  }
  return made;
}

GstElement *
pull_new (const PullContext *context, GError **error)
{
  switch (context->config->kind) {
    case PULL_FILE:
      return file_pull_new (context, error);
    case PULL_TS:
      return ts_pull_new (context, error);
    case PULL_RTP:
    case PULL_SDP:
      return rtp_pull_new (context, error);
    case PULL_LAUNCH:
      return launch_pull_new (context, error);
    case PULL_FOLDER:
      g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND, "%s is a folder",
          context->config->path);
      return NULL;
    default:
      return rtsp_pull_new (context, error);
  }
}
