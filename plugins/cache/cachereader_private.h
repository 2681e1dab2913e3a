// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Shared by the files of the reader. Call all functions with the window's lock, unless a comment
// says otherwise.

#include "cachereader.h"

G_BEGIN_DECLS

static inline const WeirCacheIndex *
index_of (const CacheReader *self)
{
  return &self->window->index;
}

static inline const WeirCacheEntry *
newest (const WeirCacheIndex *index)
{
  return index->head > index->tail ? weir_cache_index_at (index, index->head - 1) : NULL;
}

// Returns the oldest position that this reader may read. A pad of the cache may not read the
// entries of an earlier cache of the same channel, because their times belong to that cache's
// pipeline.
static inline gint64
oldest (const CacheReader *self)
{
  return self->at_cache ? MAX (self->window->claimed, index_of (self)->tail)
                        : index_of (self)->tail;
}

static inline gboolean
has_nothing (const CacheReader *self)
{
  return oldest (self) == index_of (self)->head;
}

// Returns the time of the system clock in ns. Arrival times and delays use this clock.
static inline gint64
clock_now (void)
{
  GstClock *clock = gst_system_clock_obtain ();
  gint64 now = (gint64) gst_clock_get_time (clock);

  gst_object_unref (clock);
  return now;
}

// Returns a reference to the window, or NULL if the reader is closed. cache_reader_lock() also
// takes the window's lock; cache_reader_unlock() releases both. Call without the lock.
CacheWindow *cache_reader_window (CacheReader *self);
CacheWindow *cache_reader_lock (CacheReader *self);
void cache_reader_unlock (CacheWindow *window);

// Call with or without the lock.
CacheReaderSettings cache_reader_settings (CacheReader *self);

// ---- cachereader_times.c: running times ----

// Shifts the running time of a pad of the cache by `late` ns, so that a synchronising sink shows
// buffers when they leave. Call with or without the lock.
void cache_reader_shift (CacheReader *self, gint64 late);

// Lets a reader of a channel find its running time anew. Call with or without the lock.
void cache_reader_retime (CacheReader *self);

// Sets the running time of a buffer or list. Call without the lock, in the pad's streaming thread.
void cache_reader_place (
    CacheReader *self, GstMiniObject *object, const CacheScene *scene, gboolean sought);

// Returns the segment, or NULL if there is none in time. Call with or without the lock.
const GstSegment *cache_reader_segment (const CacheScene *scene);

// ---- cachereader.c ----

// Wakes the task, so that it checks the reader's state again.
void cache_reader_look (CacheReader *self);

// ---- cacheposition.c: positions ----

// Takes the first position, by the settings. Does nothing while that position is not known yet.
void cache_position_start (CacheReader *self, const CacheReaderSettings *settings);

// Moves to the join point at or before `time` (ns). The window must not be empty.
void cache_position_at_time (CacheReader *self, gint64 time);

// Marks the cursor as valid and sets DISCONT for the next buffer.
void cache_position_set_valid (CacheReader *self);

// Moves the reader into the window if its position has left it.
void cache_position_keep_in_window (CacheReader *self, const CacheReaderSettings *settings);

// Moves to the next join point. Returns FALSE if there is none yet.
gboolean cache_position_find_join (CacheReader *self);

G_END_DECLS
