// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Splits an RTP packet that holds one NAL unit into fragmentation units: FU-A of H.264 (RFC 6184,
// section 5.8), FU of H.265 (RFC 7798, section 4.4.3).

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEIR_FRAGMENTS_H264 = 1, WEIR_FRAGMENTS_H265 = 2 }; // bytes of a unit's header

typedef struct {
  const uint8_t *packet;
  size_t len, header; // `header`: bytes of the RTP header
  size_t at;          // bytes of the packet that are in fragments, or not sent at all
  size_t room;        // bytes of the unit in a fragment
  unsigned codec;
} WeirFragments;

// Begins with a packet, which must stay where it is. Returns false if it fits into `mtu` bytes, is
// not RTP, is padded, or is itself an aggregation or a fragment.
bool weir_fragments_begin (
    WeirFragments *self, const uint8_t *packet, size_t len, unsigned codec, size_t mtu);

// Writes the next fragment, of up to `mtu` bytes, to `out`, and returns its length; or 0 after the
// last one. All have the sequence number of the packet; the last one has its marker.
size_t weir_fragments_next (WeirFragments *self, uint8_t *out);
