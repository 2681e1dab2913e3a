// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Makes one stream of the layers of a publisher who sends the same pictures in several sizes at
// once (simulcast, RFC 8853). Each layer is an RTP stream of its own. A view is a stream with the
// pictures of one layer at a time: it changes the layer at a keyframe, and its sequence numbers and
// timestamps go on.
//
// - Layers are in order of their size, the largest first, as far as keyframes say it (codec/
//   picture_size.h); the others keep the order in which the publisher names them.
// - A view wants the layer of one rank. If that does not flow, it takes the next smaller one that
//   does, or else the next larger one.
// - A layer has stopped when it has been silent for WEIR_SIMULCAST_SILENCE_NS while another layer
//   sent WEIR_SIMULCAST_FRAMES pictures: a publisher whose pictures stand still sends few of all.
// - Timestamps go on by the sender reports of both layers, or by arrival while one has none or they
//   are wrong by a second. A picture whose instant the view has passed already comes 1 ms after the
//   one before it.
//
// Packets of a layer come in order. For one thread at a time. Times are CLOCK_MONOTONIC.
// Nothing is allocated. Cost: a packet is parsed once, and its header written once for each view.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/layers.h"
#include "rtp/rtcp.h"
#include "rtp/rtp.h"

#define WEIR_SIMULCAST_LAYERS 4
#define WEIR_SIMULCAST_SILENCE_NS INT64_C (1000000000)
#define WEIR_SIMULCAST_FRAMES 5
#define WEIR_SIMULCAST_NONE (-1)

typedef struct {
  WeirLayers reader;
  uint64_t pixels;    // of a picture; 0: not known
  int64_t heard_ns;   // when its last packet came; 0: none came
  uint32_t timestamp; // of its last packet
  unsigned others;    // pictures that other layers began since then
  WeirNtpMap report;  // its last one
} WeirSimulcastLayer;

typedef struct {
  size_t n_layers;
  uint32_t clock_rate; // Hz
  WeirSimulcastLayer layers[WEIR_SIMULCAST_LAYERS];
  size_t order[WEIR_SIMULCAST_LAYERS]; // the layers, the largest first
} WeirSimulcast;

// A packet that weir_simulcast_take() has read.
typedef struct {
  size_t layer;
  WeirRtp rtp;
  int64_t now_ns;
  bool begins; // a decoder can start here
} WeirSimulcastPacket;

typedef struct {
  size_t rank; // of the layer that it wants, from 0
  int current; // the layer that it has, or WEIR_SIMULCAST_NONE
  uint32_t ssrc;
  uint16_t seq_shift, last_seq;
  uint32_t ts_shift; // by reports or arrival
  uint32_t last_in;  // the timestamp of its last picture as it came
  uint32_t last_out; // and as it left
  int64_t last_ns;   // when that came
  bool mid_frame;    // its last packet did not end a picture
  bool late;         // it has passed the instants of the pictures that come
} WeirSimulcastView;

// Starts with `n_layers`, up to WEIR_SIMULCAST_LAYERS, of which nothing came, all of one codec.
void weir_simulcast_init (
    WeirSimulcast *self, size_t n_layers, WeirCodec codec, uint32_t clock_rate);

// Starts a view, whose packets leave with `ssrc`.
void weir_simulcast_view_init (WeirSimulcastView *self, size_t rank, uint32_t ssrc);

// Reads the next packet of a layer, of `len` bytes, for the function below. Returns 0, or -EBADMSG
// if it is not RTP.
int weir_simulcast_take (WeirSimulcast *self, size_t layer, const uint8_t *data, size_t len,
    int64_t now_ns, WeirSimulcastPacket *out);

// Returns whether the packet is one of the view, and writes the view's numbers into it then. Call
// it once for each packet and view. `data` may have the numbers of another view.
bool weir_simulcast_view_take (const WeirSimulcast *self, WeirSimulcastView *view,
    const WeirSimulcastPacket *packet, uint8_t *data);

// Notes a sender report of a layer.
void weir_simulcast_report (WeirSimulcast *self, size_t layer, const WeirNtpMap *map);

// Returns whether the view has a layer with a report, and sets `out` to that with its numbers.
bool weir_simulcast_view_report (
    const WeirSimulcast *self, const WeirSimulcastView *view, WeirNtpMap *out);

// Returns the layer to which the view would change at a keyframe, or WEIR_SIMULCAST_NONE.
int weir_simulcast_view_wanted (const WeirSimulcast *self, const WeirSimulcastView *view);
