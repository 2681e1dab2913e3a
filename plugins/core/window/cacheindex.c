// SPDX-License-Identifier: LGPL-2.1-or-later
#include "window/cacheindex.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 256

void
weir_cache_index_init (WeirCacheIndex *index)
{
  memset (index, 0, sizeof *index);
  index->last_join = -1;
}

void
weir_cache_index_free (WeirCacheIndex *index)
{
  free (index->entries);
  weir_cache_index_init (index);
}

static int
index_make_room (WeirCacheIndex *index)
{
  size_t capacity = index->capacity > 0 ? index->capacity * 2 : FIRST_CAPACITY;
  WeirCacheEntry *entries;

  if ((size_t) (index->head - index->tail) < index->capacity)
    return 0;
  entries = malloc (capacity * sizeof *entries);
  if (!entries)
    return -ENOMEM;
  for (int64_t p = index->tail; p < index->head; p++)
    entries[(uint64_t) p & (capacity - 1)] = *weir_cache_index_at (index, p);
  free (index->entries);
  index->entries = entries;
  index->capacity = capacity;
  return 0;
}

static int64_t
passed_since (const WeirCacheEntry *last, const WeirCacheEntry *entry)
{
  return entry->arrival_ns > last->arrival_ns ? entry->arrival_ns - last->arrival_ns : 0;
}

// After a jump, time advances as fast as entries arrive.
static int64_t
repair (WeirCacheIndex *index, const WeirCacheEntry *last, int64_t came, int64_t passed)
{
  int64_t time = came + index->time_shift;

  if (time < last->time_ns - WEIR_CACHE_BACK_MAX
      || time > last->time_ns + passed + WEIR_CACHE_AHEAD_MAX) {
    time = last->time_ns + passed;
    if (time < last->end_ns)
      time = last->end_ns;
    index->time_shift = time - came;
    index->n_repaired++;
  } else if (time < last->time_ns) {
    time = last->time_ns;
    index->n_repaired++;
  }
  return time;
}

// The first known time is also given to the entries before it.
static void
begin_time (WeirCacheIndex *index, int64_t time_ns)
{
  for (int64_t p = index->tail; p < index->head; p++) {
    WeirCacheEntry *entry = weir_cache_index_at (index, p);
    entry->time_ns = entry->end_ns = time_ns;
  }
  index->timed = true;
}

// Returns the time of an entry without one. An event has the time of the entry before; data of a
// stream without any times advances by arrival.
static int64_t
time_without (WeirCacheIndex *index, const WeirCacheEntry *last, const WeirCacheEntry *entry)
{
  const int64_t time = last ? last->time_ns : 0;

  if (entry->flags & WEIR_CACHE_EVENT)
    return time;
  index->n_repaired++;
  return last && !index->timed ? time + passed_since (last, entry) : time;
}

static void
set_time (WeirCacheIndex *index, WeirCacheEntry *entry)
{
  const WeirCacheEntry *last =
      index->head > index->tail ? weir_cache_index_at (index, index->head - 1) : NULL;
  const int64_t came = entry->time_ns;
  const int64_t length =
      came != WEIR_CACHE_NO_TIME && entry->end_ns > came ? entry->end_ns - came : 0;

  if (!last) {
    index->timed = false;
    index->time_shift = 0;
  }
  if (came == WEIR_CACHE_NO_TIME)
    entry->time_ns = time_without (index, last, entry);
  else if (index->timed)
    entry->time_ns = repair (index, last, came, passed_since (last, entry));
  else
    begin_time (index, came);
  entry->end_ns = entry->time_ns + length;
}

int
weir_cache_index_push (WeirCacheIndex *index, const WeirCacheEntry *pushed)
{
  WeirCacheEntry entry = *pushed;
  int ret = index_make_room (index);

  if (ret < 0)
    return ret;
  set_time (index, &entry);
  if (entry.flags & WEIR_CACHE_JOIN)
    index->last_join = index->head;
  entry.last_join = index->last_join;
  index->bytes += entry.bytes;
  entry.before = index->total;
  index->total += entry.n_buffers > 0 ? entry.n_buffers : 1;
  index->buffers += entry.n_buffers > 0 ? entry.n_buffers : 1;
  *weir_cache_index_at (index, index->head++) = entry;
  return 0;
}

