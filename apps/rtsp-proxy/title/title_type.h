// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The types of files that are served as titles.

#include <gst/gst.h>

typedef struct {
  const gchar *caps;
  const gchar *demuxer; // NULL: a raw stream
  GstClockTime early;   // by this, a seek must begin before the position
} TitleType;

// Returns NULL if files of this type are not served.
const TitleType *title_type_find (const GstCaps *caps);

// Keeps from a demuxer of this name what it does not take as it is in files. Call before it gets
// its first byte, in the thread that reads from `source`.
void title_type_guard (const gchar *name, GstElement *demuxer, GstElement *source);

// Sets the timestamps of a frame of a raw stream of video, which has none, from the frame rate of
// the pad's caps. The default is 25 frames/s. `n` is the number of frames before it. Takes and
// returns the frame.
GstBuffer *title_type_stamp (GstPad *pad, GstBuffer *frame, guint64 n);

// Makes a seek without an end position play to the end of the title; otherwise demuxers keep the
// end position of the previous seek. The seek begins before the position by `early`. Takes the
// event, and returns what is to be sent in its place.
GstEvent *title_type_change_seek (GstEvent *event, GstClockTime early);
