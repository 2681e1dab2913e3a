// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What reads a file and makes RTP of its tracks, each packet at its time: the element of a media.

#include <gst/gst.h>

// By a descriptor, which must stay open until it has ended.
GstElement *title_file_new (int fd);

// Nobody takes this track, or somebody does; they count in the order in which they were found.
void title_file_mute (GstElement *self, guint track, gboolean muted);

// It is paused: tracks of which nothing is there have a gap, so that no sink waits for them.
void title_file_fill_gaps (GstElement *self);

// After a seek: when the keyframe is to be shown that what comes depends on, but that is left out
// as it is before the place; GST_CLOCK_TIME_NONE, as a rule: it begins with the keyframe.
GstClockTime title_file_get_lead (GstElement *self);

// That of the longest track, in ns; -1: unknown.
gint64 title_file_get_duration (GstElement *self);

// A stream without a container: there are no times in it to go to.
gboolean title_file_is_raw (GstElement *self);
