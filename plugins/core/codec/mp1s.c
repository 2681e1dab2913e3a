// SPDX-License-Identifier: LGPL-2.1-or-later
#include "codec/mp1s.h"

#define PREFIX 0x000001
#define END 0xb9 // the lowest code of a unit
#define PACK 0xba
#define JUMP (10 * WEIR_MP1S_CLOCK)
#define SCR_MASK ((UINT64_C (1) << 33) - 1)

// Reads the header of a pack. Returns false if it is cut or is none.
static bool
read_pack (WeirBytes b, uint64_t *scr)
{
  // The bits 0010, the SCR and the rate, with a marker bit after each part of the SCR and around
  // the rate.
  const uint64_t fixed = UINT64_C (0xf100010001800001), value = UINT64_C (0x2100010001800001);
  uint32_t code;
  uint64_t v;

  weir_bytes_u32 (&b, &code);
  weir_bytes_u64 (&b, &v);
  *scr = (v >> 57 & 7) << 30 | (v >> 41 & 0x7fff) << 15 | (v >> 25 & 0x7fff);
  return !b.failed && code == (PREFIX << 8 | PACK) && (v & fixed) == value;
}

// Reads how long the next unit is, and the SCR if it is the header of a pack. Returns false if it
// is none.
static bool
read_unit (WeirBytes b, size_t *len, bool *is_pack, uint64_t *scr)
{
  WeirBytes start = b;
  uint32_t prefix;
  uint16_t more;
  uint8_t code;

  *is_pack = false;
  if (!weir_bytes_u24 (&b, &prefix))
    return false;
  *len = 1;
  if (prefix == 0) // a zero byte before a start code, as in empty sectors of a Video CD
    return true;
  if (!weir_bytes_u8 (&b, &code) || prefix != PREFIX || code < END)
    return false;
  *len = 4;
  if (code == END)
    return true;
  if (code == PACK) {
    *len = WEIR_MP1S_PACK_HEADER;
    return *is_pack = read_pack (start, scr);
  }
  *len = 6;
  if (!weir_bytes_u16 (&b, &more))
    return false;
  *len += more;
  return true;
}

size_t
weir_mp1s_find_pack (WeirBytes b)
{
  const uint8_t *begin = b.at;
  uint64_t scr;

  while (weir_bytes_left (&b) > 0 && !read_pack (b, &scr))
    weir_bytes_skip (&b, 1);
  return (size_t) (b.at - begin);
}

// Reports whether one sender does not go from one SCR to the other. The standard has at most 0.7 s
// between two, but FFmpeg writes files with more.
static bool
is_jump (uint64_t from, uint64_t to)
{
  return ((to - from) & SCR_MASK) > JUMP;
}

static void
go_to (WeirMp1sCut *self, uint64_t scr)
{
  if (self->begun && !is_jump (self->scr, scr))
    self->time += (scr - self->scr) & SCR_MASK;
  self->begun = true;
  self->scr = scr;
}

bool
weir_mp1s_cut_next (WeirMp1sCut *self, WeirBytes b, size_t room, WeirMp1sPayload *out)
{
  size_t at = self->left, all = weir_bytes_left (&b), whole = 0, unit;
  WeirMp1sCut cut = *self;       // behind all packs so far
  WeirMp1sCut cut_whole = *self; // behind all but the last of them
  bool begins = false, is_pack;
  uint64_t scr;

  *out = (WeirMp1sPayload) { .time = self->time };
  while (at < all && at <= room
         && read_unit ((WeirBytes) { b.at + at, b.end, false }, &unit, &is_pack, &scr)) {
    if (is_pack && at > 0) {
      whole = at;
      cut_whole = cut;
      if (!begins || is_jump (cut.scr, scr))
        break;
    }
    if (is_pack) {
      begins = begins || at == 0;
      if (at == 0)
        out->jump = cut.begun && is_jump (cut.scr, scr);
      go_to (&cut, scr);
      if (at == 0)
        out->time = cut.time;
    }
    at += unit;
  }
  // At the end of the stream, the last pack is whole too.
  if (whole > 0 && (at != all || at > room)) {
    at = whole;
    cut = cut_whole;
  }
  out->len = at < room ? at : room;
  cut.left = at - out->len;
  out->len = out->len < all ? out->len : all;
  *self = cut;
  return out->len > 0;
}
