// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/pull.h"

#include "base/element_home.h"

#include <time.h>

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
  const ElementHome *home = element_home_find (element);

  if (home && home->package)
    return g_strdup_printf ("GStreamer's %s is missing (Debian: %s)", element, home->package);
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
