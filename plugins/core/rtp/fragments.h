// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Splits an RTP packet that holds one NAL unit into fragmentation units: FU-A of H.264 (RFC 6184,
// section 5.8), FU of H.265 (RFC 7798, section 4.4.3).

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rtp/rtp.h"

enum { WEIR_FRAGMENTS_H264 = 1, WEIR_FRAGMENTS_H265 = 2 }; // bytes of a unit's header

// The first bytes of a packet, of which weir_fragments_begin() needs no more; and the most that
// weir_fragments_next() writes.
#define WEIR_FRAGMENTS_HEAD (WEIR_RTP_HEADER_MAX + WEIR_FRAGMENTS_H265 + 1)

typedef struct {
  const uint8_t *head;
  size_t len, header; // `header`: bytes of the RTP header
  size_t at;          // bytes of the packet that are in fragments, or not sent at all
  size_t room;        // bytes of the unit in a fragment
  unsigned codec;
} WeirFragments;

// Begins with a packet of `len` bytes, of which `head` holds the first min (`len`,
// WEIR_FRAGMENTS_HEAD) and must stay where it is. Returns false if the packet fits into `mtu`
// bytes, is not RTP, is padded, has a longer header, or is itself an aggregation or a fragment.
bool weir_fragments_begin (
    WeirFragments *self, const uint8_t *head, size_t len, unsigned codec, size_t mtu);

// Writes the header of the next fragment to `out` and returns its length, or 0 after the last
// fragment. Bytes `*from` to `*from` + `*n` - 1 of the packet follow the header; both together are
// up to `mtu` bytes. All fragments have the sequence number of the packet; the last one has its
// marker.
size_t weir_fragments_next (WeirFragments *self, uint8_t *out, size_t *from, size_t *n);
