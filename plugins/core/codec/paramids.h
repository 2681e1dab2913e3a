// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Other numbers for H.264's parameter sets. SVC lets an SPS and a subset SPS have the same number,
// but many a parser keeps both in one table.

#include <stddef.h>
#include <stdint.h>

// Writes an SPS or a subset SPS with the number `id`, or a PPS that refers to the SPS `id`. Returns
// the length; -EBADMSG for another unit or a broken one; -ENOSPC.
int weir_h264_set_sps_id (const uint8_t *nal, size_t len, uint32_t id, uint8_t *out, size_t size);
