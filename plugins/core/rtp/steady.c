// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rtp/steady.h"

#define SECOND INT64_C (1000000000)
#define STEP_S 2                     // timestamps that are no further apart need no second look
#define FAR_S 10                     // further from the expected timestamp is odd
#define ELAPSED_MAX_S INT64_C (3600) // longer silence says nothing about timestamps

void
weir_steady_init (WeirSteady *self, uint32_t clock_rate)
{
  *self = (WeirSteady) { .clock_rate = clock_rate ? clock_rate : 90000 };
  self->near = self->clock_rate;
}

// Returns the ticks of a time, which is taken as at most ELAPSED_MAX_S.
static int64_t
to_ticks (const WeirSteady *self, int64_t ns)
{
  if (ns < 0)
    ns = 0;
  if (ns > ELAPSED_MAX_S * SECOND)
    ns = ELAPSED_MAX_S * SECOND;
  return ns / SECOND * self->clock_rate + ns % SECOND * self->clock_rate / SECOND;
}

static bool
is_small (const WeirSteady *self, int64_t ticks, int64_t seconds)
{
  return ticks <= seconds * self->clock_rate && ticks >= -seconds * self->clock_rate;
}

// Reports whether `timestamp` at `now_ns` is where the stream should be that had `from` at
// `from_ns`.
static bool
is_due (const WeirSteady *self, uint32_t from, int64_t from_ns, uint32_t timestamp, int64_t now_ns)
{
  return is_small (self, (int32_t) (timestamp - from) - to_ticks (self, now_ns - from_ns), FAR_S);
}

// Reports whether `timestamp` follows `from` or is where the stream should be now.
static bool
goes_on (const WeirSteady *self, uint32_t from, int64_t from_ns, uint32_t timestamp, int64_t now_ns)
{
  return is_small (self, (int32_t) (timestamp - from), STEP_S)
         || is_due (self, from, from_ns, timestamp, now_ns);
}

static void
set_anchor (WeirSteady *self, uint32_t timestamp, int64_t now_ns)
{
  self->anchor_ts = timestamp;
  self->anchor_ns = now_ns;
}

static uint32_t
follow (WeirSteady *self, uint32_t timestamp, int64_t now_ns)
{
  int32_t step = (int32_t) (timestamp - self->last_ts);

  if (step > 0) {
    self->step = is_small (self, step, 1) ? (uint32_t) step : self->step;
    self->last_ts = timestamp;
    self->last_ns = now_ns;
  }
  if (now_ns - self->anchor_ns > WEIR_STEADY_ANCHOR_NS)
    set_anchor (self, timestamp, now_ns);
  return timestamp + self->ts_shift;
}

// Has the stream go on from `timestamp`, which leaves as `out`.
static void
jump (WeirSteady *self, uint32_t timestamp, uint32_t out, int64_t now_ns)
{
  self->last_ts = timestamp;
  self->last_ns = now_ns;
  self->ts_shift = out - timestamp;
  set_anchor (self, timestamp, now_ns);
}

// Returns the timestamp behind `out`, which left at `out_ns`, for a packet that comes now.
static uint32_t
next_to (const WeirSteady *self, uint32_t out, int64_t out_ns, int64_t now_ns)
{
  int64_t ticks = to_ticks (self, now_ns - out_ns);

  return out + (ticks < self->clock_rate ? self->step : (uint32_t) ticks);
}

static uint32_t
take_far (WeirSteady *self, uint32_t timestamp, bool begins, int64_t now_ns, bool *moved)
{
  bool was_odd = self->odd;

  if (was_odd && timestamp == self->odd_ts)
    return self->odd_out;
  self->odd = false;
  if (goes_on (self, self->last_ts, self->last_ns, timestamp, now_ns)
      || is_due (self, self->anchor_ts, self->anchor_ns, timestamp, now_ns))
    return follow (self, timestamp, now_ns);
  if (was_odd && goes_on (self, self->odd_ts, self->odd_ns, timestamp, now_ns)) {
    jump (self, self->odd_ts, self->odd_out, self->odd_ns);
    return follow (self, timestamp, now_ns);
  }
  *moved = true;
  self->odd_out = was_odd ? next_to (self, self->odd_out, self->odd_ns, now_ns)
                          : next_to (self, self->last_ts + self->ts_shift, self->last_ns, now_ns);
  self->odd_ts = timestamp;
  self->odd_ns = now_ns;
  if (begins)
    jump (self, timestamp, self->odd_out, now_ns);
  else
    self->odd = true;
  return self->odd_out;
}

void
weir_steady_take_timestamp (
    WeirSteady *self, WeirRtp *rtp, bool begins, int64_t now_ns, bool *moved)
{
  if (!self->begun) {
    self->step = self->clock_rate / 50;
    jump (self, rtp->timestamp, rtp->timestamp, now_ns);
  } else if (!self->odd && !begins
             && is_small (self, (int32_t) (rtp->timestamp - self->last_ts), STEP_S)) {
    rtp->timestamp = follow (self, rtp->timestamp, now_ns);
  } else {
    rtp->timestamp = take_far (self, rtp->timestamp, begins, now_ns, moved);
  }
}

void
weir_steady_take_seq (WeirSteady *self, WeirRtp *rtp, bool begins)
{
  int16_t step = (int16_t) (rtp->seq - self->last_seq);

  if (!self->begun) {
    self->begun = true;
    self->ssrc = rtp->ssrc;
    self->last_seq = rtp->seq;
  } else if (begins) {
    self->seq_shift = (uint16_t) (self->last_seq + self->seq_shift + 1 - rtp->seq);
    self->last_seq = rtp->seq;
  } else if (step > 0) {
    self->last_seq = rtp->seq;
  }
  rtp->seq = (uint16_t) (rtp->seq + self->seq_shift);
  rtp->ssrc = self->ssrc;
  self->is_plain = self->seq_shift == 0 && self->ts_shift == 0 && !self->odd;
}

uint32_t
weir_steady_timestamp (const WeirSteady *self, uint32_t timestamp)
{
  return timestamp + self->ts_shift;
}
