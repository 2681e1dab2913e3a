// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Changes the ids of H.264 parameter sets. SVC lets an SPS and a subset SPS share an id, but many
// parsers keep both in one table.

#include <stddef.h>
#include <stdint.h>

// Writes the SPS or subset SPS `nal` with the id `id`, or the PPS `nal` with a reference to the SPS
// `id`. `out` has `size` bytes. Returns the length; -EBADMSG for any other unit or an invalid one;
// -ENOSPC if `out` is too small.
int weir_h264_set_sps_id (const uint8_t *nal, size_t len, uint32_t id, uint8_t *out, size_t size);
