// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the cutting of MPEG-1 and MPEG-2 video into RTP payloads. The first byte of the input is
// the room of a payload, less 1; the rest is a frame, which is cut twice.

#include "codec/mpvcut.h"
#include "fuzz.h"

static void
cut_frame (WeirMpvCut *cut, const uint8_t *frame, size_t len, size_t room)
{
  bool has_picture = weir_mpv_cut_begin (cut, frame, len, room), last = false;
  WeirMpvPayload part;
  size_t at = 0;

  while (weir_mpv_cut_next (cut, &part)) {
    require (has_picture && !last);
    require (part.data == frame + at && part.len > 0 && part.len <= room);
    require ((part.header[2] & 7) != 0);
    at += part.len;
    last = part.last;
  }
  require (at == (has_picture ? len : 0));
  require (last == (at > 0));
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  WeirMpvCut cut = { 0 };

  if (size < 1)
    return 0;
  cut_frame (&cut, data + 1, size - 1, data[0] + 1u);
  cut_frame (&cut, data + 1, size - 1, data[0] + 1u);
  return 0;
}
