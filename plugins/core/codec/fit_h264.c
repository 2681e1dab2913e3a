// SPDX-License-Identifier: LGPL-2.1-or-later
// One state machine: the picture in hand, and the unit that comes in fragments.
#include <string.h>

#include "bits/bits.h"
#include "codec/fit_private.h"
#include "codec/h264.h"

#define START 0x80 // of a fragment's header
#define END 0x40
#define SLICE_B 1        // slice_type modulo 5 (H.264, table 7-6)
#define BACK (2 * 90000) // timestamps that go back by more begin anew

// A unit without a meaning, for the marker of a frame whose last packet is not sent (7.3.2.7).
static const uint8_t filler[] = { 12, 0x80 };

// ---- writing ----

// Writes a fragment of `n_carry` bytes of the carry and `n` of `data`.
static void
write_fragment (WeirFit *self, bool ends, bool marker, const uint8_t *data, size_t n)
{
  WeirFitH264 *h = &self->h264;
  uint8_t head[2 + WEIR_FIT_CARRY];
  size_t n_head = 2;

  head[0] = (uint8_t) ((h->unit_header & 0xe0) | WEIR_H264_FU_A);
  head[1] = (uint8_t) ((h->unit_header & 31) | (h->starts ? START : 0) | (ends ? END : 0));
  if (h->starts && ends) { // not allowed (RFC 6184, section 5.8): the unit fits into a packet
    head[0] = h->unit_header;
    n_head = 1;
  }
  memcpy (head + n_head, h->carry, h->n_carry);
  weir_fit_write (self, marker, head, n_head + h->n_carry, data, n);
  h->n_carry = 0;
  h->starts = false;
}

// Writes bytes of the unit that comes in fragments, and keeps what does not fill a packet until
// `ends`.
static void
write_bytes (WeirFit *self, const uint8_t *data, size_t n, bool ends, bool marker)
{
  WeirFitH264 *h = &self->h264;

  if (h->n_carry == 0 && n <= WEIR_FIT_CARRY) {
    write_fragment (self, ends, marker, data, n);
    return;
  }
  while (h->n_carry + n > WEIR_FIT_CARRY) {
    const size_t piece = WEIR_FIT_CARRY - h->n_carry;

    write_fragment (self, false, false, data, piece);
    data += piece;
    n -= piece;
  }
  if (ends) {
    write_fragment (self, true, marker, data, n);
    return;
  }
  memcpy (h->carry + h->n_carry, data, n);
  h->n_carry += n;
}

static void
write_long (WeirFit *self, const WeirFitUnit *unit, bool marker)
{
  self->h264.unit_header = unit->data[0];
  self->h264.starts = true;
  self->h264.n_carry = 0;
  write_bytes (self, unit->data + 1, unit->len - 1, true, marker);
}

// Writes `n` units as one packet.
static void
write_units (WeirFit *self, const WeirFitUnit *units, size_t n, bool marker)
{
  uint8_t out[WEIR_FIT_PAYLOAD];
  size_t at = 1;

  if (n == 1) {
    weir_fit_write (self, marker, units->data, units->len, NULL, 0);
    return;
  }
  out[0] = WEIR_H264_STAP_A;
  for (size_t i = 0; i < n; i++) {
    const uint8_t header = units[i].data[0];

    out[0] |= header & 0x80;
    if ((header & 0x60) > (out[0] & 0x60))
      out[0] = (uint8_t) ((out[0] & 0x9f) | (header & 0x60));
    out[at++] = (uint8_t) (units[i].len >> 8);
    out[at++] = (uint8_t) units[i].len;
    memcpy (out + at, units[i].data, units[i].len);
    at += units[i].len;
  }
  weir_fit_write (self, marker, out, at, NULL, 0);
}

// Returns how many units from `from` on fit into one packet; at least 1.
static size_t
count_fitting (const WeirFitH264 *h, size_t from)
{
  size_t n = 0, size = 1;

  while (from + n < h->n_units && size + 2 + h->units[from + n].len <= WEIR_FIT_PAYLOAD)
    size += 2 + h->units[from + n++].len;
  return n > 0 ? n : 1;
}

// Writes the units of the packet in hand, in as few packets as they fit into.
static void
flush (WeirFit *self, bool marker)
{
  WeirFitH264 *h = &self->h264;
  size_t n;

  if (h->n_units == 0)
    return;
  for (size_t i = 0; i < h->n_units; i += n) {
    n = count_fitting (h, i);
    if (h->units[i].len > WEIR_FIT_PAYLOAD)
      write_long (self, &h->units[i], marker && i + n == h->n_units);
    else
      write_units (self, &h->units[i], n, marker && i + n == h->n_units);
  }
  h->marked = marker;
  h->n_units = 0;
}

