// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Splits a byte stream at its start codes (0 0 1).

#include "bits/bytes.h"

#define WEIR_START_CODE 3 // bytes

// Moves `b` to the next start code, or to the end. Returns false if there is none.
bool weir_start_code_find (WeirBytes *b);

// For H.264 and H.265 (annex B): a unit is what lies between two start codes, without zero bytes at
// its end. Moves `b` past the next unit and points `unit` at its `len` bytes, which stay the
// caller's. Bytes before the first start code are skipped. Returns false if no unit is left.
bool weir_start_code_next (WeirBytes *b, const uint8_t **unit, uint64_t *len);

// For streams of which no byte may be lost (MPEG-1 and MPEG-2 video): a unit begins with its start
// code and has all bytes up to the next one. Bytes before the first start code are a unit of their
// own. Moves `b` past the unit and points `unit` at its `len` bytes, which stay the caller's.
// Returns false if no byte is left.
bool weir_start_code_cut (WeirBytes *b, const uint8_t **unit, size_t *len);
