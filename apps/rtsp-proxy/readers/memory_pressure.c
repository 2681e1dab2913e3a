// SPDX-License-Identifier: LGPL-2.1-or-later
#include "readers/memory_pressure.h"

#include "access/refusals.h"
#include "base/log.h"
#include "base/memory.h"
#include "config/limits.h"
#include "readers/readers.h"

#define CLOSE_PERCENT 5 // of all readers at a time, and at least one

typedef struct {
  Reader *reader;
  guint64 lag_ns;
} Lagging;

static gint
compare (gconstpointer a, gconstpointer b)
{
  guint64 x = ((const Lagging *) a)->lag_ns, y = ((const Lagging *) b)->lag_ns;

  return x > y ? -1 : x < y;
}

static void
close_slowest (void)
{
  g_autoptr (GPtrArray) readers = readers_dup_all ();
  g_autoptr (GArray) all = g_array_new (FALSE, FALSE, sizeof (Lagging));
  guint n;

  for (guint i = 0; i < readers->len; i++) {
    Lagging one = { g_ptr_array_index (readers, i), 0 };
    ReaderSample sample;

    reader_sample (one.reader, &sample);
    one.lag_ns = sample.lag_ns;
    g_array_append_val (all, one);
  }
  g_array_sort (all, compare);
  n = MIN (all->len, MAX (1, all->len * CLOSE_PERCENT / 100));
  for (guint i = 0; i < n; i++) {
    Reader *reader = g_array_index (all, Lagging, i).reader;

    refusals_note (REFUSED_MEMORY, reader_get_peer (reader), MEMORY_PROBLEM);
    reader_close (reader, MEMORY_PROBLEM);
  }
}

static void
log_change (MemoryLevel before, MemoryLevel level)
{
  static LogLimit limit = { .burst = 4, .interval_ms = 10 * 1000 };

  if ((before == MEMORY_ENOUGH) == (level == MEMORY_ENOUGH))
    return;
  log_event_limited (&limit,
      "memory: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " MiB are used; %s",
      memory_get_used () >> 20, memory_get_ceiling () >> 20,
      level == MEMORY_ENOUGH ? "readers are accepted again" : "no further readers are accepted");
}

void
memory_pressure_check (void)
{
  MemoryLevel before = memory_get_level (), level;
  Limits limits;

  limits_get (&limits);
  level = memory_measure (limits.memory.bytes);
  log_change (before, level);
  if (level == MEMORY_FULL)
    close_slowest ();
}
