// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Where a viewer is in a title, and when each piece of the title is needed. A swarm's pieces have
// the same length, except for the last one.
//
// Times are ns of the caller's clock.

#include <stdbool.h>
#include <stdint.h>

#define WEIR_PIECES_MAX (1u << 20) // of a title
#define WEIR_NO_PIECE UINT32_MAX

// A title that is played at a constant rate.
typedef struct {
  uint64_t bytes;       // at least 1
  uint32_t piece_bytes; // at least 1
  double bit_rate;      // bits a second, above 0
} WeirSwarmTitle;

// Byte `byte` of the title is played at `at_ns`, and from then on the title's rate. For a paused
// viewer the caller sets `at_ns` to the present time before each use.
typedef struct {
  uint64_t byte;
  int64_t at_ns;
} WeirPlayhead;

typedef enum {
  WEIR_PIECE_MISSING,
  WEIR_PIECE_WANTED, // asked of peers
  WEIR_PIECE_ORIGIN, // asked of the origin
  WEIR_PIECE_HELD,
} WeirPieceState;

// Returns the number of pieces. The caller refuses more than WEIR_PIECES_MAX.
uint64_t weir_swarm_title_pieces (const WeirSwarmTitle *title);

// Returns how long the viewer takes to play a piece of full length.
int64_t weir_swarm_title_piece_ns (const WeirSwarmTitle *title);

// Returns when the first byte of the piece is played: for the piece that is being played and those
// before it, a time in the past.
int64_t weir_playhead_due_ns (
    const WeirPlayhead *playhead, const WeirSwarmTitle *title, uint32_t piece);

// Returns the piece that is played at `now_ns`, or the number of pieces after the end.
uint32_t weir_playhead_piece (
    const WeirPlayhead *playhead, const WeirSwarmTitle *title, int64_t now_ns);

// Returns the first piece that is due at `at_ns` or later, or the number of pieces.
uint32_t weir_playhead_first_due (
    const WeirPlayhead *playhead, const WeirSwarmTitle *title, int64_t at_ns);
