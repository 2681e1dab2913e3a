// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads sequence parameter sets of H.264 (7.3.2.1) and the subset ones of SVC (type 15) for the
// fields that caps need, and converts a subset SPS to a plain SPS.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_SPS_MAX 1024 // bytes; longer sets are cut to this

typedef struct {
  uint8_t profile;
  uint8_t constraints; // the byte between profile_idc and level_idc
  uint8_t level;
  uint8_t id;
  uint32_t width, height;
  // slice_header_restriction_flag of a subset SPS: the slice headers of its layer read as in plain
  // H.264.
  bool slice_header_restricted;
} WeirSps;

// Reads an SPS or subset SPS. `nal` is the whole unit with its header byte. Returns 0, or -EBADMSG
// if it is invalid; then `out` is unchanged.
int weir_sps_read (const uint8_t *nal, size_t len, WeirSps *out);

// Writes a subset SPS as an SPS with the same id. The profile becomes Baseline if `baseline` is
// true and the set allows it, else High. `out` has `size` bytes. Returns the length; -EBADMSG if
// the set is invalid; -ENOTSUP if its profile is not scalable; -ENOSPC if `out` is too small.
int weir_sps_to_avc (const uint8_t *nal, size_t len, bool baseline, uint8_t *out, size_t size);
