// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Which blocks of stored media stay in memory, where blocks are asked for with different frequency.
// It keeps the books only: the bytes are the owner's.
//
// PREFIX keeps the first, by their keys. LRU lets go the block that was asked for the longest ago.
// LFU lets go the one that was asked for least often, and counts go on for blocks that aren't held,
// so one that comes anew is judged by all of its past. It takes another's place only if it was
// asked for at least two times more: with reads that go round, one more means nothing but that its
// turn came first.
//
// What was not asked for the longest is forgotten where more is known than can be held by far.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { WEIR_POLICY_PREFIX, WEIR_POLICY_LRU, WEIR_POLICY_LFU } WeirPolicyRule;

typedef struct weir_policy_block WeirPolicyBlock;

typedef struct {
  uint64_t asked, hits;
  uint64_t bytes_read; // of what wasn't held and so was read from elsewhere
  uint64_t evicted;
} WeirPolicyCounts;

typedef struct {
  WeirPolicyRule rule;
  uint64_t capacity; // bytes
  uint64_t bytes;    // held
  size_t n_held;
  WeirPolicyCounts counts;

  // Private. A table by key, with open addressing; and a heap of those held, the worst on top.
  WeirPolicyBlock **table;
  size_t table_size, n_known;
  WeirPolicyBlock **heap;
  size_t heap_size;
  WeirPolicyBlock *newest; // of those added, the last; it may have gone since
  uint64_t clock;          // counts what is asked
} WeirPolicy;

void weir_policy_init (WeirPolicy *policy, WeirPolicyRule rule, uint64_t capacity);
void weir_policy_free (WeirPolicy *policy);

bool weir_policy_holds (const WeirPolicy *policy, uint64_t key);

// A reader asks for a block. Returns 1 if it is held, 0 if not, or -ENOMEM.
int weir_policy_ask (WeirPolicy *policy, uint64_t key);

// A block of that many bytes was read, and could be held. It is held from now on, until
// weir_policy_evict() names it, which may be at once. Returns 0, -ENOMEM, or -EEXIST if it is held.
int weir_policy_add (WeirPolicy *policy, uint64_t key, uint64_t bytes);

// There is no such block any more, held or not.
void weir_policy_remove (WeirPolicy *policy, uint64_t key);

// While more is held than fits: takes the block that is to go out of the books. False if all fits.
bool weir_policy_evict (WeirPolicy *policy, uint64_t *key);
