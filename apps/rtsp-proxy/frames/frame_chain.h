// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Makes frames of the RTP packets of one track: a depayloader and a parser, without a thread or a
// queue. Each packet passes them in the thread that brings it.

#include "frames/frame_kind.h"
#include "svc/layerset.h"

#define FRAME_CHAIN_START                                                                          \
  (10 * (gint64) GST_SECOND) // of the elements' time: others may be negative

typedef struct {
  GstBuffer *data; // shared: take a reference, change nothing. Its PTS is FRAME_CHAIN_START later
  gint64 pts;      // ns, in the time of the packets
  gboolean key;    // a decoder can start with it
  gboolean lost;   // packets before it, or of it, were lost
  gboolean begins; // of H.264: it is an IDR picture, or has parameter sets
} Frame;

// Called in the thread that brings packets.
typedef struct {
  // `caps` are of the frame; the same pointer as long as they do not change.
  void (*frame) (gpointer owner, GstCaps *caps, const Frame *frame);
  // An element has failed, so no more frames come.
  void (*failed) (gpointer owner, const gchar *reason);
  // An element wants a keyframe. May be called from any thread.
  void (*wants_key) (gpointer owner);
} FrameChainCallbacks;

typedef struct _FrameChain FrameChain;

// Makes the elements. `caps` are of the packets, and of a kind that frame_kind_find() knows. Of a
// kind that has layers, only `layers` are taken, H.264 as plain H.264; NULL: all, as they are.
// Returns NULL and sets `error` if GStreamer lacks an element.
FrameChain *frame_chain_new (GstCaps *caps, const WeirLayerSet *layers,
    const FrameChainCallbacks *callbacks, gpointer owner, GError **error);

// From now on packets make frames.
void frame_chain_start (FrameChain *self);

// Passes a packet whose media time is `time`. Takes ownership of it. Call for one at a time.
void frame_chain_push (FrameChain *self, GstBuffer *packet, gint64 time);

// Waits for a packet that is on its way. Those that follow are dropped.
void frame_chain_stop (FrameChain *self);

// Returns the element that selects layers, or NULL. (transfer none)
GstElement *frame_chain_get_filter (FrameChain *self);

void frame_chain_free (FrameChain *self);
