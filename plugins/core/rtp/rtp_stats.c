// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rtp/rtp_stats.h"

#include <string.h>

#define FAR_BEHIND 3000 // packets; further behind is a restarted stream, not reordering
#define MAX_LOST 0x7fffff

void
weir_rtp_stats_init (WeirRtpStats *self, uint32_t clock_rate)
{
  *self = (WeirRtpStats) { .clock_rate = clock_rate ? clock_rate : 90000 };
}

static uint64_t
expected (const WeirRtpStats *self)
{
  return self->started ? (uint64_t) (self->max_seq - self->first_seq + 1) : 0;
}

static uint64_t
lost_now (const WeirRtpStats *self)
{
  return expected (self) > self->distinct ? expected (self) - self->distinct : 0;
}

uint64_t
weir_rtp_stats_lost (const WeirRtpStats *self)
{
  return self->lost_before + lost_now (self);
}

// Marks a sequence number as seen. Returns whether it was seen before.
static bool
take_bit (WeirRtpStats *self, int64_t seq)
{
  uint64_t bit = UINT64_C (1) << (seq & 63);
  uint64_t *word = &self->seen[((uint64_t) seq % WEIR_RTP_STATS_WINDOW) / 64];
  bool was = *word & bit;

  *word |= bit;
  return was;
}

static void
forget_bits (WeirRtpStats *self, int64_t from, int64_t to)
{
  if (to - from >= WEIR_RTP_STATS_WINDOW) {
    memset (self->seen, 0, sizeof self->seen);
    return;
  }
  for (int64_t seq = from; seq <= to; seq++)
    self->seen[((uint64_t) seq % WEIR_RTP_STATS_WINDOW) / 64] &= ~(UINT64_C (1) << (seq & 63));
}

static void
begin_source (WeirRtpStats *self, const WeirRtp *rtp)
{
  self->lost_before += lost_now (self);
  self->restarts += self->started;
  self->started = true;
  self->restart = false;
  self->ssrc = rtp->ssrc;
  self->first_seq = self->max_seq = rtp->seq;
  self->distinct = 1;
  self->expected_reported = self->distinct_reported = 0;
  self->transit_known = false;
  memset (self->seen, 0, sizeof self->seen);
  take_bit (self, rtp->seq);
}

static WeirRtpArrival
count_seq (WeirRtpStats *self, const WeirRtp *rtp)
{
  int64_t nearest = self->max_seq, seq = weir_unwrap16 (&nearest, rtp->seq);

  if (!self->started || self->restart || rtp->ssrc != self->ssrc
      || seq < self->max_seq - FAR_BEHIND) {
    begin_source (self, rtp);
    return WEIR_RTP_NEWEST;
  }
  if (seq > self->max_seq) {
    forget_bits (self, self->max_seq + 1, seq);
    take_bit (self, seq);
    self->max_seq = seq;
    self->distinct++;
    return WEIR_RTP_NEWEST;
  }
  if (self->max_seq - seq < WEIR_RTP_STATS_WINDOW && take_bit (self, seq)) {
    self->duplicates++;
    return WEIR_RTP_DUPLICATE;
  }
  if (seq < self->first_seq)
    self->first_seq = seq;
  self->distinct++;
  self->reordered++;
  return WEIR_RTP_REORDERED;
}

// Updates the interarrival jitter (RFC 3550, appendix A.8).
static void
count_jitter (WeirRtpStats *self, uint32_t timestamp, int64_t arrival_ns)
{
  uint64_t ns = (uint64_t) arrival_ns;
  uint64_t ticks =
      ns / 1000000000 * self->clock_rate + ns % 1000000000 * self->clock_rate / 1000000000;
  uint32_t transit = (uint32_t) ticks - timestamp;
  int32_t d = (int32_t) (transit - self->transit);

  if (self->transit_known)
    self->jitter16 += (d < 0 ? 0 - (uint32_t) d : (uint32_t) d) - ((self->jitter16 + 8) >> 4);
  self->transit = transit;
  self->transit_known = true;
}

WeirRtpArrival
weir_rtp_stats_add (WeirRtpStats *self, const WeirRtp *rtp, int64_t arrival_ns)
{
  WeirRtpArrival arrival;

  self->packets++;
  arrival = count_seq (self, rtp);
  if (arrival != WEIR_RTP_DUPLICATE)
    count_jitter (self, rtp->timestamp, arrival_ns);
  return arrival;
}

void
weir_rtp_stats_restart (WeirRtpStats *self)
{
  self->restart = true;
}

int64_t
weir_rtp_stats_jitter_ns (const WeirRtpStats *self)
{
  return (int64_t) ((self->jitter16 >> 4) * UINT64_C (1000000000) / self->clock_rate);
}

void
weir_rtp_stats_report (WeirRtpStats *self, WeirRtcpBlock *out)
{
  uint64_t wanted = expected (self) - self->expected_reported;
  uint64_t got = self->distinct - self->distinct_reported;
  uint64_t lost = weir_rtp_stats_lost (self);

  *out = (WeirRtcpBlock) {
    .ssrc = self->ssrc,
    .fraction_lost = wanted > got ? (uint8_t) ((wanted - got) * 255 / wanted) : 0,
    .lost = (int32_t) (lost > MAX_LOST ? MAX_LOST : lost),
    .highest_seq = (uint32_t) self->max_seq,
    .jitter = self->jitter16 >> 4,
  };
  self->expected_reported = expected (self);
  self->distinct_reported = self->distinct;
}
