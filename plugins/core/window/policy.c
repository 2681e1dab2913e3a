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
  WeirHeapNode node; // first; of the heap of the held blocks
  uint64_t key;
  uint64_t count; // number of requests
  uint64_t last;  // clock of the last request
  uint64_t bytes;
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
    if (block && block->node.at == 0 && block->last <= before)
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
  if (policy->n_known >= KNOWN_MIN && policy->n_known >= policy->heap.n * KNOWN_PER_HELD)
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
worse (const WeirHeapNode *left, const WeirHeapNode *right, const void *order)
{
  const WeirPolicyBlock *a = (const WeirPolicyBlock *) left;
  const WeirPolicyBlock *b = (const WeirPolicyBlock *) right;
  const WeirPolicyRule rule = *(const WeirPolicyRule *) order;

  if (rule == WEIR_POLICY_PREFIX)
    return a->key > b->key;
  if (rule == WEIR_POLICY_LRU)
    return a->last < b->last;
  return a->count != b->count ? a->count < b->count : a->key > b->key;
}

static void
take_out (WeirPolicy *policy, WeirPolicyBlock *block)
{
  weir_heap_remove (&policy->heap, &block->node, worse, &policy->rule);
  policy->bytes -= block->bytes;
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
  weir_heap_free (&policy->heap);
  weir_policy_init (policy, policy->rule, policy->capacity);
}

bool
weir_policy_holds (const WeirPolicy *policy, uint64_t key)
{
  const WeirPolicyBlock *block = look_up (policy, key);

  return block && block->node.at > 0;
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
  if (block->node.at == 0)
    return 0;
  weir_heap_move (&policy->heap, &block->node, worse, &policy->rule);
  policy->counts.hits++;
  return 1;
}

int
weir_policy_add (WeirPolicy *policy, uint64_t key, uint64_t bytes)
{
  WeirPolicyBlock *block = get_or_add (policy, key);

  if (!block)
    return -ENOMEM;
  if (block->node.at > 0)
    return -EEXIST;
  if (weir_heap_push (&policy->heap, &block->node, worse, &policy->rule) < 0)
    return -ENOMEM;
  block->bytes = bytes;
  policy->bytes += bytes;
  policy->counts.bytes_read += bytes;
  policy->newest = block;
  return 0;
}

void
weir_policy_remove (WeirPolicy *policy, uint64_t key)
{
  WeirPolicyBlock *block = look_up (policy, key);

  if (!block)
    return;
  if (block->node.at > 0)
    take_out (policy, block);
  forget (policy, block);
}

static WeirPolicyBlock *
choose (const WeirPolicy *policy)
{
  WeirPolicyBlock *worst = (WeirPolicyBlock *) policy->heap.nodes[0], *newest = policy->newest;

  if (policy->rule != WEIR_POLICY_LFU || !newest || newest->node.at == 0)
    return worst;
  return newest->count < worst->count + LFU_LEAD ? newest : worst;
}

bool
weir_policy_evict (WeirPolicy *policy, uint64_t *key)
{
  WeirPolicyBlock *block;

  if (policy->bytes <= policy->capacity || policy->heap.n == 0)
    return false;
  block = choose (policy);
  *key = block->key;
  take_out (policy, block);
  policy->counts.evicted++;
  return true;
}
