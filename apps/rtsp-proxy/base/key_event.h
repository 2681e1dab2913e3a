// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// GstForceKeyUnit: the event upstream that asks an encoder, or an RTP session, for a keyframe.

#include <gst/gst.h>

gboolean key_event_is (GstEvent *event);

// As soon as can be, with its parameter sets.
GstEvent *key_event_new (void);
