// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swarm/picker.h"

#include <math.h>
#include <string.h>

static const char *const names[] = { "rarest", "in-order", "beta", "hybrid", "adaptive" };

#define TRANSFER_MAX_NS (INT64_MAX / 16)
// Chosen by simulation (docs/bench.md).
#define ADAPTIVE_LEAST 0.8 // of the title's rate: with less from peers, nothing is picked in order
#define ADAPTIVE_MARGIN 2  // times of a transfer before the first piece that is asked of peers

// Pieces `from` to `to` - 1.
typedef struct {
  uint32_t from, to;
} Range;

int
weir_picker_find (const char *name)
{
  for (int i = 0; i <= WEIR_PICKER_ADAPTIVE; i++) {
    if (strcmp (names[i], name) == 0)
      return i;
  }
  return -1;
}

const char *
weir_picker_name (WeirPicker picker)
{
  return names[picker];
}

// Returns when `bytes` arrive from one peer that is asked at `now_ns`, and the lead later.
static int64_t
needs_until_ns (const WeirPickerView *view, uint32_t bytes, int64_t now_ns)
{
  const double rate = view->peer_rate > 0 ? view->peer_rate : view->title.bit_rate;
  const double transfer_ns = ceil (bytes * 8e9 / rate);

  return now_ns + view->lead_ns
         + (transfer_ns < TRANSFER_MAX_NS ? (int64_t) transfer_ns : TRANSFER_MAX_NS);
}

uint32_t
weir_picker_first (const WeirPickerView *view, int64_t now_ns)
{
  return weir_playhead_first_due (
      &view->playhead, &view->title, needs_until_ns (view, view->title.piece_bytes, now_ns));
}

static bool
can_arrive (const WeirPickerView *view, uint32_t piece, int64_t now_ns)
{
  const uint32_t arrived = view->arrived ? view->arrived[piece] : 0;
  const uint32_t rest = arrived < view->title.piece_bytes ? view->title.piece_bytes - arrived : 0;

  return weir_playhead_due_ns (&view->playhead, &view->title, piece)
         >= needs_until_ns (view, rest, now_ns);
}

static bool
can_be_asked (const WeirPickerView *view, uint32_t piece)
{
  return view->pieces[piece] == WEIR_PIECE_MISSING && view->availability[piece] > 0;
}

static uint32_t
pick_in_order (const WeirPickerView *view, Range range)
{
  for (uint32_t i = range.from; i < range.to; i++) {
    if (can_be_asked (view, i))
      return i;
  }
  return WEIR_NO_PIECE;
}

// Returns the piece after `skip` others that can be asked. With `only` above 0, only pieces of that
// availability count.
static uint32_t
pick_nth (const WeirPickerView *view, Range range, uint32_t skip, unsigned only)
{
  for (uint32_t i = range.from; i < range.to; i++) {
    if (can_be_asked (view, i) && (only == 0 || view->availability[i] == only) && skip-- == 0)
      return i;
  }
  return WEIR_NO_PIECE;
}

static uint32_t
pick_rarest (const WeirPickerView *view, Range range, double draw)
{
  unsigned least = 0;
  uint32_t n = 0;

  for (uint32_t i = range.from; i < range.to; i++) {
    if (!can_be_asked (view, i))
      continue;
    if (n == 0 || view->availability[i] < least) {
      least = view->availability[i];
      n = 0;
    }
    n += view->availability[i] == least;
  }
  return n > 0 ? pick_nth (view, range, (uint32_t) (draw * n), least) : WEIR_NO_PIECE;
}

// The inverse of Beta(1,2)'s distribution function 1 - (1 - x)^2.
static uint32_t
pick_beta (const WeirPickerView *view, Range range, double draw)
{
  uint32_t n = 0;

  for (uint32_t i = range.from; i < range.to; i++)
    n += can_be_asked (view, i);
  return n > 0 ? pick_nth (view, range, (uint32_t) ((1 - sqrt (1 - draw)) * n), 0) : WEIR_NO_PIECE;
}

