// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The payload readers behind weir_layers_read(), one file each. `out` is zeroed before the call;
// its contents do not matter if a reader returns false.

#include "codec/layers.h"

// Each reads one RTP payload of `len` bytes. Returns false if it is invalid.
bool weir_layers_read_h264 (WeirLayers *self, const uint8_t *payload, size_t len, WeirLayer *out);
bool weir_layers_read_h265 (WeirLayers *self, const uint8_t *payload, size_t len, WeirLayer *out);
bool weir_layers_read_vp8 (const uint8_t *payload, size_t len, WeirLayer *out);
bool weir_layers_read_vp9 (const uint8_t *payload, size_t len, WeirLayer *out);
bool weir_layers_read_av1 (WeirLayers *self, const uint8_t *payload, size_t len, WeirLayer *out);
bool weir_layers_read_mpv (const uint8_t *payload, size_t len, WeirLayer *out);

// Merges a unit into a packet with several units: the packet's layer is the lowest of its units,
// and it is discardable only if all are. `first` is true for the first unit.
void weir_layer_merge (WeirLayer *all, const WeirLayer *unit, bool first);

// Infers the temporal layer from nal_ref_idc; see WeirLayers.infer_temporal.
uint8_t weir_h264_temporal_from_nri (WeirLayers *self, uint8_t nri);

// Returns where the frame's data begin in a VP8 payload; `len` if nowhere.
size_t weir_vp8_data_at (const uint8_t *payload, size_t len);

// Returns where the picture id of a VP8 payload is, and whether it has 15 bits; 0: there is none.
size_t weir_vp8_picture_id_at (const uint8_t *payload, size_t len, bool *wide);

// Subtracts `by` from the picture id of a VP8 payload, in place. Does nothing if there is none.
void weir_vp8_shift_picture_id (uint8_t *payload, size_t len, uint16_t by);
