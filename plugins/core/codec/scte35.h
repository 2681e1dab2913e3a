// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Cues of a transport stream (ANSI/SCTE 35): where another programme may be inserted, and where it
// ends.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_SCTE35_STREAM 0x86 // stream type in a program map
#define WEIR_SCTE35_TABLE 0xfc
#define WEIR_SCTE35_TIMES (UINT64_C (1) << 33) // times are less, in ticks of 90 kHz

typedef struct {
  uint32_t event;
  bool cancel;       // the event will not come; what follows is not set
  bool out;          // the insertion begins, or else it ends
  bool timed;        // at `time`, or else at once
  uint64_t time;     // PTS
  uint64_t duration; // of the insertion, in ticks; 0: not known
} WeirScte35;

// Reads a splice_info_section, which begins with its table id and ends with its checksum. Returns
// 0; -EINVAL if it is malformed; -ENOTSUP if it is encrypted, or neither splice_insert nor a
// time_signal that begins or ends a break or an advertisement.
int weir_scte35_read (const uint8_t *section, size_t len, WeirScte35 *cue);
