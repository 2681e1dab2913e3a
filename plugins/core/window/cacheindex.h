// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The index of a cache: what a moving window of a stream holds, in the order in which it came. Like
// WeirWindow, but of things that lie elsewhere (buffers, lists of buffers, events), which it
// counts, finds and lets go, and never looks into.
//
// A place is a position: entries are counted from 0 for as long as the index lives, and positions
// never go back. The time of an entry is the stream's, made monotone: times that are missing, jump
// or go back are repaired, and counted. So entries can be found by time.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_CACHE_NO_TIME INT64_MIN
#define WEIR_CACHE_NO_POSITION INT64_MAX
// A time this much before the last one, or ahead of it by this much more than has passed, is a
// jump.
#define WEIR_CACHE_BACK_MAX INT64_C (1000000000)
#define WEIR_CACHE_AHEAD_MAX INT64_C (10000000000)

typedef enum {
  WEIR_CACHE_JOIN = 1 << 0,    // a decoder can start here
  WEIR_CACHE_DISCONT = 1 << 1, // does not go on from what came before
  WEIR_CACHE_EVENT = 1 << 2,   // no data, so no place to begin at
  WEIR_CACHE_EOS = 1 << 3,     // nothing more is to come from who brought this
  WEIR_CACHE_STORED = 1 << 4,  // the owner's: the object is where it is stored
} WeirCacheFlags;

typedef struct {
  void *object;  // the owner's
  void *state;   // the owner's: what is in force at this place
  uint64_t home; // the owner's: where the object lies
  uint32_t home_offset;
  int64_t time_ns;
  int64_t end_ns; // where what follows is expected; time_ns if that isn't known
  int64_t arrival_ns;
  int64_t last_join; // position of the newest join point up to here, or -1
  size_t bytes;
  uint32_t n_buffers;
  uint8_t flags;
} WeirCacheEntry;

// How much is kept at most; 0: as much as comes. One entry always stays.
typedef struct {
  int64_t time_ns;
  uint64_t bytes;
  uint64_t buffers; // an event counts as one, so that nothing is kept without bounds
} WeirCacheBounds;

typedef struct {
  WeirCacheBounds bounds;
  int64_t tail, head; // entries tail to head - 1 are here
  int64_t last_join;  // or -1; it may have gone
  uint64_t bytes, buffers;
  uint64_t n_repaired;

  // Private. A ring: the entry at position p is entries[p & (capacity - 1)].
  WeirCacheEntry *entries;
  size_t capacity;
  int64_t time_shift; // from the times that come to those here
  bool timed;         // a time has come
} WeirCacheIndex;

void weir_cache_index_init (WeirCacheIndex *index); // without bounds
void weir_cache_index_free (WeirCacheIndex *index); // what the entries hold is the owner's to free

// Takes an entry: object, state, time_ns as it came or WEIR_CACHE_NO_TIME, end_ns likewise,
// arrival_ns, bytes, n_buffers and flags. Returns 0, or -ENOMEM.
int weir_cache_index_push (WeirCacheIndex *index, const WeirCacheEntry *entry);

// The entry at this position, and so those after it, turns out to be a join point.
void weir_cache_index_mark_join (WeirCacheIndex *index, int64_t position);

// Whether the oldest entry has to go, by the bounds.
bool weir_cache_index_exceeded (const WeirCacheIndex *index);

// Takes out the oldest entry. There must be one.
WeirCacheEntry weir_cache_index_pop (WeirCacheIndex *index);

static inline WeirCacheEntry *
weir_cache_index_at (const WeirCacheIndex *index, int64_t position)
{
  return &index->entries[(uint64_t) position & (index->capacity - 1)];
}

static inline bool
weir_cache_index_has (const WeirCacheIndex *index, int64_t position)
{
  return position >= index->tail && position < index->head;
}

// From its first entry's time to the end of its last. 0 for an empty one.
int64_t weir_cache_index_span (const WeirCacheIndex *index);

// The first join point from `position` on, or WEIR_CACHE_NO_POSITION.
int64_t weir_cache_index_next_join (const WeirCacheIndex *index, int64_t position);

// The newest join point up to `position`, or WEIR_CACHE_NO_POSITION.
int64_t weir_cache_index_join_before (const WeirCacheIndex *index, int64_t position);

// The newest entry at or before that time, or that had come by then. The tail if there is none, the
// head if nothing is here.
int64_t weir_cache_index_find_time (const WeirCacheIndex *index, int64_t time_ns);
int64_t weir_cache_index_find_arrival (const WeirCacheIndex *index, int64_t arrival_ns);
