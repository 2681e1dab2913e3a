// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The video of a rendition as readers over RTSP get it who have asked for the mount's own stream: a
// feed and a fanoutsink, whose window serves readers of other sinks (`splice`). It runs as long as
// a reader uses it, once for all of them. Call from the main thread, unless the function says
// otherwise.

#include "mounts/presentation.h"

typedef struct _RenditionSink RenditionSink;

// Returns the sink of the presentation's first video track; NULL if it has none. The presentation
// must be READY and in use as long as it is to send. (transfer full)
RenditionSink *rendition_sink_get (Presentation *presentation);
void rendition_sink_unref (RenditionSink *self); // any thread

gboolean rendition_sink_is_of (const RenditionSink *self, const Presentation *presentation);
GstElement *rendition_sink_get_element (const RenditionSink *self);

// Sets by how many ticks, modulo 2^32, the RTP timestamp of an instant of track `number` of `own`
// is ahead of that of the same instant here. Returns FALSE if their media do not come from one
// origin.
gboolean rendition_sink_get_ahead (
    const RenditionSink *self, Relay *own, guint number, guint32 *ahead);

// Asks the source for a keyframe at `now`, clock_now().
void rendition_sink_ask_key (RenditionSink *self, gint64 now);
