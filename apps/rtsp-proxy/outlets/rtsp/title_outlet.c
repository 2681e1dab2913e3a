// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/title_outlet.h"

#include "outlets/rtsp/media_loop.h"
#include "outlets/rtsp/title_factory.h"
#include "outlets/rtsp/title_media.h"

static GObject *
make (int fd, const gchar *label)
{
  return G_OBJECT (title_media_new (fd, label));
}

static gboolean
open_media (GObject *media, GError **error)
{
  return title_media_prepare (GST_RTSP_MEDIA (media), media_loop_new (), error);
}

static void
release (GObject *media)
{
  gst_rtsp_media_unprepare (GST_RTSP_MEDIA (media));
}

static void
give_up (GObject *media)
{
  title_media_give_up (GST_RTSP_MEDIA (media));
}

static void
publish (GObject *media, const gchar *path, GObject *points)
{
  gst_rtsp_mount_points_add_factory (
      GST_RTSP_MOUNT_POINTS (points), path, title_factory_new (GST_RTSP_MEDIA (media)));
}

static void
withdraw (const gchar *path, GObject *points)
{
  gst_rtsp_mount_points_remove_factory (GST_RTSP_MOUNT_POINTS (points), path);
}

const TitleOutlet title_outlet = { make, open_media, release, give_up, publish, withdraw };
