// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Writes the beginning of a fragmented MP4 (ISO/IEC 14496-12; CMAF, ISO/IEC 23000-19): ftyp, and a
// moov with mvex.

#include "mp4/track.h"

// Writes into `out`, which has `size` bytes; `out` may be NULL if `size` is 0. Track `i` gets the
// number i + 1. Returns the number of bytes that it takes; if that is more than `size`, `out` is
// not complete.
size_t weir_mp4_write_init (uint8_t *out, size_t size, const WeirMp4Track *tracks, size_t n_tracks);

// Writes the beginning of a file on its own, with room for weir_mp4_set_times().
size_t weir_mp4_write_file_init (
    uint8_t *out, size_t size, const WeirMp4Track *tracks, size_t n_tracks);
