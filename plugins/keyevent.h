// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// GstForceKeyUnit: the event upstream that asks an encoder, or an RTP session, for a key picture.

#include <gst/gst.h>

#define WEIR_KEY_EVENT "GstForceKeyUnit"

// As soon as can be, with its parameter sets. `count`: how many the one who asks has asked for.
static inline GstEvent *
weir_key_event_new (guint count)
{
  return gst_event_new_custom (GST_EVENT_CUSTOM_UPSTREAM,
      gst_structure_new (WEIR_KEY_EVENT, "running-time", GST_TYPE_CLOCK_TIME, GST_CLOCK_TIME_NONE,
          "all-headers", G_TYPE_BOOLEAN, TRUE, "count", G_TYPE_UINT, count, NULL));
}

static inline gboolean
weir_key_event_is (const GstEvent *event)
{
  return GST_EVENT_TYPE (event) == GST_EVENT_CUSTOM_UPSTREAM
         && gst_event_has_name ((GstEvent *) event, WEIR_KEY_EVENT);
}
