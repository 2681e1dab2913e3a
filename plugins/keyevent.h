// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The event GstForceKeyUnit, which asks an encoder or an RTP session upstream for a keyframe.

#include <gst/gst.h>

#define WEIR_KEY_EVENT "GstForceKeyUnit"

// Returns an event that asks for a keyframe with its parameter sets as soon as possible. `count` is
// the number of the caller's request, from 0. The caller owns the result.
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
