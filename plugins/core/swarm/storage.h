// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Which piece leaves a storage that holds less than the title. Played pieces leave first, of them
// those that most peers have.

#include "swarm/playhead.h"

typedef struct {
  const uint8_t *pieces;        // a WeirPieceState for each piece
  const uint16_t *availability; // peers that have the piece
  uint32_t n_pieces;
  uint32_t playing; // the piece that is being played, or n_pieces; it does not leave
} WeirStorageView;

// Returns the held piece that leaves to make room for piece `arriving`, or WEIR_NO_PIECE: then
// nothing has been played, and all that is held is needed before `arriving`. With WEIR_NO_PIECE for
// `arriving`, only played pieces leave.
uint32_t weir_storage_leave (const WeirStorageView *view, uint32_t arriving);
