// SPDX-License-Identifier: LGPL-2.1-or-later
#include "schedule/reception.h"

// Returns the frames that are over at `at_ns`, of `n` that begin at `start_ns`.
static int64_t
frames_at (int64_t start_ns, int64_t n, int64_t at_ns, int64_t frame_ns)
{
  const int64_t frames = at_ns > start_ns ? (at_ns - start_ns) / frame_ns : 0;

  return frames < n ? frames : n;
}

static int64_t
start_of (const WeirReceptionItem *item, int64_t frame_ns)
{
  return item->leave_ns - (int64_t) (item->to - item->from) * frame_ns;
}

// What is received and not played grows while more than one channel is received, so it is highest
// when a channel ends.
WeirReceptionNeeds
weir_reception_needs (const WeirReception *self, int64_t frame_ns)
{
  WeirReceptionNeeds needs = { 0 };

  for (size_t i = 0; i < self->n_items; i++) {
    const WeirReceptionItem *end = &self->items[i];
    int64_t buffer = 0;
    uint32_t at_once = 0, played = 0;
    for (size_t k = 0; k < self->n_items; k++) {
      const WeirReceptionItem *item = &self->items[k];
      at_once += item->join_ns <= end->join_ns && end->join_ns < item->leave_ns;
      buffer +=
          frames_at (start_of (item, frame_ns), item->to - item->from, end->leave_ns, frame_ns);
      played = item->to > played ? item->to : played;
    }
    buffer -= frames_at (self->play_ns, played, end->leave_ns, frame_ns);
    if (at_once > needs.at_once)
      needs.at_once = at_once;
    if (buffer > (int64_t) needs.buffer)
      needs.buffer = (uint32_t) buffer;
  }
  return needs;
}
