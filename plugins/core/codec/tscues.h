// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Finds the cues of SCTE 35 in the packets of a transport stream, and how far ahead they are of its
// pictures. Takes the first program of the stream.

#include "codec/scte35.h"

#define WEIR_TS_PACKET 188
#define WEIR_TS_SECTION_MAX 4096

typedef struct {
  uint32_t event;
  bool cancel, out;
  int64_t delay;    // from the newest picture to the splice, ns; not negative
  int64_t duration; // ns; 0: not known
} WeirCue;

typedef struct {
  int pid;      // -1: not known
  size_t n;     // bytes of the section so far
  bool is_open; // a section has begun
  uint8_t bytes[WEIR_TS_SECTION_MAX];
} WeirTsSection;

// Zeroed at first. All fields are private.
typedef struct {
  uint8_t packet[WEIR_TS_PACKET];
  size_t n_packet;
  bool begun;
  WeirTsSection tables, map, cues;
  int pictures; // their PID; -1: none
  bool timed;
  uint64_t time; // of decoding of the newest picture, in ticks of 90 kHz
} WeirTsCues;

// Takes the next bytes of the stream, of any number. Calls `found` for each cue.
void weir_ts_cues_take (WeirTsCues *self, const uint8_t *bytes, size_t len,
    void (*found) (void *data, const WeirCue *cue), void *data);
