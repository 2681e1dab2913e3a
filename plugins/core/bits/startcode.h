// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Splits a byte stream (H.264 and H.265, annex B) into NAL units. A start code (0 0 1) precedes
// each unit; zero bytes at its end do not belong to it.

#include "bits/bytes.h"

// Moves `b` past the next unit and points `unit` at its `len` bytes, which stay the caller's. Bytes
// before the first start code are skipped. Returns false if no unit is left.
bool weir_start_code_next (WeirBytes *b, const uint8_t **unit, uint64_t *len);
