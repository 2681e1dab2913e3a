// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The streams of layer sets: each is made once out of the fan-out's window, in a window of its own,
// for all readers who want that set.
//
// Packets are gathered into frames and read once, as they come (frame.h). Each frame is projected
// (project.h) for every set in use as soon as it is whole. A packet of such a stream keeps the
// position that it has in the fan-out's window, so that a reader's cursor, and what is due to it,
// mean the same whatever it gets.
//
// A reader goes from one stream to another at the beginning of a frame, where a decoder survives
// it (layerset.h). Each stream tells how many packets it has left out before each frame, so the
// reader's sequence numbers go on.
//
// A stream is made when a reader waits for it, from what the window holds, and goes when nobody has
// used it for a while.

#include <stdatomic.h>

#include "svc/frame.h"
#include "svc/project.h"
#include "svc/rates.h"
#include "window/window.h"

#define LAYER_FRAMES 2048 // so far back readers change streams
#define LAYER_STREAMS 64

typedef struct {
  int64_t from; // the position of its first packet
  WeirPicture picture;
} LayerFrame;

// Before a frame, modulo 2^16.
typedef struct {
  uint16_t packets, pictures;
} LeftOut;

typedef struct {
  uint32_t id; // never 0, and of no other stream
  WeirLayerSet set;
  WeirProjection projection;
  WeirWindow window;
  int64_t first;      // the number of the frame it begins with
  unsigned n_readers; // under the lock
  unsigned n_unused;  // frames that nobody was there for
  LeftOut before, left_out[LAYER_FRAMES];
} LayerStream;

// A stream that readers wait for, and the frame where the first of them does.
typedef struct {
  WeirLayerSet set;
  int64_t frame;
} LayerWish;

typedef struct {
  // The writer's.
  WeirCodec codec;
  uint8_t dependency_id;
  WeirFrame frame;
  WeirSvc svc;
  WeirRates rates;
  WeirProjected how[WEIR_FRAME_PACKETS];
  int64_t positions[WEIR_FRAME_PACKETS]; // of the frame in hand, rising
  int64_t taken;                         // packets before it went into frames
  uint32_t last_id;
  int64_t key_asked_ns;

  // Written by the writer under the lock.
  bool on;
  WeirLayerSet top;   // the highest layers that were seen
  LayerFrame *frames; // a ring: number f is frames[f % LAYER_FRAMES]
  int64_t tail, head;
  int64_t covered; // packets before it lie in frames
  LayerStream *streams[LAYER_STREAMS];
  size_t n_streams;
  bool full; // one more was wanted

  // Under the lock.
  LayerWish wishes[LAYER_STREAMS];
  size_t n_wishes;

  atomic_uint generation; // counts what makes a reader look again
  atomic_bool key_wanted; // by a reader that waits for a key picture
} Layers;

void weir_layer_streams_init (Layers *layers);
void weir_layer_streams_free (Layers *layers);
void weir_layer_stream_free (LayerStream *stream);

// ---- with the lock held ----

// The set by its shortest name: -1 for what leaves nothing out of this stream.
WeirLayerSet weir_layer_streams_normal (const Layers *layers, WeirLayerSet set);

// The stream of a set in its normal form that has begun with this frame or before; NULL if there is
// none.
LayerStream *weir_layer_streams_find (const Layers *layers, WeirLayerSet set, int64_t frame);

void weir_layer_streams_wish (Layers *layers, WeirLayerSet set, int64_t frame);

// The number of the frame in which a position lies, which is less than `covered`; -1 if that is too
// long ago. And where a frame ends.
int64_t weir_layer_streams_frame_at (const Layers *layers, int64_t position);
int64_t weir_layer_streams_frame_end (const Layers *layers, int64_t frame);

static inline const LayerFrame *
layers_frame (const Layers *layers, int64_t frame)
{
  return &layers->frames[frame % LAYER_FRAMES];
}

static inline LeftOut
layer_stream_left_out (const LayerStream *stream, int64_t frame)
{
  return stream ? stream->left_out[frame % LAYER_FRAMES] : (LeftOut) { 0, 0 };
}
