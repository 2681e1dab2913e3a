// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads how large the pictures are that begin with an RTP payload.

#include "codec/layers.h"

// Returns the pixels of a picture, or 0 if the payload does not say it: it does if it holds a
// sequence parameter set of H.264 that is not fragmented, or begins a key frame of VP8 (RFC 6386,
// 9.1). Payloads of other codecs are not read.
uint64_t weir_picture_pixels (WeirCodec codec, const uint8_t *payload, size_t len);
