// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Which layers go on, and when a change of that is made.
//
// A temporal layer may be left out at any picture, and taken up again where no picture refers to
// one that was left out: at the lowest temporal layer, or where the stream says so. A spatial layer
// of H.264 can be entered, up or down, only at its own IDR: a decoder of SVC keeps the pictures of
// the highest layer alone. In VP9 and AV1 each layer has its own, so there the way down is free.

#include <stdbool.h>
#include <stdint.h>

#include "codec/layers.h"

#define WEIR_SPATIAL_LAYERS 8

// The highest layer of each kind, or -1 for all.
typedef struct {
  int8_t spatial;
  int8_t temporal;
  int8_t quality;
} WeirLayerSet;

#define WEIR_LAYER_SET_ALL ((WeirLayerSet) { -1, -1, -1 })

// What one picture (an access unit in all its layers) holds.
typedef struct {
  bool any;         // there is a slice or a part of a frame in it
  bool switch_up;   // see WeirLayer
  bool parameters;  //
  uint8_t temporal; // the same in all its layers
  uint8_t present;  // its spatial layers, a bit each
  uint8_t enter;    // those that can be entered here
} WeirPicture;

void weir_picture_add (WeirPicture *picture, const WeirLayer *layer);

typedef enum {
  WEIR_PICTURE_KEEP,
  WEIR_PICTURE_DROP,  // above the temporal layer
  WEIR_PICTURE_BROKEN // the layer that is being shown is missing: what remains can't be decoded
} WeirPictureVerdict;

// For each stream that comes out. Zero it, set `wanted`, and `now` to the same.
typedef struct {
  WeirLayerSet wanted; // may be changed at any time
  bool immediate;      // changes at the next picture, whether decoders survive or not
  bool down_is_free;   // VP9, AV1
  bool settled;        // `now.spatial` is a layer that was entered
  WeirLayerSet now;    // what goes on
  bool waiting;        // a key picture would help
} WeirSwitch;

void weir_switch_init (WeirSwitch *self, WeirCodec codec, WeirLayerSet wanted);

// The one that comes next, in decoding order; `now` is for this one.
WeirPictureVerdict weir_switch_picture (WeirSwitch *self, const WeirPicture *picture);

static inline bool
weir_layer_set_has (WeirLayerSet set, unsigned spatial, unsigned quality, unsigned temporal)
{
  if (set.spatial >= 0 && spatial > (unsigned) set.spatial)
    return false;
  // Layers below the highest keep their whole quality: the highest may be predicted from it.
  if (set.quality >= 0 && quality > (unsigned) set.quality && (int) spatial == set.spatial)
    return false;
  return set.temporal < 0 || temporal <= (unsigned) set.temporal;
}

static inline bool
weir_layer_set_equal (WeirLayerSet a, WeirLayerSet b)
{
  return a.spatial == b.spatial && a.temporal == b.temporal && a.quality == b.quality;
}
