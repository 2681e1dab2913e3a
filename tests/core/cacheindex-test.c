// SPDX-License-Identifier: LGPL-2.1-or-later
#include "window/cacheindex.h"

#include "tap.h"

#define SECOND INT64_C (1000000000)
#define MS INT64_C (1000000)
#define NONE WEIR_CACHE_NO_TIME

static WeirCacheIndex cache;

static void
begin (WeirCacheBounds bounds)
{
  weir_cache_index_free (&cache);
  cache.bounds = bounds;
}

static void
add (int64_t time_ns, int64_t arrival_ns, unsigned flags)
{
  WeirCacheEntry entry = { .time_ns = time_ns,
    .end_ns = time_ns == NONE ? NONE : time_ns + 10 * MS,
    .arrival_ns = arrival_ns,
    .bytes = 100,
    .n_buffers = flags & WEIR_CACHE_EVENT ? 0 : 1,
    .flags = (uint8_t) flags };

  CHECK_INT (weir_cache_index_push (&cache, &entry), 0);
  while (weir_cache_index_exceeded (&cache))
    weir_cache_index_pop (&cache);
}

static int64_t
last_time (void)
{
  return weir_cache_index_at (&cache, cache.head - 1)->time_ns;
}

static void
bounds_hold_and_the_newest_entry_stays (void)
{
  static const struct {
    WeirCacheBounds bounds;
    int64_t held;
  } table[] = {
    { { 0 }, 1000 },
    { { .time_ns = 50 * MS }, 5 },
    { { .bytes = 1000 }, 10 },
    { { .bytes = 1 }, 1 },
    { { .buffers = 300 }, 300 },
    { { .buffers = 300, .bytes = 1000, .time_ns = 20 * MS }, 2 },
  };

  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    begin (table[i].bounds);
    for (int k = 0; k < 1000; k++)
      add (k * 10 * MS, k * 10 * MS, 0);
    CHECK_INT (cache.head, 1000);
    CHECK_INT (cache.head - cache.tail, table[i].held);
    CHECK_INT (cache.bytes, 100 * table[i].held);
    CHECK_INT (cache.buffers, table[i].held);
    CHECK_INT (weir_cache_index_at (&cache, cache.tail)->time_ns, cache.tail * 10 * MS);
  }
}

static void
events_count_as_buffers (void)
{
  begin ((WeirCacheBounds) { .buffers = 10 });
  for (int k = 0; k < 100; k++)
    add (NONE, k, WEIR_CACHE_EVENT);
  CHECK_INT (cache.head - cache.tail, 10);
  CHECK_INT (cache.n_repaired, 0);
}

static void
times_are_repaired (void)
{
  static const struct {
    int64_t time, arrival, expected;
    uint64_t repaired;
  } table[] = {
    { 5 * SECOND, 0, 5 * SECOND, 0 }, { 5 * SECOND + 40 * MS, 40 * MS, 5 * SECOND + 40 * MS, 0 },
    { 5 * SECOND + 20 * MS, 50 * MS, 5 * SECOND + 40 * MS, 1 },            // reordered
    { NONE, 60 * MS, 5 * SECOND + 40 * MS, 2 },                            // missing
    { 12 * SECOND, 80 * MS, 12 * SECOND, 2 },                              // short of a jump
    { 90 * SECOND, 120 * MS, 12 * SECOND + 40 * MS, 3 },                   // a jump
    { 90 * SECOND + 20 * MS, 140 * MS, 12 * SECOND + 60 * MS, 3 },         // continues from there
    { 3 * SECOND, 200 * MS, 12 * SECOND + 120 * MS, 4 },                   // a jump back
    { 3 * SECOND + 10 * MS, 210 * MS, 12 * SECOND + 130 * MS, 4 },         //
    { 303 * SECOND, 300 * SECOND + 210 * MS, 312 * SECOND + 120 * MS, 4 }, // not a jump
    { INT64_MAX / 4, 301 * SECOND, 312 * SECOND + 910 * MS, 5 },           //
  };

  begin ((WeirCacheBounds) { 0 });
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    add (table[i].time, table[i].arrival, 0);
    CHECK_INT (last_time (), table[i].expected);
    CHECK_INT (cache.n_repaired, table[i].repaired);
  }
}

