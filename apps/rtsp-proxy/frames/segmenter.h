// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Takes the tracks of a relay, makes frames of their packets with GStreamer's depayloaders and
// parsers, and gives these to a cutter. Call from the main thread.

#include "frames/segment_cutter.h"
#include "relay/relay.h"
#include "svc/layerset.h"

typedef struct _Segmenter Segmenter;

// Starts. `caps` are of the relay's tracks. All tracks go into the first of the `n_outputs`
// outputs. Of more than one, the others are for further tracks of sound, then each in one of its
// own; only the first track of video is taken, and the first of sound is with it if it is the only
// one: browsers have one buffer for sound and one for video, and refuse segments with more tracks.
// `layers` are those to take of a video track with layers, and of H.264 the highest of these as
// plain H.264; NULL: all, as they are. `failed` runs on the main thread if a pipeline's element
// fails. Adds to `left_out` why tracks are left out (relay/left_out.h). Returns NULL if none is
// left.
Segmenter *segmenter_new (Relay *relay, GPtrArray *caps, SegmentOutput *const *outputs,
    guint n_outputs, const SegmentLengths *lengths, const WeirLayerSet *layers, const gchar *label,
    GString *left_out, void (*failed) (const gchar *reason, gpointer data), gpointer data);

// Writes all frames that have come, and ends the segment. What follows begins a discontinuity.
void segmenter_interrupt (Segmenter *self);

void segmenter_free (Segmenter *self);
