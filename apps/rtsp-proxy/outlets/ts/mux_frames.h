// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Makes of the frames of one track what a multiplexer takes: from the first one that a receiver can
// begin with, in the form of the container, with times of decoding. One thread at a time calls.

#include "frames/frame_chain.h"
#include "outlets/ts/carriage.h"
#include "outlets/ts/decode_times.h"

typedef struct {
  gboolean is_video, is_h264, is_byte_stream;
  gboolean waits; // frames are dropped until one needs none before it
  GstCaps *caps;  // of what is made; NULL: not known yet
  DecodeTimes times;
} MuxFrames;

// `caps` are of a track's packets, which the container can carry.
void mux_frames_init (MuxFrames *self, const Carriage *carriage, const GstCaps *caps);
void mux_frames_clear (MuxFrames *self);

// Sets the caps of the frames that follow.
void mux_frames_set_format (MuxFrames *self, const GstCaps *caps);

// Returns a buffer, or NULL if the frame is of no use. (transfer full)
GstBuffer *mux_frames_make (MuxFrames *self, const Frame *frame);
