// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the headers of MPEG-1 and MPEG-2 video (ISO/IEC 11172-2 and 13818-2). A unit is a start
// code and the bytes up to the next one.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The last byte of a start code. Slices have 0x01 to 0xaf.
enum {
  WEIR_MPV_PICTURE = 0x00,
  WEIR_MPV_SLICE_FIRST = 0x01,
  WEIR_MPV_SLICE_LAST = 0xaf,
  WEIR_MPV_SEQUENCE = 0xb3,
  WEIR_MPV_EXTENSION = 0xb5,
  WEIR_MPV_GROUP = 0xb8,
};

enum { WEIR_MPV_I = 1, WEIR_MPV_P, WEIR_MPV_B, WEIR_MPV_D };

typedef struct {
  uint16_t temporal_reference;
  uint8_t type; // WEIR_MPV_I to WEIR_MPV_D
  // The full_pel flags and f_codes, as in the picture header; 0 where the type has none.
  bool full_pel_backward, full_pel_forward;
  uint8_t backward_f_code, forward_f_code;
} WeirMpvPicture;

// Returns the last byte of the start code that the unit begins with, or -1 if it begins with none.
int weir_mpv_code (const uint8_t *unit, size_t len);

// Returns false if the unit is not a whole picture header, or if its type is none of the four.
bool weir_mpv_read_picture (const uint8_t *unit, size_t len, WeirMpvPicture *out);

// Reads the picture coding extension of MPEG-2: sets its fields from f_code[0][0] to
// composite_display_flag as one number, which is greater than 0. Returns false if the unit is not a
// whole picture coding extension.
bool weir_mpv_read_coding (const uint8_t *unit, size_t len, uint32_t *out);
