// SPDX-License-Identifier: LGPL-2.1-or-later
#include <string.h>

#include "bits/leb128.h"
#include "codec/fit_private.h"

#define START 0x80 // of a fragment's header
#define END 0x40
#define HEAD_MAX 64 // bytes before the data of a piece

enum { H265_AP = 48, H265_FU = 49, H265_PACI = 50 };
enum { VP8_X = 0x80, VP8_S = 0x10, VP8_I = 0x80, VP8_L = 0x40, VP8_TK = 0x30 };
enum { VP9_I = 0x80, VP9_P = 0x40, VP9_L = 0x20, VP9_F = 0x10, VP9_B = 8, VP9_E = 4, VP9_V = 2 };
enum { AV1_Z = 0x80, AV1_Y = 0x40, AV1_W1 = 0x10, AV1_N = 0x08 };

// Writes `n` bytes in as many pieces as necessary. `put_head` writes the bytes that stand before a
// piece and returns their number, the same for all pieces but the first.
typedef size_t (*PutHead) (uint8_t *head, const uint8_t *from, bool first, bool last);

static void
write_pieces (WeirFit *self, PutHead put_head, const uint8_t *from, const uint8_t *data, size_t n,
    bool marker)
{
  bool first = true, last;

  do {
    uint8_t head[HEAD_MAX];
    const size_t room = WEIR_FIT_PAYLOAD - put_head (head, from, first, false);
    const size_t piece = n < room ? n : room;

    last = piece == n;
    weir_fit_write (self, marker && last, head, put_head (head, from, first, last), data, piece);
    data += piece;
    n -= piece;
    first = false;
  } while (!last);
}

// ---- H.265 ----

// `from` is the unit's header and the FU header of the whole: its type, and which ends it has.
static size_t
put_h265 (uint8_t *head, const uint8_t *from, bool first, bool last)
{
  memcpy (head, from, 2);
  head[2] =
      (uint8_t) ((from[2] & 0x3f) | (first ? from[2] & START : 0) | (last ? from[2] & END : 0));
  return 3;
}

static WeirFitResult
cut_h265_unit (WeirFit *self, const uint8_t *data, size_t len, bool marker)
{
  uint8_t from[3], type;

  if (len < 2)
    return WEIR_FIT_BROKEN;
  type = data[0] >> 1 & 63;
  if (type == H265_FU && len < 4)
    return WEIR_FIT_BROKEN;
  if (type >= H265_PACI)
    return WEIR_FIT_TOO_LONG;
  from[0] = (uint8_t) ((data[0] & 0x81) | H265_FU << 1);
  from[1] = data[1];
  from[2] = type == H265_FU ? data[2] : type | START | END;
  if (len <= WEIR_FIT_PAYLOAD)
    weir_fit_write (self, marker, data, len, NULL, 0);
  else
    write_pieces (
        self, put_h265, from, data + 2 + (type == H265_FU), len - 2 - (type == H265_FU), marker);
  return WEIR_FIT_SENT;
}

static WeirFitResult
cut_h265 (WeirFit *self, WeirBytes b)
{
  WeirFitResult result = WEIR_FIT_BROKEN;
  const uint8_t *unit;
  uint16_t size;

  if ((*b.at >> 1 & 63) != H265_AP)
    return cut_h265_unit (self, b.at, weir_bytes_left (&b), self->rtp.marker);
  weir_bytes_skip (&b, 2);
  while (weir_bytes_left (&b) > 0) {
    if (!weir_bytes_u16 (&b, &size) || !weir_bytes_take (&b, size, &unit))
      break;
    if (cut_h265_unit (self, unit, size, self->rtp.marker && weir_bytes_left (&b) == 0)
        == WEIR_FIT_SENT)
      result = WEIR_FIT_SENT;
  }
  return result;
}

// ---- VP8 and VP9: `from` is the length of the descriptor, and the descriptor ----

static size_t
put_vp8 (uint8_t *head, const uint8_t *from, bool first, bool last)
{
  memcpy (head, from + 1, from[0]);
  if (!first)
    head[0] &= (uint8_t) ~VP8_S;
  return from[0];
}

static bool
skip_vp8 (WeirBytes *b)
{
  uint8_t first, have = 0, id;

  weir_bytes_u8 (b, &first);
  if (first & VP8_X)
    weir_bytes_u8 (b, &have);
  if (have & VP8_I && weir_bytes_u8 (b, &id) && id & 0x80)
    weir_bytes_skip (b, 1);
  return weir_bytes_skip (b, (have & VP8_L ? 1u : 0) + (have & VP8_TK ? 1u : 0));
}

