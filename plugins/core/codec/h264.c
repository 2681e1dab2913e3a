// SPDX-License-Identifier: LGPL-2.1-or-later
#include "codec/h264.h"

static bool
read_svc_header (WeirBytes *b, WeirH264Nal *out)
{
  uint32_t bits;

  if (!weir_bytes_u24 (b, &bits) || !(bits >> 23))
    return false;
  out->svc = true;
  out->idr = bits >> 22 & 1;
  out->no_inter_layer_pred = bits >> 15 & 1;
  out->spatial = bits >> 12 & 7;
  out->quality = bits >> 8 & 15;
  out->temporal = bits >> 5 & 7;
  out->discardable = bits >> 3 & 1;
  return true;
}

bool
weir_h264_nal_read (uint8_t header, WeirBytes rest, WeirH264Nal *out)
{
  uint8_t first;

  *out = (WeirH264Nal) { .type = header & 31, .nri = header >> 5 & 3 };
  if (out->type == WEIR_H264_PREFIX || out->type == WEIR_H264_SLICE_EXT) {
    if (!read_svc_header (&rest, out))
      return false;
  } else {
    out->idr = out->type == WEIR_H264_IDR;
  }
  if (weir_h264_is_slice (out->type)) {
    if (!weir_bytes_u8 (&rest, &first))
      return false;
    out->first_slice = first >> 7; // ue(v) 0 is a single 1 bit
  }
  return true;
}

static bool
is_svc_type (uint8_t header)
{
  switch (header & 31) {
    case WEIR_H264_PREFIX:
    case WEIR_H264_SUBSET_SPS:
    case WEIR_H264_SLICE_EXT:
    case WEIR_H264_PACSI:
    case WEIR_H264_NI_MTAP:
      return true;
    default:
      return false;
  }
}

static bool
stap_has_svc (WeirBytes b)
{
  const uint8_t *unit;
  uint16_t size;

  while (weir_bytes_left (&b) > 0) {
    if (!weir_bytes_u16 (&b, &size) || !weir_bytes_take (&b, size, &unit))
      return false;
    if (size > 0 && is_svc_type (unit[0]))
      return true;
  }
  return false;
}

bool
weir_h264_payload_has_svc (const uint8_t *payload, size_t len)
{
  WeirBytes b = weir_bytes (payload, len);
  uint8_t header, fragment;

  if (!weir_bytes_u8 (&b, &header))
    return false;
  switch (header & 31) {
    case WEIR_H264_STAP_A:
      return stap_has_svc (b);
    case WEIR_H264_FU_A:
      return weir_bytes_u8 (&b, &fragment) && is_svc_type (fragment);
    default:
      return is_svc_type (header);
  }
}
