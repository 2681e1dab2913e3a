// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Access units of the codecs whose layers can be taken apart without a look at parameter sets:
// H.265 (temporal layers: an access unit goes or stays as a whole), VP9 (the frames of a
// superframe) and AV1 (the OBUs of a temporal unit). For H.264 see svc.h.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/layers.h"
#include "svc/layerset.h"

#define WEIR_AU_PARTS 256
#define WEIR_AU_GROWTH 34 // bytes by which what comes out may be longer: a superframe's index

typedef struct {
  const uint8_t *data;
  size_t len;
  bool layered; // it is of the layer below; else it belongs to all
  bool frame;   // it is a picture, or a part of one
  uint8_t spatial, temporal;
} WeirAuPart;

typedef struct {
  WeirCodec codec;
  WeirAuPart parts[WEIR_AU_PARTS];
  size_t n;
  WeirPicture picture;
} WeirAu;

// `length_size` for H.265: as in weir_frame_read_au(). Returns 0, -EBADMSG for what breaks the
// format, -E2BIG for more parts than there is room for.
int weir_au_read (
    WeirAu *self, WeirCodec codec, const uint8_t *data, size_t len, unsigned length_size);

// Writes the parts that are in the set, at most WEIR_AU_GROWTH bytes more than came in. Returns the
// length, 0 if no picture remains.
size_t weir_au_write (const WeirAu *self, WeirLayerSet now, uint8_t *out);