// The scalability structure goes with the first piece only: `from[1]` bytes before it stay.
static size_t
put_vp9 (uint8_t *head, const uint8_t *from, bool first, bool last)
{
  const uint8_t n = first ? from[0] : from[1];

  memcpy (head, from + 2, n);
  if (!first)
    head[0] &= (uint8_t) ~(VP9_B | VP9_V);
  if (!last)
    head[0] &= (uint8_t) ~VP9_E;
  return n;
}

// Moves past the scalability structure (RFC 9628, section 4.2.1).
static void
skip_vp9_structure (WeirBytes *b)
{
  uint8_t first, n_groups = 0, group;

  weir_bytes_u8 (b, &first);
  if (first & 0x10)
    weir_bytes_skip (b, 4 * ((first >> 5) + 1u));
  if (first & 0x08)
    weir_bytes_u8 (b, &n_groups);
  for (unsigned i = 0; i < n_groups && weir_bytes_u8 (b, &group); i++)
    weir_bytes_skip (b, group >> 2 & 3);
}

static bool
skip_vp9 (WeirBytes *b, const uint8_t **structure)
{
  uint8_t first, id, diff = 1;

  weir_bytes_u8 (b, &first);
  if (first & VP9_I && weir_bytes_u8 (b, &id) && id & 0x80)
    weir_bytes_skip (b, 1);
  if (first & VP9_L)
    weir_bytes_skip (b, first & VP9_F ? 1 : 2);
  for (int i = 0; first & VP9_F && first & VP9_P && diff & 1 && i < 3; i++)
    weir_bytes_u8 (b, &diff);
  *structure = b->at;
  if (first & VP9_V)
    skip_vp9_structure (b);
  return !b->failed;
}

static WeirFitResult
cut_vp8 (WeirFit *self, WeirBytes b)
{
  const uint8_t *start = b.at;
  uint8_t from[1 + HEAD_MAX];

  if (!skip_vp8 (&b))
    return WEIR_FIT_BROKEN;
  from[0] = (uint8_t) (b.at - start);
  memcpy (from + 1, start, from[0]);
  write_pieces (self, put_vp8, from, b.at, weir_bytes_left (&b), self->rtp.marker);
  return WEIR_FIT_SENT;
}

static WeirFitResult
cut_vp9 (WeirFit *self, WeirBytes b)
{
  const uint8_t *start = b.at, *structure;
  uint8_t from[2 + HEAD_MAX];

  if (!skip_vp9 (&b, &structure))
    return WEIR_FIT_BROKEN;
  if (b.at - start > HEAD_MAX)
    return WEIR_FIT_TOO_LONG;
  from[0] = (uint8_t) (b.at - start);
  from[1] = (uint8_t) (structure - start);
  memcpy (from + 2, start, from[0]);
  write_pieces (self, put_vp9, from, b.at, weir_bytes_left (&b), self->rtp.marker);
  return WEIR_FIT_SENT;
}

// ---- AV1: each element of the packet becomes packets of its own ----

// `from` is the aggregation header of the element.
static size_t
put_av1 (uint8_t *head, const uint8_t *from, bool first, bool last)
{
  head[0] = AV1_W1;
  head[0] |= (uint8_t) (first ? from[0] & (AV1_Z | AV1_N) : AV1_Z);
  head[0] |= (uint8_t) (last ? from[0] & AV1_Y : AV1_Y);
  return 1;
}

static WeirFitResult
cut_av1 (WeirFit *self, WeirBytes b)
{
  WeirFitResult result = WEIR_FIT_BROKEN;
  uint8_t header, count;

  weir_bytes_u8 (&b, &header);
  count = header >> 4 & 3; // 0: each element has its length
  for (unsigned i = 0; weir_bytes_left (&b) > 0 && (count == 0 || i < count); i++) {
    uint64_t size = weir_bytes_left (&b);
    const uint8_t *element;
    uint8_t from;
    bool last;

    if ((i + 1u != count && !weir_leb128 (&b, &size)) || !weir_bytes_take (&b, size, &element))
      break;
    if (size == 0)
      continue;
    last = weir_bytes_left (&b) == 0;
    from = (uint8_t) ((i == 0 ? header & (AV1_Z | AV1_N) : 0) | (last ? header & AV1_Y : 0));
    write_pieces (self, put_av1, &from, element, size, self->rtp.marker && last);
    result = WEIR_FIT_SENT;
  }
  return result;
}

WeirFitResult
weir_fit_cut (WeirFit *self, const uint8_t *packet)
{
  const WeirBytes b = weir_bytes (packet + self->rtp.payload_offset, self->rtp.payload_length);

  switch (self->codec) {
    case WEIR_CODEC_H265:
      return cut_h265 (self, b);
    case WEIR_CODEC_VP8:
      return cut_vp8 (self, b);
    case WEIR_CODEC_VP9:
      return cut_vp9 (self, b);
    case WEIR_CODEC_AV1:
      return cut_av1 (self, b);
    default:
      return WEIR_FIT_TOO_LONG;
  }
}
