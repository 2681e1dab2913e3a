// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Splits packets of H.264 (RFC 6184, FU-A) and H.265 (RFC 7798, FU) that are too long for a line.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rtp/rtp.h"

typedef enum {
  WEIR_SPLIT_NONE, // of another codec: never split
  WEIR_SPLIT_H264,
  WEIR_SPLIT_H265,
} WeirSplitCodec;

typedef struct {
  WeirSplitCodec codec;
  const uint8_t *packet;
  size_t header;      // bytes of the RTP header with its extension
  const uint8_t *nal; // header of the NAL unit
  uint8_t type;       // of the NAL unit
  bool first, last;   // the packet begins the NAL unit; ends it
  bool marker;
  uint16_t seq; // of the next piece
  const uint8_t *at;
  size_t left, piece; // bytes
} WeirSplit;

// Begins to split a packet that is `rtp` into packets of at most `max` bytes. Returns their number;
// 0 if it is not longer, or cannot be split. `packet` must stay valid.
size_t weir_split_begin (
    WeirSplit *self, WeirSplitCodec codec, const uint8_t *packet, const WeirRtp *rtp, size_t max);

// Writes the next packet, with the next sequence number, to `out`, which has room for `max` bytes.
// Returns its length; 0 after the last one.
size_t weir_split_next (WeirSplit *self, uint8_t *out);
