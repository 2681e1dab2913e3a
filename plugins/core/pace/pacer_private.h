// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Shared by the files of the pacer: pacer.c (when packets leave), pacer_queue.c (the packets).

#include "pace/pacer.h"

// Returns the queued packet `i`, from 0.
static inline WeirPaceEntry *
entry_at (const WeirPacer *self, size_t i)
{
  return &self->entries[(self->first + i) & (self->capacity - 1)];
}

// Makes room for one more packet. Returns 0, or -ENOMEM.
int weir_pacer_make_room (WeirPacer *self);

// Appends a packet, for which there is room.
void weir_pacer_append (WeirPacer *self, const WeirPaceEntry *entry);

// Removes the first packet.
void weir_pacer_remove_first (WeirPacer *self);
