// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Finds the duration of an MP4 file of any writer (ISO/IEC 14496-12). The header of a fragmented
// file often says 0, or the duration of its first fragment; then the fragments are looked at.
// Whoever wrote the file is not trusted.

#include "mp4/places.h"

typedef struct {
  uint64_t at;   // in the file
  unsigned size; // bytes: 4 or 8; 0: there is none
} WeirMp4Field;

typedef struct {
  uint32_t timescale; // Hz, of `end` and of the fields; not 0
  uint64_t start;     // of the first frame
  uint64_t end;       // of the last frame
  // Of a fragmented file only:
  WeirMp4Field durations[2]; // of the header: of the movie (mvhd), and with its fragments (mehd)
  bool has_head;             // the header has frames itself
} WeirMp4Length;

// Returns whether the duration is known. Reads at most some thousand times, for 6 MiB in all; of a
// file with an index, or with less than 1 MiB in its last fragment, some ten times.
bool weir_mp4_find_length (const WeirMp4File *file, WeirMp4Length *length);
