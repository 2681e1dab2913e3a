// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bits/bytes.h"
#include "codec/layers_private.h"

enum {
  NON_REFERENCE_MAX = 14, // even types up to here: no picture of the same sub-layer refers to them
  TSA_N = 2,
  STSA_R = 5,
  BLA_W_LP = 16,
  CRA = 21,
  VCL_MAX = 31,
  VPS = 32,
  PPS = 34,
  AP = 48,
  FU = 49,
};

// `first` is the byte behind the unit's header. In a slice its highest bit is
// first_slice_segment_in_pic_flag.
static void
add_unit (
    WeirLayers *self, uint8_t type, uint8_t temporal, uint8_t first, WeirLayer *out, bool *any)
{
  WeirLayer layer = { .temporal = temporal };

  if (type > VCL_MAX) {
    out->parameters |= type >= VPS && type <= PPS;
    return;
  }
  if (temporal > self->seen)
    self->seen = temporal;
  layer.keyframe = type >= BLA_W_LP && type <= CRA && first >> 7;
  layer.enter = layer.keyframe;
  // A sub-layer non-reference picture may still be a reference for higher temporal layers.
  layer.discardable = type <= NON_REFERENCE_MAX && type % 2 == 0 && temporal == self->seen;
  layer.switch_up = temporal == 0 || (type >= TSA_N && type <= STSA_R);
  weir_layer_merge (out, &layer, !*any);
  *any = true;
}

static bool
read_header (WeirBytes *b, uint8_t *type, uint8_t *temporal)
{
  uint16_t header;

  if (!weir_bytes_u16 (b, &header) || (header & 7) == 0)
    return false;
  *type = header >> 9 & 63;
  *temporal = (uint8_t) ((header & 7) - 1);
  return true;
}

static bool
read_ap (WeirLayers *self, WeirBytes b, WeirLayer *out)
{
  bool any = false;

  while (weir_bytes_left (&b) > 0) {
    uint16_t size;
    uint8_t type, temporal, first;
    const uint8_t *unit;

    if (!weir_bytes_u16 (&b, &size) || !weir_bytes_take (&b, size, &unit))
      return false;
    WeirBytes rest = weir_bytes (unit, size);
    if (!read_header (&rest, &type, &temporal))
      return false;
    weir_bytes_u8 (&rest, &first);
    add_unit (self, type, temporal, first, out, &any);
  }
  out->discardable = out->discardable && any && !out->parameters;
  return true;
}

bool
weir_layers_read_h265 (WeirLayers *self, const uint8_t *payload, size_t len, WeirLayer *out)
{
  WeirBytes b = weir_bytes (payload, len);
  uint8_t type, temporal, first, header;
  bool any = false;

  if (!read_header (&b, &type, &temporal))
    return false;
  if (type == AP)
    return read_ap (self, b, out);
  if (type == FU) {
    if (!weir_bytes_u8 (&b, &header) || !weir_bytes_u8 (&b, &first))
      return false;
    add_unit (self, header & 63, temporal, header & 0x80 ? first : 0, out, &any);
    return true;
  }
  weir_bytes_u8 (&b, &first); // 0 if there is none
  add_unit (self, type, temporal, first, out, &any);
  out->temporal = temporal; // for parameter sets and SEI too
  return true;
}