static void
events_before_the_first_buffer_get_its_time (void)
{
  begin ((WeirCacheBounds) { .time_ns = SECOND });
  add (NONE, 0, WEIR_CACHE_EVENT);
  add (NONE, 0, WEIR_CACHE_EVENT);
  add (1000 * SECOND, 0, 0);
  CHECK_INT (cache.tail, 0);
  CHECK_INT (weir_cache_index_at (&cache, 0)->time_ns, 1000 * SECOND);
  CHECK_INT (cache.n_repaired, 0);
}

static void
without_timestamps_time_advances_by_arrival (void)
{
  begin ((WeirCacheBounds) { .time_ns = SECOND });
  for (int k = 0; k < 100; k++)
    add (NONE, k * 100 * MS, 0);
  CHECK_INT (cache.head - cache.tail, 11);
}

static void
join_points_are_found (void)
{
  begin ((WeirCacheBounds) { .buffers = 50 });
  for (int k = 0; k < 40; k++)
    add (k * MS, k, k % 10 == 3 ? WEIR_CACHE_JOIN : 0);
  CHECK_INT (weir_cache_index_next_join (&cache, 0), 3);
  CHECK_INT (weir_cache_index_next_join (&cache, 3), 3);
  CHECK_INT (weir_cache_index_next_join (&cache, 4), 13);
  CHECK_INT (weir_cache_index_next_join (&cache, 34), WEIR_CACHE_NO_POSITION);
  CHECK_INT (weir_cache_index_join_before (&cache, 2), WEIR_CACHE_NO_POSITION);
  CHECK_INT (weir_cache_index_join_before (&cache, 12), 3);
  CHECK_INT (weir_cache_index_join_before (&cache, 1000), 33);
  for (int k = 40; k < 60; k++)
    add (k * MS, k, 0);
  CHECK_INT (cache.tail, 10);
  CHECK_INT (weir_cache_index_next_join (&cache, 0), 13);
  CHECK_INT (weir_cache_index_join_before (&cache, 12), WEIR_CACHE_NO_POSITION);
  weir_cache_index_mark_join (&cache, 55);
  weir_cache_index_mark_join (&cache, 5); // already removed
  CHECK_INT (weir_cache_index_next_join (&cache, 34), 55);
  CHECK_INT (weir_cache_index_join_before (&cache, 59), 55);
  CHECK_INT (weir_cache_index_join_before (&cache, 54), 33);
  for (int k = 60; k < 200; k++)
    add (k * MS, k, 0);
  CHECK_INT (weir_cache_index_next_join (&cache, 0), WEIR_CACHE_NO_POSITION);
}

static void
positions_are_found_by_time (void)
{
  begin ((WeirCacheBounds) { .buffers = 50 });
  CHECK_INT (weir_cache_index_find_time (&cache, 5), 0);
  for (int k = 0; k < 100; k++)
    add (k * 10 * MS, k * SECOND, 0);
  CHECK_INT (weir_cache_index_find_time (&cache, 700 * MS), 70);
  CHECK_INT (weir_cache_index_find_time (&cache, 709 * MS), 70);
  CHECK_INT (weir_cache_index_find_time (&cache, 0), 50);
  CHECK_INT (weir_cache_index_find_time (&cache, 100 * SECOND), 99);
  CHECK_INT (weir_cache_index_find_arrival (&cache, 70 * SECOND - 1), 69);
}

int
main (void)
{
  RUN (bounds_hold_and_the_newest_entry_stays);
  RUN (events_count_as_buffers);
  RUN (times_are_repaired);
  RUN (events_before_the_first_buffer_get_its_time);
  RUN (without_timestamps_time_advances_by_arrival);
  RUN (join_points_are_found);
  RUN (positions_are_found_by_time);
  weir_cache_index_free (&cache);
  return tap_done ();
}
