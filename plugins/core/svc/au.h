// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Splits access units into layers, for codecs whose layers show without parameter sets: H.265
// (temporal layers: an access unit is kept or dropped as a whole), VP9 (the frames of a superframe)
// and AV1 (the OBUs of a temporal unit). For H.264 see svc.h.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/layers.h"
#include "svc/layerset.h"

#define WEIR_AU_PARTS 256
#define WEIR_AU_GROWTH 34 // bytes by which the output may exceed the input: a superframe index

typedef struct {
  const uint8_t *data;
  size_t len;
  bool layered; // belongs to the layer given below; else to all layers
  bool frame;   // a picture or a part of a picture
  uint8_t spatial, temporal;
} WeirAuPart;

typedef struct {
  WeirCodec codec;
  WeirAuPart parts[WEIR_AU_PARTS];
  size_t n;
  WeirPicture picture;
} WeirAu;

// Reads an access unit of `len` bytes; the parts point into `data`. `length_size` is for H.265, as
// in weir_frame_read_au(). Returns 0; -EBADMSG if it is invalid; -E2BIG for more than WEIR_AU_PARTS
// parts.
int weir_au_read (
    WeirAu *self, WeirCodec codec, const uint8_t *data, size_t len, unsigned length_size);

// Writes the parts that belong to the layer set `now`. `out` needs room for WEIR_AU_GROWTH bytes
// more than were read. Returns the length, or 0 if no picture remains.
size_t weir_au_write (const WeirAu *self, WeirLayerSet now, uint8_t *out);
