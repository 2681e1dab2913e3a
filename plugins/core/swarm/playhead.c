// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swarm/playhead.h"

#include <math.h>

#define SECOND 1e9

uint64_t
weir_swarm_title_pieces (const WeirSwarmTitle *title)
{
  return (title->bytes - 1) / title->piece_bytes + 1;
}

int64_t
weir_swarm_title_piece_ns (const WeirSwarmTitle *title)
{
  return (int64_t) (title->piece_bytes * 8 * SECOND / title->bit_rate);
}

int64_t
weir_playhead_due_ns (const WeirPlayhead *playhead, const WeirSwarmTitle *title, uint32_t piece)
{
  const double ahead = (double) piece * title->piece_bytes - (double) playhead->byte;

  return playhead->at_ns + (int64_t) ceil (ahead * 8 * SECOND / title->bit_rate);
}

static double
byte_at (const WeirPlayhead *playhead, const WeirSwarmTitle *title, int64_t at_ns)
{
  return (double) playhead->byte
         + (double) (at_ns - playhead->at_ns) * title->bit_rate / 8 / SECOND;
}

static uint32_t
within (const WeirSwarmTitle *title, double piece)
{
  const double n = (double) weir_swarm_title_pieces (title);

  return piece <= 0 ? 0 : (uint32_t) (piece < n ? piece : n);
}

uint32_t
weir_playhead_piece (const WeirPlayhead *playhead, const WeirSwarmTitle *title, int64_t now_ns)
{
  return within (title, floor (byte_at (playhead, title, now_ns) / title->piece_bytes));
}

uint32_t
weir_playhead_first_due (const WeirPlayhead *playhead, const WeirSwarmTitle *title, int64_t at_ns)
{
  uint32_t piece = within (title, ceil (byte_at (playhead, title, at_ns) / title->piece_bytes));

  // Two roundings can differ by one piece.
  while (piece > 0 && weir_playhead_due_ns (playhead, title, piece - 1) >= at_ns)
    piece--;
  while (piece < weir_swarm_title_pieces (title)
         && weir_playhead_due_ns (playhead, title, piece) < at_ns)
    piece++;
  return piece;
}
