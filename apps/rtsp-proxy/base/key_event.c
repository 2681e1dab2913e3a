// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/key_event.h"

#define NAME "GstForceKeyUnit"

gboolean
key_event_is (GstEvent *event)
{
  return GST_EVENT_TYPE (event) == GST_EVENT_CUSTOM_UPSTREAM && gst_event_has_name (event, NAME);
}

GstEvent *
key_event_new (void)
{
  return gst_event_new_custom (GST_EVENT_CUSTOM_UPSTREAM,
      gst_structure_new (NAME, "running-time", GST_TYPE_CLOCK_TIME, GST_CLOCK_TIME_NONE,
          "all-headers", G_TYPE_BOOLEAN, TRUE, NULL));
}
