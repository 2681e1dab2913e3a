// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Gives an owner the frames of one track of a relay. All owners of a track share one depayloader
// and one parser, unless their wishes differ. These run from the first taker to the last, in the
// upstream's threads. Times are in sync between the tracks of a relay (relay/synced_sink.h). Call
// from the main thread only.

#include "frames/frame_chain.h"
#include "relay/relay.h"

typedef struct _FrameTaker FrameTaker;

// The first frames that a taker wants.
typedef enum {
  FRAMES_FROM_NOW,
  FRAMES_FROM_HELD,  // those of the packets that the relay holds for readers, if it does
  FRAMES_FROM_START, // the first of a run: the taker is what relay_await_sink() has announced
} FrameStart;

typedef struct {
  WeirLayerSet layers; // of video
  gboolean plain;      // of H.264: as plain H.264, without units of SVC
  FrameStart start;
} FrameWish;

typedef struct {
  // Called in the upstream's threads, for one packet or frame of the track at a time. Must not
  // block.
  void (*arrived) (gpointer owner, gint64 time); // a packet, before its frame; may be NULL
  // The frames that follow have these caps. Called before the first frame, and when they change.
  void (*format) (gpointer owner, const GstCaps *caps);
  void (*frame) (gpointer owner, const Frame *frame);
  // None of those above is called any more. After frame_taker_free(), from any thread.
  void (*ended) (gpointer owner);
  // No more frames come. Called on the main thread, not after frame_taker_free().
  void (*failed) (gpointer owner, const gchar *reason);
} FrameTakerFunctions;

// `caps` are of the relay's track `number`, and of a kind that frame_kind_find() knows. Returns
// NULL and sets `error` if GStreamer lacks an element.
FrameTaker *frame_taker_new (
    Relay *relay, guint number, GstCaps *caps, const FrameWish *wish, GError **error);

// Begins. Asks for a keyframe of video. `label` is for the log.
void frame_taker_start (
    FrameTaker *self, const FrameTakerFunctions *functions, gpointer owner, const gchar *label);

// Returns the element that selects layers, or NULL. (transfer none)
GstElement *frame_taker_get_filter (FrameTaker *self);

void frame_taker_free (FrameTaker *self);
