// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// An element that reads a media file and gives out its tracks as RTP, each packet at its time. It
// adds pad src_N for track N once it knows the track, and emits no-more-pads after the last one.
// The payloader of pad src_N is called pay_src_N. Tracks count in the order in which they are
// found.

#include <gst/gst.h>

// Returns the element (floating reference) for the open file `fd`. The caller keeps `fd` open as
// long as the element exists.
GstElement *title_file_new (int fd);

// Drops the packets of a track that no reader has set up, or lets them pass again. Call from any
// thread.
void title_file_mute (GstElement *self, guint track, gboolean muted);

// Sends a gap on each track that has no data queued, so that no paused sink waits for its data.
void title_file_fill_gaps (GstElement *self);

// Call after a seek. Returns the time in ns of the keyframe that the first frames depend on, if the
// keyframe was dropped because it lies before the seek position. Returns GST_CLOCK_TIME_NONE if all
// video tracks begin with a keyframe, as they do after most seeks.
GstClockTime title_file_get_lead (GstElement *self);

// Returns the duration of the longest track in ns, or -1 if it is unknown.
gint64 title_file_get_duration (GstElement *self);

// Reports whether the file is a stream without a container. Such a stream has no index, so it
// cannot seek.
gboolean title_file_is_raw (GstElement *self);
