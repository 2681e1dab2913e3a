// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ingest/reorder.h"

#include <stdlib.h>
#include <string.h>

void
weir_reorder_init (WeirReorder *self, const WeirReorderLimits *limits)
{
  *self = (WeirReorder) { .limits = *limits, .due_ns = WEIR_NEVER, .skip_to = INT64_MIN };
  if (self->limits.packets > WEIR_REORDER_PACKETS_MAX)
    self->limits.packets = WEIR_REORDER_PACKETS_MAX;
}

bool
weir_reorder_is_on (const WeirReorder *self)
{
  return self->limits.packets > 0 && self->limits.time_ns > 0;
}

static WeirIngestPacket *
slot_of (const WeirReorder *self, int64_t seq)
{
  int64_t n = (int64_t) self->limits.packets;

  return &self->slots[(seq % n + n) % n]; // a number before the first one is negative
}

static bool
holds (const WeirReorder *self, int64_t seq)
{
  const WeirIngestPacket *slot = self->slots ? slot_of (self, seq) : NULL;

  return slot && slot->data && slot->seq == seq;
}

size_t
weir_reorder_clear (WeirReorder *self)
{
  const WeirReorderLimits limits = self->limits;
  size_t n = self->n_held;

  for (size_t i = 0; self->slots && i < self->limits.packets; i++)
    free (self->slots[i].data);
  free (self->slots);
  free (self->released);
  weir_reorder_init (self, &limits);
  return n;
}

void
weir_reorder_make_room (WeirReorder *self, int64_t seq, size_t len)
{
  if (!self->begun)
    return;
  self->skip_to = seq - (int64_t) self->limits.packets + 1;
  self->wanted_bytes = seq == self->next ? 0 : len;
}

static bool
copy_to_slot (WeirReorder *self, const WeirIngestPacket *packet)
{
  WeirIngestPacket *slot;
  uint8_t *data;

  if (!self->slots) {
    self->slots = calloc (self->limits.packets, sizeof *self->slots);
    if (!self->slots)
      return false;
  }
  data = malloc (packet->len > 0 ? packet->len : 1);
  if (!data)
    return false;
  memcpy (data, packet->data, packet->len);
  slot = slot_of (self, packet->seq);
  *slot = *packet;
  slot->data = data;
  slot->missing = 0;
  return true;
}

// Returns the packets given up since the last packet told of any.
static uint64_t
take_skipped (WeirReorder *self)
{
  uint64_t n = self->skipped;

  self->skipped = 0;
  return n;
}

static void
skip (WeirReorder *self)
{
  if (self->skip_to <= self->next)
    return;
  self->skipped += (uint64_t) (self->skip_to - self->next);
  self->next = self->skip_to;
}

WeirReorderPut
weir_reorder_put (WeirReorder *self, WeirIngestPacket *packet)
{
  int64_t due_ns = packet->arrival_ns + self->limits.time_ns;

  if (!self->begun) {
    self->begun = true;
    self->next = packet->seq;
  }
  self->wanted_bytes = 0;
  skip (self);
  if (packet->seq < self->next)
    return WEIR_REORDER_LATE;
  if (packet->seq == self->next) {
    self->next++;
    packet->missing = take_skipped (self);
    return WEIR_REORDER_PASS;
  }
  if (holds (self, packet->seq))
    return WEIR_REORDER_DUPLICATE;
  if (!copy_to_slot (self, packet))
    return WEIR_REORDER_NO_MEMORY;
  self->n_held++;
  self->bytes_held += packet->len;
  if (due_ns < self->due_ns)
    self->due_ns = due_ns;
  return WEIR_REORDER_HELD;
}

// Finds the lowest number held. Some packet is held.
static int64_t
first_held (const WeirReorder *self)
{
  int64_t seq = self->next;

  while (!holds (self, seq))
    seq++;
  return seq;
}

static void
find_due (WeirReorder *self)
{
  size_t left = self->n_held;

  self->due_ns = WEIR_NEVER;
  for (int64_t seq = self->next; left > 0; seq++) {
    int64_t due_ns;

    if (!holds (self, seq))
      continue;
    left--;
    due_ns = slot_of (self, seq)->arrival_ns + self->limits.time_ns;
    if (due_ns < self->due_ns)
      self->due_ns = due_ns;
  }
}

static bool
gives_gap_up (const WeirReorder *self, int64_t seq, int64_t now_ns)
{
  return now_ns >= self->due_ns || seq < self->skip_to
         || self->bytes_held + self->wanted_bytes > self->limits.bytes;
}

bool
weir_reorder_pop (WeirReorder *self, int64_t now_ns, WeirIngestPacket *out)
{
  WeirIngestPacket *slot;
  int64_t seq;

  free (self->released);
  self->released = NULL;
  if (self->n_held == 0)
    return false;
  seq = first_held (self);
  if (seq != self->next && !gives_gap_up (self, seq, now_ns))
    return false;
  slot = slot_of (self, seq);
  *out = *slot;
  out->missing = (uint64_t) (seq - self->next) + take_skipped (self);
  self->released = slot->data;
  slot->data = NULL;
  self->next = seq + 1;
  self->n_held--;
  self->bytes_held -= out->len;
  if (out->arrival_ns + self->limits.time_ns <= self->due_ns)
    find_due (self);
  return true;
}

int64_t
weir_reorder_due (const WeirReorder *self)
{
  return self->due_ns;
}
