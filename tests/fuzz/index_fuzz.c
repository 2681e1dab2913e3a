// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the index of a cache. The input is three bytes of bounds, then entries: a byte of flags, a
// byte of size, and two bytes each for the steps of the stream's time and of the arrival, in ms.

#include "bits/bytes.h"
#include "fuzz.h"
#include "window/cacheindex.h"

#define MS INT64_C (1000000)

enum { NO_TIME = 0x40, ENDS = 0x80 };

static void
check (const WeirCacheIndex *index)
{
  uint64_t bytes = 0, buffers = 0;
  int64_t before = INT64_MIN;

  require (index->tail <= index->head && index->head - index->tail <= (int64_t) index->capacity);
  for (int64_t at = index->tail; at < index->head; at++) {
    const WeirCacheEntry *entry = weir_cache_index_at (index, at);

    require (weir_cache_index_has (index, at) && entry->time_ns >= before);
    before = entry->time_ns;
    bytes += entry->bytes;
    buffers += entry->flags & WEIR_CACHE_EVENT && entry->n_buffers == 0 ? 1 : entry->n_buffers;
  }
  require (bytes == index->bytes && buffers == index->buffers);
  require (weir_cache_index_span (index) >= 0);
}

static void
look_up (const WeirCacheIndex *index, int64_t position, int64_t time_ns)
{
  int64_t next = weir_cache_index_next_join (index, position);
  int64_t before = weir_cache_index_join_before (index, position);
  int64_t at = weir_cache_index_find_time (index, time_ns);
  int64_t arrived = weir_cache_index_find_arrival (index, time_ns);

  require (next == WEIR_CACHE_NO_POSITION
           || (next >= position && weir_cache_index_at (index, next)->flags & WEIR_CACHE_JOIN));
  require (before == WEIR_CACHE_NO_POSITION
           || (before <= position && weir_cache_index_at (index, before)->flags & WEIR_CACHE_JOIN));
  require (at >= index->tail && at <= index->head);
  require (arrived >= index->tail && arrived <= index->head);
}

static void
add (WeirCacheIndex *index, uint8_t flags, uint8_t bytes, int64_t time_ns, int64_t arrival_ns)
{
  const WeirCacheEntry entry = { .time_ns = flags & NO_TIME ? WEIR_CACHE_NO_TIME : time_ns,
    .end_ns = flags & ENDS ? time_ns + 10 * MS : WEIR_CACHE_NO_TIME,
    .arrival_ns = arrival_ns,
    .bytes = bytes,
    .n_buffers = flags & WEIR_CACHE_EVENT ? 0 : 1 + bytes % 4,
    .flags = flags & 0xf };

  require (weir_cache_index_push (index, &entry) == 0);
  while (weir_cache_index_exceeded (index))
    weir_cache_index_pop (index);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  WeirBytes b = weir_bytes (data, size);
  uint8_t seconds, blocks, buffers, flags, bytes;
  uint16_t step, wait;
  int64_t time_ns = 0, arrival_ns = 0;
  WeirCacheIndex index;

  if (!weir_bytes_u8 (&b, &seconds) || !weir_bytes_u8 (&b, &blocks)
      || !weir_bytes_u8 (&b, &buffers))
    return 0;
  weir_cache_index_init (&index);
  index.bounds = (WeirCacheBounds) { seconds * 100 * MS, blocks * UINT64_C (64), buffers };
  while (weir_bytes_u8 (&b, &flags) && weir_bytes_u8 (&b, &bytes) && weir_bytes_u16 (&b, &step)
         && weir_bytes_u16 (&b, &wait)) {
    time_ns += ((int16_t) step) * MS;
    arrival_ns += wait * MS;
    add (&index, flags, bytes, time_ns, arrival_ns);
    if (flags & 0x20)
      weir_cache_index_mark_join (&index, index.head - bytes);
    check (&index);
    look_up (&index, index.head - step % 64, time_ns);
  }
  while (index.tail < index.head)
    weir_cache_index_pop (&index);
  weir_cache_index_free (&index);
  return 0;
}
