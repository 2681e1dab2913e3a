// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Decides which blocks of stored media stay in memory. The policy stores keys and counts only; its
// owner stores the bytes.
//
// PREFIX keeps the blocks with the smallest keys. LRU evicts the least recently requested block.
// LFU evicts the least frequently requested one. It also counts requests for blocks that are not
// held, so a new block is judged by all of its past. A new block replaces another only if it has at
// least two requests more: if all blocks are read in turn, one more only means that it was read
// first.
//
// If many more blocks are known than can be held, the least recently requested are forgotten. For
// one thread at a time.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "run/heap.h"

typedef enum { WEIR_POLICY_PREFIX, WEIR_POLICY_LRU, WEIR_POLICY_LFU } WeirPolicyRule;

typedef struct weir_policy_block WeirPolicyBlock;

typedef struct {
  uint64_t asked, hits; // requests, and requests for held blocks
  uint64_t bytes_read;  // bytes added: they were not held, and were read from elsewhere
  uint64_t evicted;
} WeirPolicyCounts;

typedef struct {
  WeirPolicyRule rule;
  uint64_t capacity; // bytes
  uint64_t bytes;    // bytes held
  WeirPolicyCounts counts;

  // Private. A hash table by key with open addressing, and the held blocks, the worst first.
  WeirPolicyBlock **table;
  size_t table_size, n_known;
  WeirHeap heap;
  WeirPolicyBlock *newest; // the block added last; NULL if it was forgotten
  uint64_t clock;          // counts requests
} WeirPolicy;

// Initialises a policy that holds at most `capacity` bytes.
void weir_policy_init (WeirPolicy *policy, WeirPolicyRule rule, uint64_t capacity);
void weir_policy_free (WeirPolicy *policy);

// Reports whether a block is held.
bool weir_policy_holds (const WeirPolicy *policy, uint64_t key);

// Counts a request for a block. Returns 1 if it is held, 0 if not, or -ENOMEM.
int weir_policy_ask (WeirPolicy *policy, uint64_t key);

// Adds a block of `bytes` bytes that was read. It is held until weir_policy_evict() returns it,
// which may be at once. Returns 0, -ENOMEM, or -EEXIST if it is held already.
int weir_policy_add (WeirPolicy *policy, uint64_t key, uint64_t bytes);

// Forgets a block that no longer exists, held or not.
void weir_policy_remove (WeirPolicy *policy, uint64_t key);

// While more is held than `capacity`: removes the next block to evict and stores its key in `key`.
// Returns false if everything fits.
bool weir_policy_evict (WeirPolicy *policy, uint64_t *key);
