// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Decides which layers of a stream pass, and when a change of layers takes effect.
//
// A temporal layer may be dropped at any picture. It may be added where no picture refers to a
// dropped one: at a picture of the lowest temporal layer, or where the stream says so. A spatial
// layer of H.264 can be entered, up or down, only at its own IDR picture: an SVC decoder keeps
// reference pictures of the highest layer only. A VP9 or AV1 decoder keeps those of each layer, so
// switching down is always possible.

#include <stdbool.h>
#include <stdint.h>

#include "codec/layers.h"

#define WEIR_SPATIAL_LAYERS 8

// A layer set: the highest layer of each kind, or -1 for all.
typedef struct {
  int8_t spatial;
  int8_t temporal;
  int8_t quality;
} WeirLayerSet;

#define WEIR_LAYER_SET_ALL ((WeirLayerSet) { -1, -1, -1 })

// The layers of one picture (an access unit in all its layers).
typedef struct {
  bool any;         // has a slice or a part of a frame
  bool switch_up;   // see WeirLayer
  bool parameters;  // has parameter sets
  uint8_t temporal; // temporal layer, the same in all spatial layers
  uint8_t present;  // spatial layers of the picture, a bit each
  uint8_t enter;    // spatial layers that can be entered here, a bit each
} WeirPicture;

// Adds a layer of the picture.
void weir_picture_add (WeirPicture *picture, const WeirLayer *layer);

typedef enum {
  WEIR_PICTURE_KEEP,
  WEIR_PICTURE_DROP,  // above the current temporal layer
  WEIR_PICTURE_BROKEN // the current spatial layer is missing: the rest cannot be decoded
} WeirPictureVerdict;

// The layer choice of one outgoing stream.
typedef struct {
  WeirLayerSet wanted; // may be changed between two pictures
  bool immediate;      // change at the next picture, even if decoders break
  bool down_is_free;   // switching down needs no key picture (VP9, AV1)
  bool settled;        // `now.spatial` is a layer that was entered
  WeirLayerSet now;    // the layers that pass
  bool waiting;        // a key picture would bring `now` closer to `wanted`
} WeirSwitch;

// Starts a stream of `codec` that wants the layers `wanted`.
void weir_switch_init (WeirSwitch *self, WeirCodec codec, WeirLayerSet wanted);

// Decides on the next picture in decoding order and updates `now`, which holds for this picture.
WeirPictureVerdict weir_switch_picture (WeirSwitch *self, const WeirPicture *picture);

// Reports whether a layer belongs to the set.
static inline bool
weir_layer_set_has (WeirLayerSet set, unsigned spatial, unsigned quality, unsigned temporal)
{
  if (set.spatial >= 0 && spatial > (unsigned) set.spatial)
    return false;
  // Layers below the highest keep all quality layers: the highest may be predicted from them.
  if (set.quality >= 0 && quality > (unsigned) set.quality && (int) spatial == set.spatial)
    return false;
  return set.temporal < 0 || temporal <= (unsigned) set.temporal;
}

static inline bool
weir_layer_set_equal (WeirLayerSet a, WeirLayerSet b)
{
  return a.spatial == b.spatial && a.temporal == b.temporal && a.quality == b.quality;
}