static Range
get_range (WeirPicker picker, const WeirPickerView *view, int64_t now_ns)
{
  const uint32_t n = (uint32_t) weir_swarm_title_pieces (&view->title);
  const uint32_t played = weir_playhead_piece (&view->playhead, &view->title, now_ns);
  Range range = { weir_picker_first (view, now_ns), n };

  if (view->ahead > 0 && n - played > view->ahead)
    range.to = played + view->ahead;
  // While peers bring less than the title's rate, some pieces come from the origin anyway. Those
  // that are needed first are left to it, so that no piece of a peer comes too late.
  if (picker == WEIR_PICKER_ADAPTIVE && view->swarm_rate < view->title.bit_rate
      && range.from < range.to) {
    const int64_t transfer_ns = needs_until_ns (view, view->title.piece_bytes, 0) - view->lead_ns;
    const uint32_t from = weir_picker_first (view, now_ns + ADAPTIVE_MARGIN * transfer_ns);
    const uint32_t half = range.from + (range.to - range.from) / 2;
    range.from = from < half ? from : half;
  }
  return range;
}

// Returns the end of the pieces that are taken in order.
static uint32_t
get_ordered (WeirPicker picker, const WeirPickerView *view, Range range, int64_t now_ns)
{
  const double share = view->swarm_rate / view->title.bit_rate;
  double part = 1; // of the window
  uint32_t end;

  if (picker == WEIR_PICKER_IN_ORDER)
    return range.to;
  if (picker == WEIR_PICKER_RAREST || picker == WEIR_PICKER_BETA)
    return range.from;
  if (picker == WEIR_PICKER_ADAPTIVE && view->idle)
    part = 0;
  else if (picker == WEIR_PICKER_ADAPTIVE && !view->keeps_window)
    part = fmin (fmax ((share - ADAPTIVE_LEAST) / (1 - ADAPTIVE_LEAST), 0), 1);
  end = weir_playhead_first_due (
      &view->playhead, &view->title, now_ns + (int64_t) (part * (double) view->window_ns));
  return end < range.from ? range.from : end > range.to ? range.to : end;
}

void
weir_picker_order (WeirPicker picker, const WeirPickerView *view, int64_t now_ns, uint32_t *from,
    uint32_t *ordered)
{
  const Range range = get_range (picker, view, now_ns);

  *from = range.from;
  *ordered = get_ordered (picker, view, range, now_ns);
}

uint32_t
weir_picker_pick (WeirPicker picker, const WeirPickerView *view, int64_t now_ns, double draw)
{
  const Range range = get_range (picker, view, now_ns);
  uint32_t ordered, piece;

  if (picker == WEIR_PICKER_RAREST)
    return pick_rarest (view, range, draw);
  ordered = get_ordered (picker, view, range, now_ns);
  piece = pick_in_order (view, (Range) { range.from, ordered });
  return piece != WEIR_NO_PIECE ? piece : pick_beta (view, (Range) { ordered, range.to }, draw);
}

unsigned
weir_picker_refill (WeirPicker picker, const WeirPickerView *view, int64_t now_ns,
    const double *draws, uint32_t *wanted, unsigned n, unsigned most)
{
  unsigned kept = 0;

  for (unsigned i = 0; i < n; i++) {
    if (view->pieces[wanted[i]] != WEIR_PIECE_WANTED)
      continue;
    if (can_arrive (view, wanted[i], now_ns))
      wanted[kept++] = wanted[i];
    else
      view->pieces[wanted[i]] = WEIR_PIECE_MISSING;
  }
  for (; kept < most; kept++) {
    wanted[kept] = weir_picker_pick (picker, view, now_ns, draws[kept]);
    if (wanted[kept] == WEIR_NO_PIECE)
      break;
    view->pieces[wanted[kept]] = WEIR_PIECE_WANTED;
  }
  return kept;
}