static void
add_unit (WeirFit *self, const uint8_t *data, size_t len)
{
  WeirFitH264 *h = &self->h264;

  if (h->n_units == WEIR_FIT_UNITS)
    flush (self, false);
  h->units[h->n_units++] = (WeirFitUnit) { data, len };
}

// ---- pictures ----

// The end of the unit that comes in fragments never came. Without a loss before this packet, as
// when a source takes over, receivers notice by a missing number.
static void
drop_unit (WeirFit *self)
{
  WeirFitH264 *h = &self->h264;

  if (h->in_unit && h->unit_result == WEIR_FIT_SENT) {
    self->seq = (uint16_t) (self->seq + !h->has_loss);
    h->has_loss = true;
  }
  h->in_unit = false;
  h->n_carry = 0;
}

// The packet is the first one of another picture.
static void
begin_picture (WeirFit *self)
{
  WeirFitH264 *h = &self->h264;

  drop_unit (self);
  if (h->picture == WEIR_FIT_KEPT && !h->marked && !h->has_loss)
    weir_fit_write (self, true, filler, sizeof filler, NULL, 0);
  h->picture = WEIR_FIT_UNDECIDED;
  h->marked = h->has_loss = false;
  h->n_held = h->held_bytes = 0;
}

static void
note_loss (WeirFit *self, bool next)
{
  WeirFitH264 *h = &self->h264;

  h->has_loss = true;
  drop_unit (self);
  if (h->picture != WEIR_FIT_LEFT_OUT || next)
    self->seq++;
}

// Adds what stands before the first slice. Sets before another picture than an IDR picture would
// make it look like one at which a reader can begin, so only changed ones go there.
static void
open_picture (WeirFit *self, bool is_idr)
{
  const int32_t step = (int32_t) (self->rtp.timestamp - self->time);
  WeirFitH264 *h = &self->h264;

  self->time =
      self->n_written > 0 && step <= 0 && step > -BACK ? self->time + 1 : self->rtp.timestamp;
  for (size_t i = 0; i < h->sets.n; i++) {
    WeirFitSet *set = &h->sets.all[i];

    if (!is_idr && !(set->due && h->has_idr))
      continue;
    add_unit (self, set->data, set->len);
    set->due = false;
  }
  h->has_idr |= is_idr;
  for (size_t i = 0; i < h->n_held; i++)
    add_unit (self, h->held_units[i].data, h->held_units[i].len);
  h->n_held = 0; // its bytes stay
}

static bool
is_slice_b (const uint8_t *header, size_t len)
{
  WeirBits bits = weir_bits (weir_bytes (header, len));
  uint32_t type;

  weir_bits_ue (&bits); // first_mb_in_slice
  type = weir_bits_ue (&bits);
  return !bits.from.failed && type % 5 == SLICE_B;
}

// Decides about a slice whose header, behind the unit's first byte, is `header`. The first slice
// decides about its picture.
static WeirFitResult
take_slice (WeirFit *self, uint8_t type, const uint8_t *header, size_t len)
{
  WeirFitH264 *h = &self->h264;

  if (h->picture == WEIR_FIT_UNDECIDED) {
    h->picture =
        type != WEIR_H264_IDR && is_slice_b (header, len) ? WEIR_FIT_LEFT_OUT : WEIR_FIT_KEPT;
    if (h->picture == WEIR_FIT_KEPT)
      open_picture (self, type == WEIR_H264_IDR);
  }
  if (h->picture == WEIR_FIT_LEFT_OUT)
    return WEIR_FIT_B;
  h->marks_slices |= h->marked; // in the middle of a frame
  h->marked &= !h->marks_slices;
  return WEIR_FIT_SENT;
}

// ---- units ----

static WeirFitResult
hold (WeirFitH264 *h, const uint8_t *data, size_t len)
{
  uint8_t *to = h->held + h->held_bytes;

  if (h->n_held < WEIR_FIT_HELD_UNITS && len <= sizeof h->held - h->held_bytes) {
    memcpy (to, data, len);
    h->held_units[h->n_held++] = (WeirFitUnit) { to, len };
    h->held_bytes += len;
  }
  return WEIR_FIT_NEEDLESS;
}

