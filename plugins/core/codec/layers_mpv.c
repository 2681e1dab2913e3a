// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bits/bytes.h"
#include "codec/layers_private.h"

enum { PICTURE_I = 1, PICTURE_B = 3 };

// Start codes that the first packet of a picture may begin with.
enum { START_PICTURE = 0x100, START_SEQUENCE = 0x1b3, START_GROUP = 0x1b8 };

bool
weir_layers_read_mpv (const uint8_t *payload, size_t len, WeirLayer *out)
{
  WeirBytes b = weir_bytes (payload, len);
  uint32_t header, start;

  if (!weir_bytes_u32 (&b, &header))
    return false;
  if (header >> 26 & 1 && !weir_bytes_skip (&b, 4))
    return false;
  weir_bytes_u32 (&b, &start); // 0 if the packet is too short to begin a picture
  out->parameters = start == START_SEQUENCE;
  out->keyframe = (header >> 8 & 7) == PICTURE_I
                  && (start == START_PICTURE || start == START_SEQUENCE || start == START_GROUP);
  out->enter = out->keyframe;
  out->discardable = (header >> 8 & 7) == PICTURE_B;
  out->switch_up = true;
  return true;
}
