// SPDX-License-Identifier: LGPL-2.1-or-later
// Room for the packets of a window: which block they lie in.
#include <stdlib.h>
#include <string.h>

#include "window/window.h"

// A block has the size of about 100 to 200 ms of the stream. A shorter block wastes less memory, a
// longer one is taken more rarely.
#define MEASURE_NS 1000000000
#define BLOCKS_PER_MEASURE 10

#define FIRST_STAGE 4 // packets

// Returns the bytes of the next block, which has room for `needed` bytes.
static size_t
next_size (WeirWindow *window, size_t needed)
{
  uint64_t wanted = window->measured_bytes / BLOCKS_PER_MEASURE;
  size_t size;

  // Until then the rate can only turn out to be higher.
  if (window->measured_to_ns - window->measured_from_ns >= MEASURE_NS) {
    window->block_size = WEIR_BLOCK_BYTES_MIN;
    window->measured_bytes = 0;
  }
  while (window->block_size < wanted && window->block_size < WEIR_BLOCK_BYTES)
    window->block_size *= 2;
  for (size = window->block_size; size < needed; size *= 2)
    ;
  return size;
}

// Moves the staged packets from the end of the old block to the start of the new one, so that the
// packets of a burst are adjacent.
static void
move_stage (WeirWindow *window, WeirWindowBlock *block)
{
  size_t from = window->block_used - window->bytes_staged;

  memcpy (block->data, window->block->data + from, window->bytes_staged);
  for (size_t i = 0; i < window->n_staged; i++) {
    weir_window_block_unref (window->stage[i].block);
    window->stage[i].block = weir_window_block_ref (block);
    window->stage[i].offset -= (uint32_t) from;
  }
}

// Takes a new block, from the file or from memory if the file has no room. Returns false if there
// is no memory.
static bool
take_block (WeirWindow *window, size_t len)
{
  size_t needed = window->bytes_staged + len;
  bool moves =
      window->n_staged > 0 && window->stage[0].block == window->block && needed <= WEIR_BLOCK_BYTES;
  size_t size = next_size (window, moves ? needed : len);
  WeirWindowBlock *block = window->file ? weir_window_block_new_in (window->file) : NULL;

  if (!block)
    block = weir_window_block_new (window->file ? WEIR_BLOCK_BYTES : size);
  if (!block)
    return false;
  if (moves)
    move_stage (window, block);
  weir_window_block_unref (window->block);
  window->block = block;
  window->n_blocks++;
  window->block_used = moves ? window->bytes_staged : 0;
  return true;
}

// Makes room for one more packet in the stage. Returns false if there is no memory.
static bool
grow_stage (WeirWindow *window)
{
  size_t size = window->stage_size > 0 ? 2 * window->stage_size : FIRST_STAGE;
  WeirPacket *stage;

  if (window->n_staged < window->stage_size)
    return true;
  stage = realloc (window->stage, size * sizeof *stage);
  if (!stage)
    return false;
  window->stage = stage;
  window->stage_size = size;
  return true;
}

uint8_t *
weir_window_reserve (WeirWindow *window, size_t len)
{
  if (len == 0 || len > WEIR_PACKET_MAX || window->n_staged == WEIR_STAGE_PACKETS
      || !grow_stage (window))
    return NULL;
  if ((!window->block || window->block->size - window->block_used < len)
      && !take_block (window, len))
    return NULL;
  return window->block->data + window->block_used;
}
