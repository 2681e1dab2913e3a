// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Boxes of an MP4 file that is not in memory. Whoever wrote the file is not trusted.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_MP4_TYPE(a, b, c, d)                                                                  \
  ((uint32_t) (a) << 24 | (uint32_t) (b) << 16 | (uint32_t) (c) << 8 | (d))

typedef struct {
  // Reads up to `len` bytes at `offset`. Returns how many there were.
  size_t (*read) (void *file, uint64_t offset, uint8_t *bytes, size_t len);
  void *file;
  uint64_t size; // bytes
} WeirMp4File;

typedef struct {
  uint32_t type;
  uint64_t at, end; // of the content
} WeirMp4Place;

// Reads the head of the box at `at`, which ends at `end` at the latest. Returns whether it is
// whole.
bool weir_mp4_look_at (const WeirMp4File *file, uint64_t at, uint64_t end, WeirMp4Place *box);

// Finds a box of this type among the first ones from `at` to `end`.
bool weir_mp4_find_place (
    const WeirMp4File *file, uint32_t type, uint64_t at, uint64_t end, WeirMp4Place *box);

// Reads the content of a box into memory, which the caller frees. Returns NULL if it has more than
// `max` bytes, or cannot be read.
uint8_t *weir_mp4_read_place (const WeirMp4File *file, const WeirMp4Place *box, size_t max);

// Finds where the last fragments of a file begin, perhaps with the boxes before a moof, among those
// behind `fragments`. Returns 0 if that cannot be seen at once.
uint64_t weir_mp4_find_last (const WeirMp4File *file, uint64_t fragments);
