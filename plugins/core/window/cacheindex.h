// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The index of a cache: a moving window over a stream's entries (buffers, buffer lists, events) in
// order of arrival. Like WeirWindow, but the objects lie elsewhere: the index counts, finds and
// removes them, and never looks inside.
//
// Entries are numbered from 0 for the life of the index; the number is the position. Times are made
// monotone: missing times, jumps and steps back are repaired and counted, so entries can be found
// by time. For one thread at a time.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_CACHE_NO_TIME INT64_MIN
#define WEIR_CACHE_NO_POSITION INT64_MAX
// In ns. A time is a jump if it lies more than BACK_MAX before the last one, or if it advances by
// more than AHEAD_MAX beyond the time between the two arrivals.
#define WEIR_CACHE_BACK_MAX INT64_C (1000000000)
#define WEIR_CACHE_AHEAD_MAX INT64_C (10000000000)

typedef enum {
  WEIR_CACHE_JOIN = 1 << 0,    // a decoder can start here
  WEIR_CACHE_DISCONT = 1 << 1, // does not continue from the entry before
  WEIR_CACHE_EVENT = 1 << 2,   // no data: readers do not begin here
  WEIR_CACHE_EOS = 1 << 3,     // end of the stream
  WEIR_CACHE_STORED = 1 << 4,  // the owner's: the object is already stored at `home`
} WeirCacheFlags;

typedef struct {
  void *object;  // the owner's object
  void *state;   // the owner's: state (such as sticky events) in force at this entry
  uint64_t home; // the owner's: where the object is stored
  uint32_t home_offset;
  int64_t time_ns;
  int64_t end_ns; // expected time of the next entry; time_ns if unknown
  int64_t arrival_ns;
  int64_t last_join; // newest join point at or before this position, or -1
  uint64_t before;   // buffers in all entries before; an event counts as one
  size_t bytes;
  uint32_t n_buffers;
  uint8_t flags;
} WeirCacheEntry;

// Upper bounds; 0: no limit. The newest entry always stays.
typedef struct {
  int64_t time_ns;
  uint64_t bytes;
  uint64_t buffers; // an event counts as one buffer, so that events are bounded too
} WeirCacheBounds;

typedef struct {
  WeirCacheBounds bounds;
  int64_t tail, head; // entries from tail to head - 1 are present
  int64_t last_join;  // newest join point, or -1; it may have been removed
  uint64_t bytes, buffers;
  uint64_t total;      // buffers that were ever added; an event counts as one
  uint64_t n_repaired; // entries whose time was repaired

  // Private. A ring: the entry at position p is entries[p & (capacity - 1)].
  WeirCacheEntry *entries;
  size_t capacity;
  int64_t time_shift; // added to incoming times
  bool timed;         // an incoming time is known
} WeirCacheIndex;

void weir_cache_index_init (WeirCacheIndex *index); // initialises without bounds
void weir_cache_index_free (WeirCacheIndex *index); // the owner frees the objects first

// Appends an entry. Set object, state, arrival_ns, bytes, n_buffers and flags; set time_ns and
// end_ns to the stream's own times, or to WEIR_CACHE_NO_TIME. Returns 0 or -ENOMEM.
int weir_cache_index_push (WeirCacheIndex *index, const WeirCacheEntry *entry);

// Marks the entry at `position` as a join point after it was added.
void weir_cache_index_mark_join (WeirCacheIndex *index, int64_t position);

// Reports whether the bounds are exceeded, so that the oldest entry must go.
bool weir_cache_index_exceeded (const WeirCacheIndex *index);

// Removes and returns the oldest entry. The index must not be empty.
WeirCacheEntry weir_cache_index_pop (WeirCacheIndex *index);

// Returns the entry at `position`, which must be present.
static inline WeirCacheEntry *
weir_cache_index_at (const WeirCacheIndex *index, int64_t position)
{
  return &index->entries[(uint64_t) position & (index->capacity - 1)];
}

// Reports whether the entry at `position` is present.
static inline bool
weir_cache_index_has (const WeirCacheIndex *index, int64_t position)
{
  return position >= index->tail && position < index->head;
}

// Returns how many buffers were added before the entry at `position`, which must be present or the
// next one. An event counts as one.
static inline uint64_t
weir_cache_index_before (const WeirCacheIndex *index, int64_t position)
{
  return position < index->head ? weir_cache_index_at (index, position)->before : index->total;
}

// Returns the time from the start of the first entry to the end of the last, in ns; 0 if empty.
int64_t weir_cache_index_span (const WeirCacheIndex *index);

// Returns the first join point at or after `position`, or WEIR_CACHE_NO_POSITION.
int64_t weir_cache_index_next_join (const WeirCacheIndex *index, int64_t position);

// Returns the newest join point at or before `position`, or WEIR_CACHE_NO_POSITION.
int64_t weir_cache_index_join_before (const WeirCacheIndex *index, int64_t position);

// weir_cache_index_find_time() returns the newest entry whose time is at or before `time_ns`;
// weir_cache_index_find_arrival() the newest that had arrived at `arrival_ns`. Without such an
// entry they return the tail; if the index is empty, the head.
int64_t weir_cache_index_find_time (const WeirCacheIndex *index, int64_t time_ns);
int64_t weir_cache_index_find_arrival (const WeirCacheIndex *index, int64_t arrival_ns);
