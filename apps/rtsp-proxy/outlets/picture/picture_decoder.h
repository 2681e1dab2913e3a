// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The line of keyframes that wait to become still pictures. One at a time is decoded, in a worker
// process, so pictures take one processor at most. A decoder that crashes or hangs ends with its
// worker.

#include <gst/gst.h>

typedef struct _PictureDecoder PictureDecoder;

// Both are called on the main thread.
typedef struct {
  // Gives the newest keyframe (frames/key_frame.h) and the caps of its packets, when its turn has
  // come (transfer full). Returns FALSE if there is none any more.
  gboolean (*take) (gpointer owner, guint width, GBytes **frame, GstCaps **caps);
  // The picture, or NULL and why there is none. `harmful`: the worker was lost. Called once for
  // each picture_decoder_ask() that returned TRUE.
  void (*done) (
      gpointer owner, guint width, GBytes *picture, const gchar *problem, gboolean harmful);
} PictureWanter;

PictureDecoder *picture_decoder_new (void);

// Asks for a picture that is `width` pixels wide at most; 0: of its own width. `owner` must stay
// until done(). Returns FALSE if too many wait. Call from any thread.
gboolean picture_decoder_ask (
    PictureDecoder *self, const PictureWanter *functions, gpointer owner, guint width);

// Ends the line: those that wait get no picture. Main thread only.
void picture_decoder_free (PictureDecoder *self);

typedef struct {
  guint64 made, failed; // since the start of the process
} PictureCounts;

// Call from any thread.
void picture_decoder_get_counts (PictureCounts *counts);
