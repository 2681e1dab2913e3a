// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swarm/watcher.h"

// A random number for each viewer and piece, 0 to less than 1: the mixing of SplitMix64 (G. L.
// Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
static double
drawn (uint64_t viewer, uint32_t piece)
{
  uint64_t z = viewer + (piece + UINT64_C (1)) * UINT64_C (0x9e3779b97f4a7c15);

  z = (z ^ (z >> 30)) * UINT64_C (0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C (0x94d049bb133111eb);
  return (double) ((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

static int64_t
fetch_at_ns (const WeirWatcherView *view, uint32_t piece, uint32_t playing)
{
  const int64_t due_ns = weir_playhead_due_ns (&view->playhead, &view->title, piece);

  if (view->availability[piece] > 0 || view->pieces[piece] == WEIR_PIECE_WANTED
      || (view->ahead > 0 && piece - playing >= view->ahead))
    return due_ns - view->lead_ns;
  return due_ns - view->lead_ns
         - (int64_t) (drawn (view->viewer, piece) * (double) view->spread_ns);
}

uint32_t
weir_watcher_next (const WeirWatcherView *view, int64_t now_ns, int64_t *again_ns)
{
  const uint32_t n = (uint32_t) weir_swarm_title_pieces (&view->title);
  const uint32_t playing = weir_playhead_piece (&view->playhead, &view->title, now_ns);
  const int64_t longest_ns = view->lead_ns + view->spread_ns;

  *again_ns = INT64_MAX;
  for (uint32_t i = playing; i < n; i++) {
    const int64_t earliest_ns =
        weir_playhead_due_ns (&view->playhead, &view->title, i) - longest_ns;
    int64_t at_ns;

    if (earliest_ns > now_ns && earliest_ns >= *again_ns)
      break; // pieces from here on are later
    if (view->pieces[i] != WEIR_PIECE_MISSING && view->pieces[i] != WEIR_PIECE_WANTED)
      continue;
    at_ns = fetch_at_ns (view, i, playing);
    if (at_ns <= now_ns)
      return i;
    if (at_ns < *again_ns)
      *again_ns = at_ns;
  }
  return WEIR_NO_PIECE;
}
