// SPDX-License-Identifier: LGPL-2.1-or-later
#include "window/policy.h"

#include "tap.h"

#include <errno.h>

#define NONE UINT64_MAX

static WeirPolicy policy;

static void
begin (WeirPolicyRule rule, uint64_t capacity)
{
  weir_policy_free (&policy);
  weir_policy_init (&policy, rule, capacity);
}

// Requests a block and adds it if it is not held. Returns the evicted block, or NONE.
static uint64_t
ask (uint64_t key, uint64_t bytes)
{
  uint64_t gone = NONE, each;

  if (weir_policy_ask (&policy, key) == 1)
    return NONE;
  CHECK_INT (weir_policy_add (&policy, key, bytes), 0);
  while (weir_policy_evict (&policy, &each))
    gone = each;
  return gone;
}

static void
each_rule_evicts_the_right_block (void)
{
  static const struct {
    uint64_t asked[10];
    uint64_t gone[3]; // evicted by the last request, by rule
  } table[] = {
    { { 1, 2, 3, 4, NONE }, { 4, 1, 4 } },          // once each: LFU keeps its blocks
    { { 3, 4, 5, 2, NONE }, { 5, 3, 2 } },          //
    { { 1, 2, 3, 1, 4, NONE }, { 4, 2, 4 } },       //
    { { 1, 2, 3, 4, 4, NONE }, { 4, NONE, 4 } },    // one more request than others is not enough
    { { 1, 2, 3, 4, 4, 4, NONE }, { 4, NONE, 3 } }, // among equals, the one with the highest key
    { { 1, 2, 2, 3, 3, 4, 4, 4, NONE }, { 4, NONE, 1 } },
    { { 3, 3, 2, 2, 1, 1, 4, NONE }, { 4, 3, 4 } },
  };

  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    for (int rule = WEIR_POLICY_PREFIX; rule <= WEIR_POLICY_LFU; rule++) {
      uint64_t gone = NONE;

      begin ((WeirPolicyRule) rule, 3);
      for (const uint64_t *key = table[i].asked; *key != NONE; key++)
        gone = ask (*key, 1);
      CHECK_INT (gone, table[i].gone[rule]);
    }
  }
}

static void
held_blocks_fit_the_capacity (void)
{
  uint32_t seed = 1;

  for (int rule = WEIR_POLICY_PREFIX; rule <= WEIR_POLICY_LFU; rule++) {
    begin ((WeirPolicyRule) rule, 1000);
    for (int i = 0; i < 100000; i++) {
      seed = seed * 1664525 + 1013904223;
      ask ((seed >> 8) % 400, 1 + (seed >> 20) % 50);
      if (policy.bytes > policy.capacity)
        CHECK_INT (policy.bytes, policy.capacity);
    }
    CHECK (policy.heap.n > 10);
    CHECK_INT (policy.counts.asked, 100000);
    CHECK_INT (policy.counts.hits + policy.counts.evicted + policy.heap.n, 100000);
  }
}

static void
a_block_is_held_once (void)
{
  begin (WEIR_POLICY_LRU, 10);
  CHECK_INT (weir_policy_add (&policy, 1, 5), 0);
  CHECK_INT (weir_policy_add (&policy, 1, 5), -EEXIST);
  CHECK_INT (policy.bytes, 5);
  CHECK (weir_policy_holds (&policy, 1));
  CHECK (!weir_policy_holds (&policy, 2));
}

static void
a_removed_block_is_forgotten (void)
{
  begin (WEIR_POLICY_LFU, 3);
  for (uint64_t key = 1; key <= 3; key++) {
    ask (key, 1);
    ask (key, 1);
  }
  weir_policy_remove (&policy, 2);
  weir_policy_remove (&policy, 7);
  CHECK (!weir_policy_holds (&policy, 2));
  CHECK_INT (policy.bytes, 2);
  CHECK_INT (ask (2, 1), NONE);
  CHECK_INT (ask (4, 1), 4);
  weir_policy_remove (&policy, 4);
  CHECK_INT (policy.counts.evicted, 1);
}

static void
a_block_larger_than_the_capacity_is_not_held (void)
{
  begin (WEIR_POLICY_LFU, 10);
  CHECK_INT (ask (1, 11), 1);
  CHECK_INT (policy.heap.n, 0);
  CHECK_INT (policy.bytes, 0);
}

static void
the_number_of_known_blocks_is_bounded (void)
{
  begin (WEIR_POLICY_LFU, 10);
  for (uint64_t key = 0; key < 200000; key++)
    ask (key, 1);
  CHECK (policy.n_known <= 4096 + 1);
  CHECK_INT (policy.heap.n, 10);
}

#define SEGMENTS 6
#define TITLES 2
#define RATE (1500000 / 8) // bytes per second: a block lasts one second
#define SIZE (32 << 20)

// Periodic broadcast: segments of 10, 20, 40, ... seconds of each title, each read over and over.
static double
megabits_read (WeirPolicyRule rule, int seconds, int warm)
{
  uint64_t before = 0;

  begin (rule, SIZE);
  for (int t = 0; t < seconds; t++) {
    if (t == warm)
      before = policy.counts.bytes_read;
    for (int title = 0; title < TITLES; title++) {
      for (int segment = 0, start = 0, length = 10; segment < SEGMENTS; segment++) {
        ask ((uint64_t) (title * 100000 + start + t % length), RATE);
        start += length;
        length *= 2;
      }
    }
  }
  return (double) (policy.counts.bytes_read - before) * 8 / (seconds - warm) / 1e6;
}

static void
lfu_reads_less_in_periodic_broadcast (void)
{
  const double lru = megabits_read (WEIR_POLICY_LRU, 20000, 5000);
  const double lfu = megabits_read (WEIR_POLICY_LFU, 20000, 5000);

  printf ("# %d titles, %d segments, 32 MB: LRU reads %.2f Mb/s, LFU %.2f: %.1f %% fewer\n", TITLES,
      SEGMENTS, lru, lfu, 100 - 100 * lfu / lru);
  CHECK (lfu <= lru * 0.62);
}

int
main (void)
{
  RUN (each_rule_evicts_the_right_block);
  RUN (held_blocks_fit_the_capacity);
  RUN (a_block_is_held_once);
  RUN (a_removed_block_is_forgotten);
  RUN (a_block_larger_than_the_capacity_is_not_held);
  RUN (the_number_of_known_blocks_is_bounded);
  RUN (lfu_reads_less_in_periodic_broadcast);
  weir_policy_free (&policy);
  return tap_done ();
}
