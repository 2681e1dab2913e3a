// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A line to a reader under a test clock: a queue of bounded length before a link of some rate, loss
// at random, and a reader that sends feedback about every 64 ms, as our own TWCC does. After a rest
// the link may pass some bytes at once, as a token bucket does.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rtp/feedback.h"

#define LINE_MS INT64_C (1000000)
#define LINE_UNDER_WAY 8192

typedef struct {
  uint64_t rate;      // bit/s
  int64_t buffer;     // ns that a packet may wait; one that would wait longer is lost
  uint64_t burst;     // bytes that pass at once
  int64_t delay;      // one way, without the queue
  unsigned loss;      // of 1000
  int64_t step;       // that the reader's clock is ahead
  unsigned ppm;       // that the reader's clock is too fast
  bool silent;        // the reader sends no feedback
  int64_t free_at;    // when the link has sent all that waits
  int64_t last_delay; // of the last packet
  int64_t report_due;
  uint32_t random;
  uint16_t next_told;               // number
  size_t n;                         // packets not told of, from next_told on
  int64_t arrivals[LINE_UNDER_WAY]; // -1: lost
} Line;

static inline uint32_t
line_random (Line *line)
{
  line->random = line->random * 1664525 + 1013904223;
  return line->random >> 8;
}

static inline int64_t
line_time (const Line *line, uint64_t bytes)
{
  return (int64_t) bytes * 8 * 1000 * LINE_MS / (int64_t) line->rate;
}

// Returns how long a packet that comes now waits.
static inline int64_t
line_wait (const Line *line, int64_t now)
{
  int64_t wait = line->free_at - line_time (line, line->burst) - now;

  return wait > 0 ? wait : 0;
}

// Sends a packet, without a number if it is another flow's; or packets that leave together, as
// segmented sends do. Returns whether they got into the queue.
static inline bool
line_queue (Line *line, size_t size, int64_t now, int64_t *arrival)
{
  if (line_wait (line, now) > line->buffer)
    return false;
  line->free_at = (line->free_at > now ? line->free_at : now) + line_time (line, size);
  *arrival = now + line_wait (line, now) + line->delay;
  return true;
}

static inline void
line_send (Line *line, size_t size, int64_t now)
{
  int64_t arrival;

  if (line->n == LINE_UNDER_WAY)
    return;
  if (!line_queue (line, size, now, &arrival) || line_random (line) % 1000 < line->loss)
    arrival = -1;
  else
    line->last_delay = arrival - now;
  line->arrivals[line->n++] = arrival;
}

// Makes feedback of what has arrived, if it is due. It takes `delay` more to the sender, which the
// caller may leave out. Returns false if there is none.
static inline bool
line_feedback (Line *line, int64_t now, WeirFeedback *out)
{
  size_t told = 0;

  if (line->silent || now < line->report_due)
    return false;
  // A loss shows when a later packet comes.
  for (size_t i = 0; i < line->n && i < WEIR_FEEDBACK_MAX && line->arrivals[i] <= now; i++) {
    if (line->arrivals[i] >= 0)
      told = i + 1;
  }
  if (told == 0)
    return false;
  line->report_due = now + 64 * LINE_MS;
  out->first = line->next_told;
  out->n = told;
  out->left_out = 0;
  for (size_t i = 0; i < told; i++) {
    int64_t at = line->arrivals[i] + line->step + line->arrivals[i] / 1000000 * line->ppm;

    out->arrived[i] = line->arrivals[i] >= 0;
    out->ticks[i] = (uint32_t) (at / (LINE_MS / 4));
  }
  for (size_t i = told; i < line->n; i++)
    line->arrivals[i - told] = line->arrivals[i];
  line->n -= told;
  line->next_told = (uint16_t) (line->next_told + told);
  return true;
}
