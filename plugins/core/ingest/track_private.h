// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Functions that the files of a track share.

#include "ingest/track.h"

// Counts a datagram as dropped.
void weir_track_drop (WeirTrack *self, WeirIngestDrop reason);

// Reports whether two addresses differ at most in their port.
bool weir_track_same_host (const WeirAddress *a, const WeirAddress *b);

// Reads a datagram of RTCP that was admitted.
void weir_track_read_rtcp (
    WeirTrack *self, const WeirAddress *from, const uint8_t *data, size_t len, int64_t now_ns);

// Notes that a packet was accepted: starts reports, and passes on a report that waited for it.
void weir_track_note_packet (WeirTrack *self, int64_t now_ns);
