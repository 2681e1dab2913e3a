// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/recording/recording_list.h"

struct _RecordingList {
  gatomicrefcount refs;
  GMutex lock;   // protects the fields below
  GArray *facts; // of RecordingFacts, by `start_us`
  guint64 bytes;
};

RecordingList *
recording_list_new (void)
{
  RecordingList *self = g_new0 (RecordingList, 1);

  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->facts = g_array_new (FALSE, FALSE, sizeof (RecordingFacts));
  return self;
}

RecordingList *
recording_list_ref (RecordingList *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
recording_list_unref (RecordingList *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_array_unref (self->facts);
  g_mutex_clear (&self->lock);
  g_free (self);
}

static RecordingFacts *
nth (RecordingList *self, guint i)
{
  return &g_array_index (self->facts, RecordingFacts, i);
}

// Returns the place of the first segment that starts at `start_us` or later. Call with the lock
// held.
static guint
find_place (RecordingList *self, gint64 start_us)
{
  guint low = 0, high = self->facts->len;

  while (low < high) {
    guint middle = low + (high - low) / 2;

    if (nth (self, middle)->start_us < start_us)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static gboolean
is_at (RecordingList *self, guint i, gint64 start_us)
{
  return i < self->facts->len && nth (self, i)->start_us == start_us;
}

void
recording_list_put (RecordingList *self, const RecordingFacts *facts)
{
  guint i;

  g_mutex_lock (&self->lock);
  i = find_place (self, facts->start_us);
  if (is_at (self, i, facts->start_us)) {
    self->bytes -= nth (self, i)->size;
    *nth (self, i) = *facts;
  } else {
    g_array_insert_val (self->facts, i, *facts);
  }
  self->bytes += facts->size;
  g_mutex_unlock (&self->lock);
}

void
recording_list_remove (RecordingList *self, gint64 start_us)
{
  guint i;

  g_mutex_lock (&self->lock);
  i = find_place (self, start_us);
  if (is_at (self, i, start_us)) {
    self->bytes -= nth (self, i)->size;
    g_array_remove_index (self->facts, i);
  }
  g_mutex_unlock (&self->lock);
}

gboolean
recording_list_find (RecordingList *self, gint64 start_us, RecordingFacts *facts)
{
  gboolean found;
  guint i;

  g_mutex_lock (&self->lock);
  i = find_place (self, start_us);
  found = is_at (self, i, start_us);
  if (found && facts)
    *facts = *nth (self, i);
  g_mutex_unlock (&self->lock);
  return found;
}

GArray *
recording_list_dup (RecordingList *self, gint64 from_us, gint64 to_us, guint max)
{
  GArray *found;
  guint i, end;

  g_mutex_lock (&self->lock);
  i = find_place (self, from_us);
  end = find_place (self, to_us);
  // The one before may last until then. One that begins just then is what is asked for, even if a
  // sender that was ahead of the clock made the one before end later.
  if (i > 0 && !is_at (self, i, from_us)
      && nth (self, i - 1)->start_us + recording_facts_get_duration_ns (nth (self, i - 1)) / 1000
             > from_us)
    i--;
  found = g_array_sized_new (FALSE, FALSE, sizeof (RecordingFacts), MIN (end - MIN (i, end), max));
  for (; i < end && found->len < max; i++) {
    if (nth (self, i)->last > nth (self, i)->first) // its first part has been written
      g_array_append_val (found, *nth (self, i));
  }
  g_mutex_unlock (&self->lock);
  return found;
}

guint
recording_list_count (RecordingList *self, guint64 *bytes)
{
  guint n;

  g_mutex_lock (&self->lock);
  n = self->facts->len;
  *bytes = self->bytes;
  g_mutex_unlock (&self->lock);
  return n;
}