// Decides about a unit other than a slice or a parameter set. `is_whole`: not a fragment.
static WeirFitResult
take_extra (WeirFit *self, const uint8_t *data, size_t len, bool is_whole)
{
  const WeirFitH264 *h = &self->h264;

  switch (data[0] & 31) {
    case WEIR_H264_SEI:
    case WEIR_H264_PREFIX:
      if (h->picture == WEIR_FIT_KEPT)
        return WEIR_FIT_SENT;
      if (h->picture == WEIR_FIT_UNDECIDED && is_whole)
        return hold (&self->h264, data, len);
      return WEIR_FIT_NEEDLESS;
    default:
      return WEIR_FIT_NEEDLESS;
  }
}

static WeirFitResult
take_unit (WeirFit *self, const uint8_t *data, size_t len)
{
  const uint8_t type = len > 0 ? data[0] & 31 : 0;
  WeirFitResult result;

  if (type == 0 || type >= WEIR_H264_STAP_A)
    return WEIR_FIT_BROKEN;
  if (type == WEIR_H264_SPS || type == WEIR_H264_PPS) {
    flush (self, false); // the units may be sets, which move
    return weir_fit_sets_note (&self->h264.sets, data, len) ? WEIR_FIT_NEEDLESS : WEIR_FIT_BROKEN;
  }
  if (type >= WEIR_H264_SLICE && type <= WEIR_H264_IDR)
    result = take_slice (self, type, data + 1, len - 1);
  else
    result = take_extra (self, data, len, true);
  if (result == WEIR_FIT_SENT)
    add_unit (self, data, len);
  return result;
}

static WeirFitResult
take_aggregation (WeirFit *self, WeirBytes b)
{
  WeirFitResult result = WEIR_FIT_BROKEN;

  while (weir_bytes_left (&b) > 0) {
    WeirFitResult unit_result;
    const uint8_t *unit;
    uint16_t size;

    if (!weir_bytes_u16 (&b, &size) || !weir_bytes_take (&b, size, &unit))
      break;
    unit_result = take_unit (self, unit, size);
    if (result != WEIR_FIT_SENT && unit_result != WEIR_FIT_BROKEN)
      result = unit_result;
  }
  return result;
}

// Decides about the unit whose first fragment has these bytes.
static void
begin_unit (WeirFit *self, uint8_t header, const uint8_t *data, size_t n)
{
  WeirFitH264 *h = &self->h264;
  const uint8_t type = header & 31;

  drop_unit (self);
  h->unit_result = type >= WEIR_H264_SLICE && type <= WEIR_H264_IDR
                       ? take_slice (self, type, data, n)
                       : take_extra (self, &header, 1, false);
  if (h->unit_result == WEIR_FIT_SENT)
    flush (self, false);
  h->in_unit = h->starts = true;
  h->n_carry = 0;
  h->unit_header = header;
}

static WeirFitResult
take_fragment (WeirFit *self, uint8_t indicator, WeirBytes b, bool marker)
{
  WeirFitH264 *h = &self->h264;
  const uint8_t *data;
  uint8_t header;
  size_t n;
  bool ends;

  if (!weir_bytes_u8 (&b, &header) || (n = weir_bytes_left (&b)) == 0)
    return WEIR_FIT_BROKEN;
  weir_bytes_take (&b, n, &data);
  if (header & START)
    begin_unit (self, (uint8_t) ((indicator & 0xe0) | (header & 31)), data, n);
  if (!h->in_unit)
    return WEIR_FIT_BROKEN;
  ends = header & END;
  h->in_unit = !ends;
  if (h->unit_result == WEIR_FIT_SENT) {
    h->marked = ends && marker;
    write_bytes (self, data, n, ends, h->marked);
  }
  return h->unit_result;
}

WeirFitResult
weir_fit_h264_take (WeirFit *self, const uint8_t *payload, size_t len, bool lost, bool next)
{
  WeirFitH264 *h = &self->h264;
  WeirBytes b = weir_bytes (payload, len);
  WeirFitResult result;
  bool marker;
  uint8_t header;

  if (lost)
    note_loss (self, next);
  if (next)
    begin_picture (self);
  h->has_loss |= lost;
  marker = self->rtp.marker && !h->marks_slices;
  weir_bytes_u8 (&b, &header);
  if ((header & 31) != WEIR_H264_FU_A)
    drop_unit (self);
  if ((header & 31) == WEIR_H264_FU_A)
    result = take_fragment (self, header, b, marker);
  else if ((header & 31) == WEIR_H264_STAP_A)
    result = take_aggregation (self, b);
  else
    result = take_unit (self, payload, len);
  marker &= !h->marks_slices; // as this packet may have shown
  flush (self, marker);
  if (marker && h->picture == WEIR_FIT_KEPT && !h->marked && !h->in_unit && !h->has_loss) {
    weir_fit_write (self, true, filler, sizeof filler, NULL, 0);
    h->marked = true;
  }
  return result;
}
