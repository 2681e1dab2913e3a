// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bits/bytes.h"
#include "codec/layers_private.h"

// Bits of the first byte (RFC 9628, section 4.2).
enum { I = 0x80, P = 0x40, L = 0x20, F = 0x10, B = 0x08 };

bool
weir_layers_read_vp9 (const uint8_t *payload, size_t len, WeirLayer *out)
{
  WeirBytes b = weir_bytes (payload, len);
  uint8_t first, id, layer;

  weir_bytes_u8 (&b, &first);
  if (first & I) {
    weir_bytes_u8 (&b, &id);
    if (id & 0x80)
      weir_bytes_skip (&b, 1);
  }
  out->switch_up = true;
  if (first & L) {
    weir_bytes_u8 (&b, &layer);
    if (!(first & F))
      weir_bytes_skip (&b, 1);
    out->temporal = layer >> 5;
    out->spatial = layer >> 1 & 7;
    out->switch_up = layer >> 4 & 1 || out->temporal == 0;
  }
  if (weir_bytes_left (&b) == 0)
    return false;
  out->enter = !(first & P) && first & B;
  out->keyframe = out->enter && out->spatial == 0;
  return true;
}
