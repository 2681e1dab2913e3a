// SPDX-License-Identifier: LGPL-2.1-or-later
#include "probe.h"

#include "disks/index.h"

#include <gst/pbutils/pbutils.h>

static void
take_info (Probe *self, GstDiscovererInfo *info)
{
  GstDiscovererStreamInfo *stream = gst_discoverer_info_get_stream_info (info);
  GstCaps *caps = stream ? gst_discoverer_stream_info_get_caps (stream) : NULL;
  GstClockTime duration = gst_discoverer_info_get_duration (info);

  if (GST_CLOCK_TIME_IS_VALID (duration) && duration > 0 && duration < G_MAXINT64)
    self->duration_ns = (gint64) duration;
  if (caps) {
    self->caps = gst_caps_to_string (caps);
    gst_caps_unref (caps);
  }
  if (stream)
    gst_discoverer_stream_info_unref (stream);
}

void
probe_file (Probe *self, const gchar *path)
{
  g_autofree gchar *uri = gst_filename_to_uri (path, NULL);
  GError *error = NULL;
  GstDiscoverer *discoverer = gst_discoverer_new (30 * GST_SECOND, &error);
  GstDiscovererInfo *info =
      discoverer && uri ? gst_discoverer_discover_uri (discoverer, uri, &error) : NULL;

  *self = (Probe) { .duration_ns = WEIR_INDEX_NO_TIME };
  if (info) {
    take_info (self, info);
    gst_discoverer_info_unref (info);
  }
  if (error)
    self->problem = g_strdup (error->message);
  g_clear_error (&error);
  if (!self->caps)
    self->caps = g_strdup ("");
  g_clear_object (&discoverer);
}

void
probe_clear (Probe *self)
{
  g_free (self->caps);
  g_free (self->problem);
}