void
weir_cache_index_mark_join (WeirCacheIndex *index, int64_t position)
{
  if (!weir_cache_index_has (index, position))
    return;
  weir_cache_index_at (index, position)->flags |= WEIR_CACHE_JOIN;
  for (int64_t p = position; p < index->head; p++) {
    WeirCacheEntry *entry = weir_cache_index_at (index, p);
    if (entry->last_join < position)
      entry->last_join = position;
  }
  if (index->last_join < position)
    index->last_join = position;
}

int64_t
weir_cache_index_span (const WeirCacheIndex *index)
{
  if (index->head == index->tail)
    return 0;
  return weir_cache_index_at (index, index->head - 1)->end_ns
         - weir_cache_index_at (index, index->tail)->time_ns;
}

bool
weir_cache_index_exceeded (const WeirCacheIndex *index)
{
  const WeirCacheBounds *most = &index->bounds;

  if (index->head - index->tail < 2)
    return false;
  return (most->bytes > 0 && index->bytes > most->bytes)
         || (most->buffers > 0 && index->buffers > most->buffers)
         || (most->time_ns > 0 && weir_cache_index_span (index) > most->time_ns);
}

WeirCacheEntry
weir_cache_index_pop (WeirCacheIndex *index)
{
  WeirCacheEntry entry = *weir_cache_index_at (index, index->tail++);

  index->bytes -= entry.bytes;
  index->buffers -= entry.n_buffers > 0 ? entry.n_buffers : 1;
  return entry;
}

int64_t
weir_cache_index_join_before (const WeirCacheIndex *index, int64_t position)
{
  int64_t join;

  if (position >= index->head)
    position = index->head - 1;
  if (position < index->tail)
    return WEIR_CACHE_NO_POSITION;
  join = weir_cache_index_at (index, position)->last_join;
  return join >= index->tail ? join : WEIR_CACHE_NO_POSITION;
}

// Walks back from the newest join point to the one before: short if join points are few, and one
// step if every entry is a join point.
int64_t
weir_cache_index_next_join (const WeirCacheIndex *index, int64_t position)
{
  int64_t found = WEIR_CACHE_NO_POSITION, join = index->last_join;

  if (position < index->tail)
    position = index->tail;
  if (position < index->head && weir_cache_index_at (index, position)->flags & WEIR_CACHE_JOIN)
    return position;
  while (join >= position && join >= index->tail && join < index->head) {
    found = join;
    join = join > index->tail ? weir_cache_index_at (index, join - 1)->last_join : -1;
  }
  return found;
}

typedef bool (*AfterFunc) (const WeirCacheEntry *entry, int64_t time_ns);

static bool
time_is_after (const WeirCacheEntry *entry, int64_t time_ns)
{
  return entry->time_ns > time_ns;
}

static bool
arrival_is_after (const WeirCacheEntry *entry, int64_t arrival_ns)
{
  return entry->arrival_ns > arrival_ns;
}

static int64_t
find (const WeirCacheIndex *index, AfterFunc is_after, int64_t time_ns)
{
  int64_t from = index->tail, to = index->head;

  while (from < to) {
    int64_t middle = from + (to - from) / 2;
    if (is_after (weir_cache_index_at (index, middle), time_ns))
      to = middle;
    else
      from = middle + 1;
  }
  return from > index->tail ? from - 1 : from;
}

int64_t
weir_cache_index_find_time (const WeirCacheIndex *index, int64_t time_ns)
{
  return find (index, time_is_after, time_ns);
}

int64_t
weir_cache_index_find_arrival (const WeirCacheIndex *index, int64_t arrival_ns)
{
  return find (index, arrival_is_after, arrival_ns);
}
