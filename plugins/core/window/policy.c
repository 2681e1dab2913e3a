// SPDX-License-Identifier: LGPL-2.1-or-later
#include "window/policy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_TABLE 64
#define KNOWN_PER_HELD 64 // blocks known for each held one, before some are forgotten
#define KNOWN_MIN 4096
#define LFU_LEAD 2 // requests by which a new block must be ahead

struct weir_policy_block {
  uint64_t key;
  uint64_t count; // number of requests
  uint64_t last;  // clock of the last request
  uint64_t bytes;
  size_t heap_at; // index in the heap, from 1; 0: not held
};

// ---- the table ----

static size_t
slot_of (const WeirPolicy *policy, uint64_t key)
{
  size_t slot = (size_t) ((key * UINT64_C (0x9e3779b97f4a7c15)) >> 20) & (policy->table_size - 1);

  while (policy->table[slot] && policy->table[slot]->key != key)
    slot = (slot + 1) & (policy->table_size - 1);
  return slot;
}

static WeirPolicyBlock *
look_up (const WeirPolicy *policy, uint64_t key)
{
  return policy->table_size > 0 ? policy->table[slot_of (policy, key)] : NULL;
}

static int
grow_table (WeirPolicy *policy)
{
  WeirPolicyBlock **old = policy->table;
  const size_t old_size = policy->table_size, size = old_size > 0 ? old_size * 2 : FIRST_TABLE;
  WeirPolicyBlock **table;

  if (policy->n_known * 2 < old_size)
    return 0;
  table = calloc (size, sizeof (WeirPolicyBlock *));
  if (!table)
    return -ENOMEM;
  policy->table = table;
  policy->table_size = size;
  for (size_t i = 0; i < old_size; i++) {
    if (old[i])
      table[slot_of (policy, old[i]->key)] = old[i];
  }
  free (old);
  return 0;
}

// Later entries of the same run may have been displaced by this one, so they are inserted again.
static void
forget (WeirPolicy *policy, WeirPolicyBlock *block)
{
  size_t slot = slot_of (policy, block->key);

  policy->table[slot] = NULL;
  policy->n_known--;
  if (policy->newest == block)
    policy->newest = NULL;
  free (block);
  for (slot = (slot + 1) & (policy->table_size - 1); policy->table[slot];
      slot = (slot + 1) & (policy->table_size - 1)) {
    WeirPolicyBlock *moved = policy->table[slot];
    policy->table[slot] = NULL;
    policy->table[slot_of (policy, moved->key)] = moved;
  }
}

// Forgets half of the past at once, so that the cost per request is small.
static void
forget_the_oldest (WeirPolicy *policy)
{
  const uint64_t half = policy->n_known / 2;
  const uint64_t before = policy->clock > half ? policy->clock - half : 0;

  for (size_t slot = 0; slot < policy->table_size;) {
    WeirPolicyBlock *block = policy->table[slot];
    if (block && block->heap_at == 0 && block->last <= before)
      forget (policy, block); // another block may have moved into this slot
    else
      slot++;
  }
}

static WeirPolicyBlock *
get_or_add (WeirPolicy *policy, uint64_t key)
{
  WeirPolicyBlock *block = look_up (policy, key);

  if (block)
    return block;
  if (policy->n_known >= KNOWN_MIN && policy->n_known >= policy->n_held * KNOWN_PER_HELD)
    forget_the_oldest (policy);
  if (grow_table (policy) < 0)
    return NULL;
  block = calloc (1, sizeof *block);
  if (!block)
    return NULL;
  block->key = key;
  policy->table[slot_of (policy, key)] = block;
  policy->n_known++;
  return block;
}

// ---- the heap ----

// With equal counts LFU keeps the smaller key, so that cyclic reads find the same blocks again.
static bool
worse (const WeirPolicy *policy, const WeirPolicyBlock *a, const WeirPolicyBlock *b)
{
  if (policy->rule == WEIR_POLICY_PREFIX)
    return a->key > b->key;
  if (policy->rule == WEIR_POLICY_LRU)
    return a->last < b->last;
  return a->count != b->count ? a->count < b->count : a->key > b->key;
}

static void
put (WeirPolicy *policy, size_t at, WeirPolicyBlock *block)
{
  policy->heap[at - 1] = block;
  block->heap_at = at;
}

