// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Single packets of a packet file, as a client asks for them: lines "TRACK FROM-TO".

#include "broadcast/block_cache.h"

#define PACKET_RANGES_MAX 256

// Packets `from` to `to` of a track; both are included.
typedef struct {
  guint track;
  guint32 from, to;
} PacketRange;

// Parses the `length` bytes of `text`, or those before a zero, which come from a stranger, into
// `ranges`. Returns their number; 0 and sets `error` if the text is malformed
// (G_IO_ERROR_INVALID_ARGUMENT) or a range is not within the title (G_IO_ERROR_INVALID_DATA).
guint packet_ranges_parse (const PacketFile *file, const gchar *text, gsize length,
    PacketRange ranges[PACKET_RANGES_MAX], GError **error);

// Reads the packets of the ranges in their order, at most `max_packets` and `max_bytes`. Returns
// their records, and stores their number; NULL and sets `error` if they cannot be read. Waits for
// the disk.
GBytes *packet_ranges_read (BlockCache *cache, PacketFile *file, const PacketRange *ranges,
    guint n_ranges, guint max_packets, gsize max_bytes, guint *n_packets, GError **error);
