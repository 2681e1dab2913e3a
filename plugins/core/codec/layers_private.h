// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The payload formats behind weir_layers_read(), one file each. `out` comes zeroed; what they leave
// in it when they return false is thrown away.

#include "codec/layers.h"

bool weir_layers_read_h264 (WeirLayers *self, const uint8_t *payload, size_t len, WeirLayer *out);
bool weir_layers_read_h265 (WeirLayers *self, const uint8_t *payload, size_t len, WeirLayer *out);
bool weir_layers_read_vp8 (const uint8_t *payload, size_t len, WeirLayer *out);
bool weir_layers_read_vp9 (const uint8_t *payload, size_t len, WeirLayer *out);
bool weir_layers_read_av1 (WeirLayers *self, const uint8_t *payload, size_t len, WeirLayer *out);
bool weir_layers_read_mpv (const uint8_t *payload, size_t len, WeirLayer *out);

// A packet with several units: the lowest layer counts, and it can be left out only if all can.
void weir_layer_merge (WeirLayer *all, const WeirLayer *unit, bool first);

// See WeirLayers.infer_temporal.
uint8_t weir_h264_temporal_from_nri (WeirLayers *self, uint8_t nri);

// Takes `by` off the picture id of a VP8 packet, if it has one.
void weir_vp8_shift_picture_id (uint8_t *payload, size_t len, uint16_t by);
