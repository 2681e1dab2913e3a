// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Cuts MPEG-1 and MPEG-2 video into RTP payloads (RFC 2250, section 3), with the header of section
// 3.4, without the extension of section 3.4.1:
//
// - A sequence header begins a payload, and so do the headers of a picture. The first slices of the
//   picture follow its headers.
// - A slice that fits into a payload is not cut. A longer one fills payloads, the first of them
//   behind the headers of the picture, if it is the first slice; the next slice begins a payload.
// - All bytes are sent: user data and extensions with the headers, a sequence end code and whatever
//   else follows a slice with that slice.

#include "bits/bytes.h"
#include "codec/mpv.h"

#define WEIR_MPV_HEADER_SIZE 4

typedef struct {
  bool mpeg2;
  bool is_new; // its parameters differ from those of the last picture of its type (RFC: N)
  WeirMpvPicture picture;
} WeirMpvPictureState;

// A cutter, zeroed at first. All fields are private.
typedef struct {
  WeirBytes rest;
  size_t room;
  const uint8_t *unit; // the unit to send next, or what is left of it
  size_t unit_len;
  int code;
  bool cut;              // its beginning has been sent
  const uint8_t *looked; // the pictures that begin before here have been read

  WeirMpvPictureState now;
  // Of the last picture of each type: its picture coding extension, 0 if none, and whether it had
  // other extensions.
  uint32_t coding[WEIR_MPV_D + 1];
  bool extended[WEIR_MPV_D + 1];
} WeirMpvCut;

typedef struct {
  uint8_t header[WEIR_MPV_HEADER_SIZE];
  const uint8_t *data; // bytes of the frame
  size_t len;
  bool last; // of the frame: it has the marker bit
} WeirMpvPayload;

// Begins a frame: a picture or the two fields of one, with the headers before it. `room` is the
// largest number of bytes behind the header of a payload, at least 1. The bytes stay the caller's,
// and must stay valid until the last payload. Returns false, and there are no payloads, if neither
// this frame nor one before has a picture header: such slices cannot be described.
bool weir_mpv_cut_begin (WeirMpvCut *self, const uint8_t *frame, size_t len, size_t room);

// Returns false if no payload is left.
bool weir_mpv_cut_next (WeirMpvCut *self, WeirMpvPayload *out);
