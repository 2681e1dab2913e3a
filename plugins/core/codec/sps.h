// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Sequence parameter sets of H.264 (7.3.2.1) and the subset ones of SVC (type 15): what caps need
// to know of them, and how a subset one becomes a plain one.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_SPS_MAX 1024 // bytes of the longest one that is taken

typedef struct {
  uint8_t profile;
  uint8_t constraints; // the byte between profile and level
  uint8_t level;
  uint8_t id;
  uint32_t width, height;
  // Of a subset SPS: slice headers of its layer read as those of plain H.264 do.
  bool slice_header_restricted;
} WeirSps;

// `nal` is the whole unit, header byte and all. Returns 0; -EBADMSG for what breaks the format.
int weir_sps_read (const uint8_t *nal, size_t len, WeirSps *out);

// Writes the subset SPS as an SPS of the same id. The profile becomes Baseline where `baseline` is
// set and the set allows it, else High. Returns the length; -EBADMSG for what breaks the format;
// -ENOTSUP if it is not of a scalable profile; -ENOSPC.
int weir_sps_to_avc (const uint8_t *nal, size_t len, bool baseline, uint8_t *out, size_t size);
