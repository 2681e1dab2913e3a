// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The frames of one track that wait to be written. Decode times are the presentation times, sorted:
// RTP carries no others. That needs as many frames ahead as the stream reorders. For one thread at
// a time.

#include <gst/gst.h>

#include "mp4/fragment.h"
#include "mp4/track.h"

typedef struct {
  GstBuffer *data;
  gint64 pts, dts; // ns
  gint64 wall_us;
  gboolean key;
} SegmentFrame;

typedef struct {
  WeirMp4Track mp4; // `config` is NULL until the format is known
  GArray *frames;   // of SegmentFrame, in the order of decoding; the first `n_timed` have a `dts`
  guint n_timed;
  GArray *times;    // of gint64: presentation times that are no frame's decode time yet, sorted
  guint depth;      // frames ahead
  gboolean is_live; // the depth is known, so frames get their times as they come
  gint64 last_dts;
  gint64 typical_ns; // duration of a frame
  gint64 shift_ns;   // by which decode times are written earlier, so that none is after its frame's
                     // presentation time: some readers take negative offsets for a delay
  gsize bytes;       // of `frames`
} SegmentTrack;

void segment_track_init (SegmentTrack *self, WeirMp4Codec codec);
void segment_track_clear (SegmentTrack *self);

// Copies the format, and reports whether it differs.
gboolean segment_track_set_format (SegmentTrack *self, const WeirMp4Track *format);

// Takes ownership of `data`.
void segment_track_add (
    SegmentTrack *self, GstBuffer *data, gint64 pts, gboolean key, gint64 wall_us);

// Measures how far the frames so far are reordered, and how long a frame lasts, and times them.
void segment_track_measure (SegmentTrack *self);

// Times all frames: no others follow.
void segment_track_flush (SegmentTrack *self);

// Drops the first `n` frames.
void segment_track_drop (SegmentTrack *self, guint n);

static inline SegmentFrame *
segment_track_nth (const SegmentTrack *self, guint i)
{
  return &g_array_index (self->frames, SegmentFrame, i);
}

// Returns the decode time after frame `i`, which is timed.
gint64 segment_track_get_end (const SegmentTrack *self, guint i);

// Returns a time in units of the track's timescale.
gint64 segment_track_get_ticks (const SegmentTrack *self, gint64 ns);

// Fills `samples` for the first `n` frames, and `run`.
void segment_track_fill (
    const SegmentTrack *self, guint n, WeirMp4Sample *samples, WeirMp4Run *run);
