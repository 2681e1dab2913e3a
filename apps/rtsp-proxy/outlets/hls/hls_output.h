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
} HlsFormat;

typedef struct _HlsOutput HlsOutput;

// No function may block.
typedef struct {
  const gchar *name;    // for the log: "hls"
  const gchar *noun;    // for messages: "HLS"
  gboolean makes_files; // their beginnings have room for times of their own (mp4/times.h)
  // Sets the longest duration of a part, which never changes later.
  void (*set_part_target) (HlsOutput *self, gint64 part_ns);
  // Begins a segment. `init` is its initialization segment if that differs from the one before, and
  // `format` what it holds; else both are NULL. `wall_us` is the time of its first frame, in us
  // since the epoch. `discontinuity`: its timestamps or its format do not continue those before.
  void (*begin_segment) (HlsOutput *self, GBytes *init, const HlsFormat *format, gint64 wall_us,
      gboolean discontinuity);
  // Adds a part to the segment. `independent`: a decoder can start with it. Takes ownership of
  // `data`, which is NULL if nothing of a track of sound that has an output of its own has come.
  void (*add_part) (HlsOutput *self, GBytes *data, gint64 duration_ns, gboolean independent);
  void (*end_segment) (HlsOutput *self);
  // Returns the longest allowed duration of a segment in ns; 0 if the first one sets it.
  gint64 (*get_segment_max) (HlsOutput *self);
  void (*ref) (HlsOutput *self);
  void (*unref) (HlsOutput *self);
} HlsOutputOps;

struct _HlsOutput {
  const HlsOutputOps *ops;
};
