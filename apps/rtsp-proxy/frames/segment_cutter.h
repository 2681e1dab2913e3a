// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Cuts the frames of all tracks of a stream into parts and segments, and writes them into outputs:
// one for all tracks, or some for a track each. The first video track leads, or the first audio
// track: segments begin with its keyframes, and parts end between its frames, at the same time in
// all outputs. Call from any thread.

#include <gst/gst.h>

#include "mp4/track.h"
#include "frames/segment_output.h"

#define SEGMENT_TRACKS_MAX 8

typedef struct {
  gint64 segment_ns; // shortest duration of a segment, which ends before the next keyframe
  gint64 part_ns;    // duration of a part, of whole frames
} SegmentLengths;

typedef struct _SegmentCutter SegmentCutter;

typedef struct {
  WeirMp4Codec codec;
  guint output;          // that the track goes into
  const gchar *language; // in a form of relay_caps_get_language(), or NULL
} SegmentCutterTrack;

// The track that leads goes into the first of the outputs, of which there are 1 to
// SEGMENT_TRACKS_MAX. Each of the others is for one track of sound. `label` is for the log.
SegmentCutter *segment_cutter_new (SegmentOutput *const *outputs, guint n_outputs,
    const SegmentLengths *lengths, const gchar *label, const SegmentCutterTrack *tracks,
    guint n_tracks);

SegmentCutter *segment_cutter_ref (SegmentCutter *self);
void segment_cutter_unref (SegmentCutter *self);

// Writes the frames that wait, and ends the segment. Frames that follow are dropped.
void segment_cutter_end (SegmentCutter *self);

// Sets what the frames that follow are: a track of `codec`, whose record is `config`. If that
// differs from before, a discontinuity begins. A track that has an output of its own and begins
// late makes none.
void segment_cutter_set_format (SegmentCutter *self, guint track, const WeirMp4Track *format);

// Adds a frame, in the order of decoding. `pts` is in ns, on the same clock for all tracks.
// `wall_us` is when it was taken, or when it arrived, in us since the epoch. Takes ownership of
// `frame`.
void segment_cutter_add (
    SegmentCutter *self, guint track, GstBuffer *frame, gint64 pts, gboolean key, gint64 wall_us);

// Writes all frames that have come, and ends the segment. What follows begins a discontinuity.
void segment_cutter_interrupt (SegmentCutter *self);
