// SPDX-License-Identifier: LGPL-2.1-or-later
// Positions of readers: where a reader starts, and where it continues after its position has left
// the window.
#include "cachereader_private.h"

// If the window is shorter than the delay, the reader stays 1/8 of the window after the oldest
// entry.
#define SPARE_PART 8

static gboolean
at_end (const WeirCacheIndex *index)
{
  const WeirCacheEntry *last = newest (index);

  return last && last->flags & WEIR_CACHE_EOS;
}

static void
look_for_join (CacheReader *self, gint64 from)
{
  self->cursor = self->looked_from = from;
  self->find_join = TRUE;
}

// Moves to the newest join point at or before `position`, or else to the first one after it.
static void
go_to (CacheReader *self, gint64 position)
{
  gint64 join;

  position = MAX (position, oldest (self));
  join = weir_cache_index_join_before (index_of (self), position);
  self->cursor = join;
  self->find_join = FALSE;
  if (join == WEIR_CACHE_NO_POSITION || join < oldest (self))
    look_for_join (self, MIN (position, index_of (self)->head));
}

static void
go_live (CacheReader *self)
{
  self->cursor = index_of (self)->head - (at_end (index_of (self)) ? 1 : 0);
  self->find_join = FALSE;
}

static void
note_miss (CacheReader *self, gint64 from)
{
  self->counts.misses++;
  self->discont = TRUE;
  if (!self->miss.missed)
    self->miss.from = from;
  self->miss.missed = TRUE;
}

// Counts what lies between the cursor and a later position.
static void
note_skipped (CacheReader *self, gint64 to)
{
  const guint64 n = weir_cache_index_before (index_of (self), to) - self->before;

  self->counts.skipped += n;
  self->miss.n += n;
}

static void
move_to (CacheReader *self, gint64 position)
{
  self->cursor = position;
  self->before = weir_cache_index_before (index_of (self), position);
}

void
cache_position_at_time (CacheReader *self, gint64 time)
{
  const WeirCacheIndex *index = index_of (self);

  if (time < weir_cache_index_at (index, oldest (self))->time_ns) {
    look_for_join (self, oldest (self));
    note_miss (self, time);
  } else if (time > newest (index)->end_ns) {
    go_live (self);
  } else {
    go_to (self, weir_cache_index_find_time (index, time));
  }
}

void
cache_position_set_valid (CacheReader *self)
{
  const WeirCacheIndex *index = index_of (self);

  self->positioned = self->discont = TRUE;
  self->before = weir_cache_index_before (index, self->cursor);
  if (weir_cache_index_has (index, self->cursor))
    self->next_time = weir_cache_index_at (index, self->cursor)->time_ns;
  else if (newest (index))
    self->next_time = newest (index)->end_ns;
}

// Returns the position from which a reader with a delay continues after its position has left the
// window. If even the oldest entry is not due yet, the delay is longer than the window: the reader
// then uses a delay slightly shorter than the window.
static gint64
position_in_short_window (CacheReader *self, const CacheReaderSettings *settings)
{
  const WeirCacheIndex *index = index_of (self);
  const gint64 oldest = weir_cache_index_at (index, index->tail)->arrival_ns;
  const gint64 now = clock_now ();
  gint64 to;

  if (now - oldest >= (gint64) settings->delay)
    return index->tail;
  to = weir_cache_index_find_arrival (index, oldest + (now - oldest) / SPARE_PART);
  self->delay_limit = now - weir_cache_index_at (index, to)->arrival_ns;
  cache_reader_shift (self, self->delay_limit);
  return to;
}

// Moves back by the delay. Counts the window as short only if entries have left it already:
// otherwise the stream is young, and the window will reach the delay.
static void
go_back (CacheReader *self, const CacheReaderSettings *settings)
{
  const WeirCacheIndex *index = index_of (self);

  if (index->tail > self->window->flushed && index->tail == oldest (self)
      && clock_now () - weir_cache_index_at (index, index->tail)->arrival_ns
             < (gint64) settings->delay)
    go_to (self, position_in_short_window (self, settings));
  else
    go_to (self, weir_cache_index_find_arrival (index, clock_now () - (gint64) settings->delay));
}

void
cache_position_start (CacheReader *self, const CacheReaderSettings *settings)
{
  const WeirCacheIndex *index = index_of (self);

  if (has_nothing (self) && settings->start == CACHE_START_POSITION)
    return;
  self->delay_limit = -1;
  cache_reader_shift (self, (gint64) settings->delay);
  if (has_nothing (self))
    self->cursor = index->head;
  else if (settings->start == CACHE_START_POSITION)
    cache_position_at_time (self, (gint64) settings->position);
  else if (settings->start == CACHE_START_OLDEST)
    look_for_join (self, oldest (self));
  else if (settings->start == CACHE_START_JOIN_POINT)
    go_to (self, index->head);
  else if (settings->delay > 0)
    go_back (self, settings);
  else
    go_live (self);
  cache_position_set_valid (self);
}

void
cache_position_keep_in_window (CacheReader *self, const CacheReaderSettings *settings)
{
  const WeirCacheIndex *index = index_of (self);
  gint64 to;

  if (self->cursor < self->window->flushed) {
    self->cursor = self->window->flushed;
    self->before = self->window->before_flushed;
    self->discont = TRUE;
    self->find_join = FALSE;
  }
  if (self->cursor >= index->tail || self->find_join)
    return;
  to = settings->delay > 0 ? position_in_short_window (self, settings) : index->tail;
  note_miss (self, self->next_time);
  note_skipped (self, to);
  move_to (self, to);
  look_for_join (self, to);
}

// After a whole window without a join point, moves to the oldest entry: there may never be one.
gboolean
cache_position_find_join (CacheReader *self)
{
  const WeirCacheIndex *index = index_of (self);
  gint64 join = weir_cache_index_next_join (index, self->cursor);

  if (join == WEIR_CACHE_NO_POSITION && self->looked_from < index->tail)
    join = index->tail;
  else if (join == WEIR_CACHE_NO_POSITION && at_end (index))
    join = index->head - 1;
  if (join == WEIR_CACHE_NO_POSITION)
    return FALSE;
  if (self->miss.missed)
    note_skipped (self, join);
  move_to (self, join);
  self->find_join = FALSE;
  return TRUE;
}
