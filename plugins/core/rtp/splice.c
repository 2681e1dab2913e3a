// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rtp/splice.h"

#include <errno.h>

#include "rtp/rtp.h"

#define SECOND INT64_C (1000000000)

static int64_t
ticks_to_ns (const WeirSplice *splice, int64_t ticks)
{
  int64_t rate = splice->clock_rate;

  // In two parts: ticks * 10^9 exceeds 64 bits after 28 hours at 90 kHz.
  return ticks / rate * SECOND + ticks % rate * SECOND / rate;
}

static int64_t
ns_to_ticks (const WeirSplice *splice, int64_t ns)
{
  int64_t rate = splice->clock_rate;

  // To the nearest tick, because ticks_to_ns() rounded down.
  return ns / SECOND * rate + (ns % SECOND * rate + SECOND / 2) / SECOND;
}

void
weir_splice_init (WeirSplice *splice, uint32_t clock_rate)
{
  *splice = (WeirSplice) { .clock_rate = clock_rate ? clock_rate : 90000 };
}

uint32_t
weir_splice_timestamp_at (const WeirSplice *splice, int64_t time)
{
  return splice->origin + (uint32_t) ns_to_ticks (splice, time);
}

void
weir_splice_begin (WeirSplice *splice, uint32_t base, int64_t start)
{
  if (splice->n_runs++ == 0)
    splice->origin = base - (uint32_t) ns_to_ticks (splice, start);
  splice->run_start = start;
  splice->ts_offset = weir_splice_timestamp_at (splice, start) - base;
  splice->in_ts = WEIR_UNWRAP_START;
  splice->in_seq = WEIR_UNWRAP_START;
  splice->in_ts_first = splice->in_ts_max = weir_unwrap32 (&splice->in_ts, base);
  splice->seq_known = false;
}

int
weir_splice_map (WeirSplice *splice, uint16_t seq, uint32_t timestamp, uint16_t *out_seq,
    uint32_t *out_timestamp)
{
  int64_t in_seq, in_ts, mapped;

  if (splice->n_runs == 0)
    return -EINVAL;

  in_seq = weir_unwrap16 (&splice->in_seq, seq);
  if (!splice->seq_known) {
    splice->seq_known = true;
    splice->seq_offset = splice->n_runs == 1 ? 0 : splice->last_seq + 1 - in_seq;
    splice->first_seq = splice->last_seq = in_seq + splice->seq_offset;
  }
  mapped = in_seq + splice->seq_offset;
  if (splice->n_runs > 1 && mapped < splice->first_seq)
    return -ESTALE;
  if (mapped > splice->last_seq)
    splice->last_seq = mapped;

  in_ts = weir_unwrap32 (&splice->in_ts, timestamp);
  if (in_ts > splice->in_ts_max)
    splice->in_ts_max = in_ts;

  *out_seq = (uint16_t) mapped;
  *out_timestamp = timestamp + splice->ts_offset;
  return 0;
}

int64_t
weir_splice_time (const WeirSplice *splice, uint32_t timestamp)
{
  int64_t near = splice->in_ts;

  if (splice->n_runs == 0)
    return 0;
  return splice->run_start
         + ticks_to_ns (splice, weir_unwrap32 (&near, timestamp) - splice->in_ts_first);
}

int64_t
weir_splice_end (const WeirSplice *splice)
{
  if (splice->n_runs == 0)
    return 0;
  return splice->run_start + ticks_to_ns (splice, splice->in_ts_max - splice->in_ts_first);
}
