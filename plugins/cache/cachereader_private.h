// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the files of the reader have in common. All with the window's lock, but where another thing
// is told.

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

// Where what this reader may have begins. In the pipeline of the cache, what came from the cache of
// this name before it has times of the past.
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

// By the clock of the system, as everything is that comes in and is delayed.
static inline gint64
clock_now (void)
{
  GstClock *clock = gst_system_clock_obtain ();
  gint64 now = (gint64) gst_clock_get_time (clock);

  gst_object_unref (clock);
  return now;
}

// A reference, or NULL if there is no window (any more). The other one takes the lock as well.
CacheWindow *cache_reader_window (CacheReader *self);
CacheWindow *cache_reader_lock (CacheReader *self);
void cache_reader_unlock (CacheWindow *window);

CacheReaderSettings cache_reader_settings (CacheReader *self); // with or without the lock

// Things leave so much later than they came. A sink that synchronises shows them when they leave.
void cache_reader_shift (CacheReader *self, gint64 late); // with or without the lock

// Something has changed: whoever waits looks again.
void cache_reader_look (CacheReader *self);

// ---- cacheplace.c: places ----

// The first one, by the settings. Leaves it for later if that can't be said yet.
void cache_place_take (CacheReader *self, const CacheReaderSettings *settings);

// At the join point before that time. Something must be there.
void cache_place_at_time (CacheReader *self, gint64 time);

// It is there now.
void cache_place_note (CacheReader *self);

// The window may have moved on.
void cache_place_catch_up (CacheReader *self, const CacheReaderSettings *settings);

// Goes to the join point that it looks for. FALSE if there is none yet.
gboolean cache_place_find_join (CacheReader *self);

G_END_DECLS
