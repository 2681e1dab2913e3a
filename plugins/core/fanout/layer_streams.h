// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The streams of layer sets. Each stream is made from the fan-out's window, once for all readers of
// its set, and has its own window.
//
// Packets are gathered into frames and read once, as they come (frame.h). Each complete frame is
// projected (project.h) for every layer set in use. A packet of such a stream keeps its position in
// the fan-out's window, so a reader's cursor and `due` count mean the same in every stream.
//
// A reader changes streams at the start of a frame at which a decoder survives the change
// (layerset.h). Each stream records how many packets it has left out before each frame, so that the
// reader's sequence numbers continue.
//
// A stream is made when a reader waits for it, from the packets in the window, and removed when no
// reader has used it for a while.

#include <stdatomic.h>

#include "svc/frame.h"
#include "svc/project.h"
#include "svc/rates.h"
#include "window/window.h"

#define LAYER_FRAMES 2048 // frames back from the head at which readers can change streams
#define LAYER_STREAMS 64

typedef struct {
  int64_t from; // position of its first packet
  WeirPicture picture;
} LayerFrame;

// Packets and pictures left out before a frame, modulo 2^16.
typedef struct {
  uint16_t packets, pictures;
} LeftOut;

typedef struct {
  uint32_t id; // unique, never 0
  WeirLayerSet set;
  WeirProjection projection;
  WeirWindow window;
  int64_t first;      // number of its first frame
  unsigned n_readers; // under the lock
  unsigned n_unused;  // frames since it had a reader
  LeftOut before, left_out[LAYER_FRAMES];
} LayerStream;

// A layer set that readers wait for, and the earliest frame at which one of them waits.
typedef struct {
  WeirLayerSet set;
  int64_t frame;
} LayerWish;

// What is known of the stream's layers.
typedef struct {
  WeirSvc svc;
  WeirRates rates;
} LayerInput;

// The current frame, as it is projected.
typedef struct {
  WeirProjected how[WEIR_FRAME_PACKETS];
  int64_t positions[WEIR_FRAME_PACKETS]; // rising
} LayerWork;

typedef struct {
  // For the writer only.
  WeirCodec codec;
  uint8_t dependency_id;
  WeirFrame frame;
  LayerInput *input; // NULL until the codec has layers
  LayerWork *work;   // NULL until there is a stream
  int64_t taken;     // packets before this position have been added to frames
  uint32_t last_id;
  int64_t key_asked_ns;

  // Written by the writer only, under the lock.
  bool on;
  WeirLayerSet top;   // highest layers seen
  LayerFrame *frames; // a ring: frame f is frames[f % frames_size]
  int64_t frames_size;
  int64_t tail, head;
  int64_t covered; // packets before this position are in complete frames
  LayerStream *streams[LAYER_STREAMS];
  size_t n_streams;
  bool full; // there was no room for a stream that a reader waits for

  // Under the lock.
  LayerWish wishes[LAYER_STREAMS];
  size_t n_wishes;

  atomic_uint generation; // incremented when readers must choose their stream again
  atomic_bool key_wanted; // a reader waits for a key picture
} Layers;

// Initialise and free the streams of an engine, and free one stream. Not under the lock.
void weir_layer_streams_init (Layers *layers);
void weir_layer_streams_free (Layers *layers);
void weir_layer_stream_free (LayerStream *stream);

// ---- under the lock ----

// Normalises a set: -1 for a limit that excludes no layer of this stream.
WeirLayerSet weir_layer_streams_normal (const Layers *layers, WeirLayerSet set);

// Returns the stream of a normalised set that begins at this frame or before, or NULL.
LayerStream *weir_layer_streams_find (const Layers *layers, WeirLayerSet set, int64_t frame);

// Asks for the stream of a normalised set from this frame on. The writer makes it later.
void weir_layer_streams_wish (Layers *layers, WeirLayerSet set, int64_t frame);

// weir_layer_streams_frame_at() returns the number of the frame that holds `position` (less than
// `covered`), or -1 if that is too long ago. weir_layer_streams_frame_end() returns the position
// after a frame.
int64_t weir_layer_streams_frame_at (const Layers *layers, int64_t position);
int64_t weir_layer_streams_frame_end (const Layers *layers, int64_t frame);

static inline const LayerFrame *
layers_frame (const Layers *layers, int64_t frame)
{
  return &layers->frames[frame % layers->frames_size];
}

static inline LeftOut
layer_stream_left_out (const LayerStream *stream, int64_t frame)
{
  return stream ? stream->left_out[frame % LAYER_FRAMES] : (LeftOut) { 0, 0 };
}
