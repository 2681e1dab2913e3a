// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What a cutter writes its segments and parts into: the window of a stream over HLS, or a
// recording. One thread at a time writes.

#include <glib.h>

#include "relay/relay_caps.h"

// What is known of a stream.
typedef struct {
  gchar *codecs; // "avc1.64001f,mp4a.40.2"
  guint width, height;
  guint channels;                 // of a track of sound
  gchar language[RELAY_LANGUAGE]; // likewise (relay/relay_caps.h); "": not known
  gdouble frame_rate;             // 0: not known
  guint64 average, peak;          // bits a second
} SegmentFormat;

typedef struct _SegmentOutput SegmentOutput;

// No function may block.
typedef struct {
  const gchar *name;    // for the log: "hls"
  const gchar *noun;    // for messages: "HLS"
  gboolean makes_files; // their beginnings have room for times of their own (mp4/times.h)
  // Sets the longest duration of a part, which never changes later.
  void (*set_part_target) (SegmentOutput *self, gint64 part_ns);
  // Begins a segment. `init` is its initialization segment if that differs from the one before, and
  // `format` what it holds; else both are NULL. `wall_us` is the time of its first frame, in us
  // since the epoch. `discontinuity`: its timestamps or its format do not continue those before.
  void (*begin_segment) (SegmentOutput *self, GBytes *init, const SegmentFormat *format,
      gint64 wall_us, gboolean discontinuity);
  // Adds a part to the segment. `independent`: a decoder can start with it. Takes ownership of
  // `data`, which is NULL if nothing of a track of sound that has an output of its own has come.
  void (*add_part) (SegmentOutput *self, GBytes *data, gint64 duration_ns, gboolean independent);
  void (*end_segment) (SegmentOutput *self);
  // Returns the longest allowed duration of a segment in ns; 0 if the first one sets it.
  gint64 (*get_segment_max) (SegmentOutput *self);
  void (*ref) (SegmentOutput *self);
  void (*unref) (SegmentOutput *self);
} SegmentOutputOps;

struct _SegmentOutput {
  const SegmentOutputOps *ops;
};
