// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The reception schedule of one client: which channels it receives, which frames on each, and when
// (Bradshaw et al., section 4.1). The client plays frame 0 at `play_ns`, and the others at the
// title's rate; each frame is sent before it is due.

#include <stddef.h>
#include <stdint.h>

#include "schedule/segments.h"
#include "schedule/work.h"

#define WEIR_RECEPTION_MAX WEIR_SEGMENTS_MAX

typedef struct {
  WeirChannelType type;
  uint32_t number;   // of the channel
  uint32_t from, to; // frames; `to` is not part of it
  int64_t join_ns,
      leave_ns; // frame `from` is sent at or after the first; all are sent at the second
} WeirReceptionItem;

typedef struct {
  int64_t play_ns;
  size_t n_items;
  WeirReceptionItem items[WEIR_RECEPTION_MAX]; // in the order of their frames
} WeirReception;

// Needs of a client that follows a reception schedule.
typedef struct {
  uint32_t at_once; // channels received at a time
  uint32_t buffer;  // frames received before they are played
} WeirReceptionNeeds;

// Computes the needs at their highest.
WeirReceptionNeeds weir_reception_needs (const WeirReception *self, int64_t frame_ns);
