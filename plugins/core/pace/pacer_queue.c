// SPDX-License-Identifier: LGPL-2.1-or-later
// The queue of a pacer: a ring of packet descriptions.
#include "pace/pacer_private.h"

#include <errno.h>
#include <stdlib.h>

int
weir_pacer_make_room (WeirPacer *self)
{
  size_t capacity = self->capacity ? 2 * self->capacity : 64;
  WeirPaceEntry *entries;

  if (self->n < self->capacity)
    return 0;
  if (!(entries = malloc (capacity * sizeof *entries)))
    return -ENOMEM;
  for (size_t i = 0; i < self->n; i++)
    entries[i] = *entry_at (self, i);
  free (self->entries);
  self->entries = entries;
  self->capacity = capacity;
  self->first = 0;
  return 0;
}

void
weir_pacer_append (WeirPacer *self, const WeirPaceEntry *entry)
{
  if (self->n_frame == self->n && (self->n == 0 || !entry->begins_frame))
    self->n_frame++;
  self->n++;
  *entry_at (self, self->n - 1) = *entry;
  self->bytes += entry->size;
}

void
weir_pacer_remove_first (WeirPacer *self)
{
  self->bytes -= entry_at (self, 0)->size;
  self->first = (self->first + 1) & (self->capacity - 1);
  self->n--;
  if (--self->n_frame > 0)
    return;
  while (self->n_frame < self->n
         && (self->n_frame == 0 || !entry_at (self, self->n_frame)->begins_frame))
    self->n_frame++;
}
