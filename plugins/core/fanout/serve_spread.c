// SPDX-License-Identifier: LGPL-2.1-or-later
// Spreads frames to readers whose line is known: a large frame that is sent at once waits in the
// line, and looks like congestion.
#include "fanout/serve_private.h"

#define RUN 8             // most packets that are sent at once
#define SHORTEST (8 * MS) // a frame that takes less is sent at once
#define TICK (2 * MS)     // at multiples of it, readers of a shard are served together
// Between which the duration of a frame is.
#define FRAME_LEAST (5 * MS)
#define FRAME_MOST (40 * MS)
#define BYTE_NS INT64_C (8000000000) // of a byte at 1 bit/s

static size_t
count_bytes (const WeirSpan *span, uint64_t mask, size_t n)
{
  size_t bytes = 0;

  for (size_t i = 0; i < n; i++) {
    if (mask >> i & 1)
      bytes += span->packets[i].length;
  }
  return bytes;
}

// Plans at what rate the chosen packets in hand are sent: in the duration of a frame, or sooner if
// the line is faster.
static void
plan (const Pass *pass, Spread *spread, const Choice *choice, uint64_t pace)
{
  const WeirSpan *span = &pass->server->hand.packets;
  const WeirPacket *first = &span->packets[0], *last = &span->packets[choice->n - 1];
  size_t bytes = count_bytes (span, choice->mask, choice->n);
  int64_t apart = first->arrival_ns - spread->arrival_ns, time;

  // The rest of a frame that one hand does not hold has the duration of the frame.
  if (first->rtp_time != spread->rtp_time || apart >= FRAME_LEAST)
    spread->frame_ns = apart < FRAME_LEAST ? FRAME_LEAST : apart > FRAME_MOST ? FRAME_MOST : apart;
  spread->arrival_ns = first->arrival_ns;
  spread->rtp_time = first->rtp_time;
  time = (int64_t) bytes * BYTE_NS / (int64_t) pace;
  if (time > spread->frame_ns)
    time = spread->frame_ns;
  spread->from = first->position;
  spread->to = last->position + 1;
  spread->byte_ns = time < SHORTEST ? 0 : time / (int64_t) bytes;
  spread->due_ns = pass->now_ns;
}

// Returns the end of the first RUN packets chosen, with what is left out behind them.
static size_t
end_of_run (const Choice *choice)
{
  unsigned n_chosen = 0;
  size_t end = 0;

  for (; end < choice->n; end++) {
    if (choice->mask >> end & 1 && ++n_chosen > RUN)
      break;
  }
  return end;
}

void
weir_serve_spread (const Pass *pass, WeirReader *reader, Choice *choice)
{
  Spread *spread = &reader->spread;
  uint64_t pace = reader->protect.pace ? reader->protect.pace (reader->protect.data) : 0;
  size_t end;

  // Who catches up gets the past as the plan of the join says.
  if (pace == 0 || choice->live_at != NOT_HERE || reader_joining (reader)
      || __builtin_popcountll (choice->mask) <= RUN)
    return;
  if (get_cursor (reader) < spread->from || get_cursor (reader) >= spread->to)
    plan (pass, spread, choice, pace);
  if (spread->byte_ns == 0)
    return;
  end = end_of_run (choice);
  if (spread->due_ns < pass->now_ns - TICK)
    spread->due_ns = pass->now_ns - TICK;
  spread->due_ns +=
      (int64_t) count_bytes (&pass->server->hand.packets, choice->mask, end) * spread->byte_ns;
  choice->n = end;
  choice->mask &= first_bits (end);
  choice->next_ns = (spread->due_ns + TICK - 1) / TICK * TICK;
  if (choice->adopt_at >= end)
    choice->adopt_at = NOT_HERE;
  reader->next_ns = choice->next_ns;
}
