// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The stream watcher: which missing piece is to be fetched from the origin now (Choe 2007, section
// 5.1.2). A piece is fetched when it is still missing one lead before it is due.
//
// Beyond the paper, a piece that no peer has may be fetched earlier: each viewer draws a time for
// it within the spread before its deadline, and whoever is first gives it to the others. Without
// that, viewers who start together all fetch each piece.

#include "swarm/playhead.h"

typedef struct {
  WeirSwarmTitle title;
  WeirPlayhead playhead;
  const uint8_t *pieces;        // a WeirPieceState for each piece
  const uint16_t *availability; // peers that have the piece, whether they could send it or not
  int64_t lead_ns;              // before a piece is due; longer than a fetch takes
  int64_t spread_ns;            // before that; 0: no piece is fetched early
  uint64_t viewer;              // a random number of this viewer
  uint32_t ahead; // only so many pieces from the playhead on are fetched early, what the storage
                  // holds; 0: all
} WeirWatcherView;

// Returns the piece that is to be fetched from the origin at `now_ns`, or WEIR_NO_PIECE. The caller
// makes it WEIR_PIECE_ORIGIN and calls again. `*again_ns` gets the time of the next call if nothing
// changes before, INT64_MAX if there is none. Pieces that have been played are not fetched.
uint32_t weir_watcher_next (const WeirWatcherView *view, int64_t now_ns, int64_t *again_ns);
