// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rtp/restamp.h"

#define SECOND INT64_C (1000000000)
#define MAX_LATE 1024 // packets; a number further back means that the source has restarted

void
weir_restamp_init (WeirRestamp *restamp, uint32_t clock_rate, int64_t limit, bool frames_marked)
{
  *restamp = (WeirRestamp) {
    .clock_rate = clock_rate ? clock_rate : 90000,
    .limit = limit,
    .frames_marked = frames_marked,
    .seq = WEIR_UNWRAP_START,
  };
}

static int64_t
ns_to_ticks (const WeirRestamp *restamp, int64_t ns)
{
  int64_t rate = restamp->clock_rate;

  return ns / SECOND * rate + ns % SECOND * rate / SECOND;
}

static void
note_offset (WeirRestamp *restamp)
{
  size_t at = restamp->n_repairs++ % WEIR_RESTAMP_HISTORY;

  restamp->repairs[at].seq = restamp->seq;
  restamp->repairs[at].offset = restamp->out - restamp->in;
}

// Returns the offset in force at sequence number `seq`, or the oldest one still known.
static uint32_t
offset_at (const WeirRestamp *restamp, int64_t seq)
{
  uint64_t n = restamp->n_repairs;
  uint64_t oldest = n > WEIR_RESTAMP_HISTORY ? n - WEIR_RESTAMP_HISTORY : 0;

  while (--n > oldest && restamp->repairs[n % WEIR_RESTAMP_HISTORY].seq > seq)
    ;
  return restamp->repairs[n % WEIR_RESTAMP_HISTORY].offset;
}

static WeirRestampFault
find_fault (const WeirRestamp *restamp, const WeirRtp *rtp, int64_t passed)
{
  int64_t limit = ns_to_ticks (restamp, restamp->limit);
  // Half of the range in either direction, as in unwrapping.
  int64_t step = (int32_t) (rtp->timestamp - restamp->in);

  if (rtp->ssrc != restamp->ssrc)
    return WEIR_RESTAMP_SOURCE;
  if (step < 0)
    return WEIR_RESTAMP_BACK;
  if (step > passed + limit)
    return WEIR_RESTAMP_JUMP;
  if (passed > step + limit)
    return WEIR_RESTAMP_STALL;
  if (step == 0 && restamp->stands_still && restamp->frame_ended)
    return WEIR_RESTAMP_STALL;
  return WEIR_RESTAMP_AS_IT_CAME;
}

// Reports whether a packet with an earlier number is only reordered: then its timestamp fits its
// number. Otherwise the source has restarted with numbers a little lower than before.
static bool
comes_late (const WeirRestamp *restamp, const WeirRtp *rtp, int64_t seq)
{
  if (!restamp->begun || rtp->ssrc != restamp->ssrc || seq > restamp->seq
      || restamp->seq - seq > MAX_LATE)
    return false;
  return (uint32_t) (restamp->out - rtp->timestamp - offset_at (restamp, seq))
         <= ns_to_ticks (restamp, restamp->limit);
}

static void
begin_times (WeirRestamp *restamp, const WeirRtp *rtp, int64_t now)
{
  restamp->begun = true;
  restamp->out = rtp->timestamp;
  restamp->advanced = now;
}

static WeirRestampFault
go_on (WeirRestamp *restamp, const WeirRtp *rtp, int64_t now)
{
  int64_t ns = now > restamp->advanced ? now - restamp->advanced : 0;
  int64_t passed = ns_to_ticks (restamp, ns);
  WeirRestampFault fault = find_fault (restamp, rtp, passed);

  if (fault == WEIR_RESTAMP_AS_IT_CAME && rtp->timestamp == restamp->in)
    return fault; // another packet of the same frame
  if (fault == WEIR_RESTAMP_AS_IT_CAME)
    restamp->out += rtp->timestamp - restamp->in;
  else
    restamp->out += (uint32_t) (passed > 0 ? passed : 1); // a new frame gets a new timestamp
  restamp->stands_still = fault == WEIR_RESTAMP_STALL && rtp->timestamp == restamp->in;
  restamp->advanced = now;
  return fault;
}

uint32_t
weir_restamp_map (WeirRestamp *restamp, const WeirRtp *rtp, int64_t now)
{
  WeirRestampFault fault = WEIR_RESTAMP_AS_IT_CAME;
  bool first = !restamp->begun;
  int64_t last = restamp->seq;
  int64_t seq = weir_unwrap16 (&last, rtp->seq);

  if (comes_late (restamp, rtp, seq)) {
    restamp->n_late++;
    return rtp->timestamp + offset_at (restamp, seq);
  }
  // After a restart of the source's numbers, the packet counts as ahead of all earlier ones.
  restamp->seq = !first && seq <= restamp->seq ? seq + 65536 : seq;
  if (first)
    begin_times (restamp, rtp, now);
  else
    fault = go_on (restamp, rtp, now);

  restamp->in = rtp->timestamp;
  restamp->ssrc = rtp->ssrc;
  restamp->frame_ended = rtp->marker || !restamp->frames_marked;
  restamp->count[fault]++;
  if (first || fault != WEIR_RESTAMP_AS_IT_CAME)
    note_offset (restamp);
  return restamp->out;
}
