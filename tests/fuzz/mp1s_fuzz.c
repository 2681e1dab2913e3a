// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the cutting of MPEG-1 system streams into RTP payloads. The first byte of the input is the
// room of a payload, less 1; the rest is a stream.

#include "codec/mp1s.h"
#include "fuzz.h"

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  size_t room, least;
  WeirMp1sCut cut = { 0 };
  WeirMp1sPayload part;
  WeirBytes b = weir_bytes (data, size), some;
  uint64_t time = 0;

  if (!weir_bytes_skip (&b, 1))
    return 0;
  room = data[0] + 1u;
  least = room + WEIR_MP1S_PACK_HEADER;
  weir_bytes_skip (&b, weir_mp1s_find_pack (b));
  while (weir_bytes_left (&b) > 0) {
    some = weir_bytes (b.at, weir_bytes_left (&b) < least ? weir_bytes_left (&b) : least);
    if (!weir_mp1s_cut_next (&cut, some, room, &part))
      break;
    require (part.len > 0 && part.len <= room && part.time >= time);
    time = part.time;
    require (weir_bytes_skip (&b, part.len));
  }
  require (weir_mp1s_find_pack (b) <= weir_bytes_left (&b));
  return 0;
}
