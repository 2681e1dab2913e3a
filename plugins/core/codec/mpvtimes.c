// SPDX-License-Identifier: LGPL-2.1-or-later
#include "codec/mpvtimes.h"

#include "bits/bytes.h"
#include "bits/startcode.h"
#include "codec/mpv.h"

enum { REFERENCES = 1024 }; // temporal references have 10 bits

// Reads the first picture header, and whether a group of pictures begins before it.
static bool
read_frame (const uint8_t *frame, size_t len, WeirMpvPicture *picture, bool *begins)
{
  WeirBytes b = weir_bytes (frame, len);
  const uint8_t *unit;
  size_t unit_len;

  *begins = false;
  while (weir_start_code_cut (&b, &unit, &unit_len)) {
    *begins |= weir_mpv_code (unit, unit_len) == WEIR_MPV_GROUP;
    if (weir_mpv_read_picture (unit, unit_len, picture))
      return true;
  }
  return false;
}

// Returns the number nearest to `last` that has this reference.
static int64_t
unwrap (int64_t last, unsigned reference)
{
  int64_t ahead = (reference - last) & (REFERENCES - 1);

  return last + (ahead < REFERENCES / 2 ? ahead : ahead - REFERENCES);
}

// Moves to the frame. Returns false if it has no picture header.
static bool
move (WeirMpvTimes *self, const uint8_t *frame, size_t len, int64_t duration)
{
  WeirMpvPicture picture;
  bool begins;

  if (!read_frame (frame, len, &picture, &begins))
    return false;
  if (!self->known || begins) {
    // The references of a group count all its frames, from 0.
    self->zero += self->known ? (self->highest + 1) * duration : 0;
    self->last = self->highest = picture.temporal_reference;
    return true;
  }
  self->last = unwrap (self->last, picture.temporal_reference);
  if (self->last > self->highest)
    self->highest = self->last;
  return true;
}

void
weir_mpv_times_note (
    WeirMpvTimes *self, const uint8_t *frame, size_t len, int64_t pts, int64_t duration)
{
  if (!move (self, frame, len, duration))
    return;
  self->known = true;
  self->zero = pts - self->last * duration;
}

bool
weir_mpv_times_find (
    WeirMpvTimes *self, const uint8_t *frame, size_t len, int64_t duration, int64_t *pts)
{
  if (!self->known || !move (self, frame, len, duration))
    return false;
  *pts = self->zero + self->last * duration;
  return true;
}