static void
move_up (WeirPolicy *policy, WeirPolicyBlock *block)
{
  size_t at = block->heap_at;

  while (at > 1 && worse (policy, block, policy->heap[at / 2 - 1])) {
    put (policy, at, policy->heap[at / 2 - 1]);
    at /= 2;
  }
  put (policy, at, block);
}

static void
move_down (WeirPolicy *policy, WeirPolicyBlock *block)
{
  size_t at = block->heap_at;

  while (at * 2 <= policy->n_held) {
    size_t child = at * 2;
    if (child < policy->n_held && worse (policy, policy->heap[child], policy->heap[child - 1]))
      child++;
    if (!worse (policy, policy->heap[child - 1], block))
      break;
    put (policy, at, policy->heap[child - 1]);
    at = child;
  }
  put (policy, at, block);
}

static int
grow_heap (WeirPolicy *policy)
{
  const size_t size = policy->heap_size > 0 ? policy->heap_size * 2 : FIRST_TABLE;
  WeirPolicyBlock **heap;

  if (policy->n_held < policy->heap_size)
    return 0;
  heap = realloc (policy->heap, size * sizeof (WeirPolicyBlock *));
  if (!heap)
    return -ENOMEM;
  policy->heap = heap;
  policy->heap_size = size;
  return 0;
}

static void
take_out (WeirPolicy *policy, WeirPolicyBlock *block)
{
  const size_t at = block->heap_at;
  WeirPolicyBlock *last = policy->heap[--policy->n_held];

  block->heap_at = 0;
  policy->bytes -= block->bytes;
  if (last == block)
    return;
  put (policy, at, last);
  move_up (policy, last);
  move_down (policy, last);
}

// ---- public functions ----

void
weir_policy_init (WeirPolicy *policy, WeirPolicyRule rule, uint64_t capacity)
{
  memset (policy, 0, sizeof *policy);
  policy->rule = rule;
  policy->capacity = capacity;
}

void
weir_policy_free (WeirPolicy *policy)
{
  for (size_t slot = 0; slot < policy->table_size; slot++)
    free (policy->table[slot]);
  free (policy->table);
  free (policy->heap);
  weir_policy_init (policy, policy->rule, policy->capacity);
}

bool
weir_policy_holds (const WeirPolicy *policy, uint64_t key)
{
  const WeirPolicyBlock *block = look_up (policy, key);

  return block && block->heap_at > 0;
}

int
weir_policy_ask (WeirPolicy *policy, uint64_t key)
{
  WeirPolicyBlock *block = get_or_add (policy, key);

  if (!block)
    return -ENOMEM;
  policy->counts.asked++;
  block->count++;
  block->last = ++policy->clock;
  if (block->heap_at == 0)
    return 0;
  move_down (policy, block);
  policy->counts.hits++;
  return 1;
}

int
weir_policy_add (WeirPolicy *policy, uint64_t key, uint64_t bytes)
{
  WeirPolicyBlock *block = get_or_add (policy, key);

  if (!block || grow_heap (policy) < 0)
    return -ENOMEM;
  if (block->heap_at > 0)
    return -EEXIST;
  block->bytes = bytes;
  policy->bytes += bytes;
  policy->counts.bytes_read += bytes;
  policy->newest = block;
  put (policy, ++policy->n_held, block);
  move_up (policy, block);
  return 0;
}

void
weir_policy_remove (WeirPolicy *policy, uint64_t key)
{
  WeirPolicyBlock *block = look_up (policy, key);

  if (!block)
    return;
  if (block->heap_at > 0)
    take_out (policy, block);
  forget (policy, block);
}

static WeirPolicyBlock *
choose (const WeirPolicy *policy)
{
  WeirPolicyBlock *worst = policy->heap[0], *newest = policy->newest;

  if (policy->rule != WEIR_POLICY_LFU || !newest || newest->heap_at == 0)
    return worst;
  return newest->count < worst->count + LFU_LEAD ? newest : worst;
}

bool
weir_policy_evict (WeirPolicy *policy, uint64_t *key)
{
  WeirPolicyBlock *block;

  if (policy->bytes <= policy->capacity || policy->n_held == 0)
    return false;
  block = choose (policy);
  *key = block->key;
  take_out (policy, block);
  policy->counts.evicted++;
  return true;
}
