// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads fragmented MP4 as weir_mp4_write_init() and weir_mp4_write_fragment() write it, and moves
// fragments in time. Whoever wrote the file is not trusted: sizes and numbers may be anything.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_MP4_TRACKS_MAX 8
#define WEIR_MP4_BOX_HEAD 8

typedef struct {
  char type[5];
  uint64_t size; // with the head
} WeirMp4Box;

// Reads the head of a box. Returns 0, or -EINVAL if there are fewer than WEIR_MP4_BOX_HEAD bytes,
// or the box is of another form: of less than 8 bytes, or of 4 GiB and more.
int weir_mp4_read_box (const uint8_t *data, size_t len, WeirMp4Box *box);

typedef struct {
  size_t size;   // bytes: of the ftyp and the moov
  unsigned lead; // the first video track, or 0
  unsigned n_tracks;
  uint32_t timescales[WEIR_MP4_TRACKS_MAX]; // Hz, not 0; track `i` has the number i + 1
} WeirMp4Init;

// Reads the beginning of a file. Returns 0, -EAGAIN if `len` bytes are not enough, or -EINVAL.
int weir_mp4_read_init (const uint8_t *data, size_t len, WeirMp4Init *init);

typedef struct {
  bool has;          // the fragment has frames of the track
  bool key;          // a decoder can start with the first one
  size_t start_at;   // place of `start`
  uint64_t start;    // decode time of the first frame, in units of the track's timescale
  uint64_t duration; // of all frames
  int32_t offset;    // of the first frame: presentation time minus decode time
} WeirMp4Traf;

typedef struct {
  size_t sequence_at; // place of the number of the fragment
  WeirMp4Traf trafs[WEIR_MP4_TRACKS_MAX];
} WeirMp4Moof;

// Reads a whole moof box of `len` bytes. Returns 0 or -EINVAL. Afterwards each place has room for
// its number in these bytes: 4 bytes, and 8 bytes of `start`.
int weir_mp4_read_moof (const uint8_t *data, size_t len, WeirMp4Moof *moof);

// Gives the fragment, which `moof` describes, another number, and begins its tracks earlier by
// `earlier[i]`, in units of their timescale (later if it is negative), at 0 at the earliest.
void weir_mp4_move (uint8_t *data, const WeirMp4Moof *moof, uint32_t sequence,
    const int64_t earlier[WEIR_MP4_TRACKS_MAX]);
