// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// GstForceKeyUnit: the upstream event that asks an encoder or an RTP session for a keyframe.

#include <gst/gst.h>

// Reports whether `event` is a GstForceKeyUnit event that goes upstream.
gboolean key_event_is (GstEvent *event);

// Returns a new event that asks for a keyframe with parameter sets as soon as possible
// (transfer full).
GstEvent *key_event_new (void);
