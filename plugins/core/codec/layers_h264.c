// SPDX-License-Identifier: LGPL-2.1-or-later
#include "codec/h264.h"
#include "codec/layers_private.h"

uint8_t
weir_h264_temporal_from_nri (WeirLayers *self, uint8_t nri)
{
  uint8_t above = 0;

  self->seen |= (uint8_t) (1 << nri);
  for (unsigned i = nri + 1u; i < 4; i++)
    above += self->seen >> i & 1;
  return above;
}

static WeirLayer
layer_of_svc (const WeirH264Nal *nal)
{
  return (WeirLayer) {
    .spatial = nal->spatial,
    .quality = nal->quality,
    .temporal = nal->temporal,
    .keyframe = nal->idr && nal->spatial == 0 && nal->quality == 0,
    // discardable_flag concerns higher layers of the same picture, which go together with it.
    .discardable = nal->nri == 0 && (nal->discardable || nal->type == WEIR_H264_SLICE_EXT),
    .enter = nal->idr && nal->quality == 0,
  };
}

// Returns the layer of a base slice, which only its prefix NAL unit (or nal_ref_idc) tells.
static WeirLayer
layer_of_base (WeirLayers *self, const WeirH264Nal *nal)
{
  WeirLayer layer = { .discardable = nal->nri == 0 };

  if (self->have_prefix) {
    layer.temporal = self->prefix.temporal;
    layer.discardable = self->prefix.discardable && nal->nri == 0;
  } else if (self->infer_temporal) {
    layer.temporal = weir_h264_temporal_from_nri (self, nal->nri);
  }
  self->have_prefix = false;
  layer.keyframe = nal->type == WEIR_H264_IDR && nal->first_slice;
  layer.enter = layer.keyframe;
  return layer;
}

// Adds one unit to the packet's layer. `any` says whether the packet held a picture before.
static bool
add_unit (WeirLayers *self, uint8_t header, WeirBytes rest, WeirLayer *out, bool *any)
{
  WeirH264Nal nal;
  WeirLayer layer;

  if (!weir_h264_nal_read (header, rest, &nal))
    return false;
  out->parameters |= weir_h264_is_parameters (nal.type);
  if (nal.type == WEIR_H264_PREFIX) {
    layer = self->prefix = layer_of_svc (&nal);
    self->have_prefix = true;
  } else if (nal.type == WEIR_H264_SLICE_EXT) {
    layer = layer_of_svc (&nal);
    self->have_prefix = false;
    layer.keyframe = layer.keyframe && nal.first_slice;
    layer.enter = layer.enter && nal.first_slice;
  } else if (weir_h264_is_slice (nal.type)) {
    layer = layer_of_base (self, &nal);
  } else {
    return true;
  }
  layer.switch_up = layer.temporal == 0;
  weir_layer_merge (out, &layer, !*any);
  *any = true;
  return true;
}

static bool
read_stap (WeirLayers *self, WeirBytes b, WeirLayer *out)
{
  bool any = false;

  while (weir_bytes_left (&b) > 0) {
    uint16_t size;
    uint8_t header;
    const uint8_t *unit;

    if (!weir_bytes_u16 (&b, &size) || !weir_bytes_take (&b, size, &unit))
      return false;
    WeirBytes rest = weir_bytes (unit, size);
    if (!weir_bytes_u8 (&rest, &header) || !add_unit (self, header, rest, out, &any))
      return false;
  }
  out->discardable = out->discardable && any && !out->parameters;
  return true;
}

static bool
read_fu (WeirLayers *self, uint8_t indicator, WeirBytes b, WeirLayer *out)
{
  bool any = false;
  uint8_t header;

  if (!weir_bytes_u8 (&b, &header))
    return false;
  if (header & 0x80)
    return add_unit (self, (uint8_t) ((indicator & 0xe0) | (header & 31)), b, out, &any);
  *out = self->last;
  out->keyframe = out->parameters = out->enter = out->switch_up = false;
  return true;
}

bool
weir_layers_read_h264 (WeirLayers *self, const uint8_t *payload, size_t len, WeirLayer *out)
{
  WeirBytes b = weir_bytes (payload, len);
  bool any = false;
  uint8_t header;

  if (!weir_bytes_u8 (&b, &header))
    return false;
  switch (header & 31) {
    case WEIR_H264_STAP_A:
      return read_stap (self, b, out);
    case WEIR_H264_FU_A:
      return read_fu (self, header, b, out);
    case WEIR_H264_STAP_B: // interleaved packets are not in decoding order: report nothing
    case WEIR_H264_MTAP16:
    case WEIR_H264_MTAP24:
    case WEIR_H264_FU_B:
      return true;
    default:
      return add_unit (self, header, b, out, &any);
  }
}
