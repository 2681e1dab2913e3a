// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// NAL units of a byte stream (H.264, annex B): each follows a start code 0 0 1, and zeros at its
// end don't belong to it.

#include "bits/bytes.h"

// Goes past the next unit, if there is one. What lies before the first start code is skipped.
bool weir_start_code_next (WeirBytes *b, const uint8_t **unit, uint64_t *len);
