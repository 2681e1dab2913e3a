// SPDX-License-Identifier: LGPL-2.1-or-later
#include "codec/mpvcut.h"

#include "bits/startcode.h"

static bool
is_slice (int code)
{
  return code >= WEIR_MPV_SLICE_FIRST && code <= WEIR_MPV_SLICE_LAST;
}

// Reports whether the code ends the slice before it, and all that belongs to that slice.
static bool
ends_slice (int code)
{
  return is_slice (code) || code == WEIR_MPV_PICTURE || code == WEIR_MPV_SEQUENCE
         || code == WEIR_MPV_GROUP;
}

// ---- pictures ----

// Notes the parameters of a picture of MPEG-2, and sets whether they are new.
static void
note_coding (WeirMpvCut *self, uint32_t coding, bool extended)
{
  unsigned type = self->now.picture.type;

  self->now.mpeg2 = coding != 0;
  self->now.is_new = coding != self->coding[type] || extended || self->extended[type];
  self->coding[type] = coding;
  self->extended[type] = extended;
}

// Reads the headers up to the first slice, so that all payloads of the picture, with the first one,
// describe it.
static void
look_ahead (WeirMpvCut *self)
{
  WeirBytes b = weir_bytes (self->unit, self->unit_len + weir_bytes_left (&self->rest));
  bool found = false, extended = false;
  uint32_t coding = 0, read;
  WeirMpvPicture picture;
  const uint8_t *unit;
  size_t len;

  while (weir_start_code_cut (&b, &unit, &len)) {
    int code = weir_mpv_code (unit, len);

    if (is_slice (code))
      break;
    if (weir_mpv_read_picture (unit, len, &picture)) {
      self->now.picture = picture;
      found = true;
      coding = 0;
      extended = false;
    } else if (weir_mpv_read_coding (unit, len, &read)) {
      coding = read;
    } else if (code == WEIR_MPV_EXTENSION) {
      extended = true;
    }
  }
  self->looked = b.at;
  if (found)
    note_coding (self, coding, extended);
}

// ---- units ----

// Makes the next unit the one to send. Returns false if none is left.
static bool
fetch (WeirMpvCut *self)
{
  WeirBytes ahead;
  const uint8_t *unit;
  size_t len;

  if (self->unit_len > 0)
    return true;
  if (!weir_start_code_cut (&self->rest, &self->unit, &self->unit_len))
    return false;
  self->cut = false;
  self->code = weir_mpv_code (self->unit, self->unit_len);
  if (!is_slice (self->code))
    return true;
  ahead = self->rest;
  while (weir_start_code_cut (&ahead, &unit, &len) && !ends_slice (weir_mpv_code (unit, len))) {
    self->unit_len += len;
    self->rest = ahead;
  }
  return true;
}

bool
weir_mpv_cut_begin (WeirMpvCut *self, const uint8_t *frame, size_t len, size_t room)
{
  self->rest = weir_bytes (frame, len);
  self->room = room;
  self->unit_len = 0;
  self->looked = frame;
  if (fetch (self))
    look_ahead (self);
  if (self->now.picture.type == 0)
    self->unit_len = 0, self->rest = weir_bytes (NULL, 0);
  return self->now.picture.type != 0;
}

// ---- payloads ----

// Returns how many bytes of the next unit follow `len` bytes, with a slice among them or not.
static size_t
room_for_unit (const WeirMpvCut *self, size_t len, bool has_slice)
{
  size_t left = self->room - len;

  if (len > 0 && (self->code == WEIR_MPV_SEQUENCE || (has_slice && !is_slice (self->code))))
    return 0;
  if (self->unit_len <= left)
    return self->unit_len;
  // It is cut if no payload has room for all of it, but not behind a slice, and headers only where
  // a payload begins.
  if (len == 0 || (self->unit_len > self->room && is_slice (self->code) && !has_slice))
    return left;
  return 0;
}

static void
write_header (const WeirMpvCut *self, bool sequence, bool begins, bool ends, uint8_t *header)
{
  const WeirMpvPicture *picture = &self->now.picture;

  header[0] = (uint8_t) (picture->temporal_reference >> 8);
  header[1] = (uint8_t) picture->temporal_reference;
  header[2] = (uint8_t) (self->now.mpeg2 << 7 | (self->now.mpeg2 && self->now.is_new) << 6
                         | sequence << 5 | begins << 4 | ends << 3 | picture->type);
  header[3] = (uint8_t) (picture->full_pel_backward << 7 | picture->backward_f_code << 4
                         | picture->full_pel_forward << 3 | picture->forward_f_code);
}

bool
weir_mpv_cut_next (WeirMpvCut *self, WeirMpvPayload *out)
{
  bool sequence = false, begins = false, ends = false, whole = true;
  size_t n;

  if (!fetch (self))
    return false;
  if (!self->cut && !is_slice (self->code) && self->unit >= self->looked)
    look_ahead (self);
  out->data = self->unit;
  out->len = 0;
  while (whole && fetch (self) && (n = room_for_unit (self, out->len, begins)) > 0) {
    bool continued = self->cut;

    sequence |= !continued && self->code == WEIR_MPV_SEQUENCE;
    begins |= !continued && is_slice (self->code);
    ends = is_slice (self->code) && n == self->unit_len;
    // Nothing follows a part of a unit, neither its beginning nor its end.
    whole = !continued && n == self->unit_len;
    out->len += n;
    self->unit += n;
    self->unit_len -= n;
    self->cut = true;
  }
  write_header (self, sequence, begins, ends, out->header);
  out->last = !fetch (self);
  return true;
}
