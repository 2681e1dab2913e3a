// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cachereader_private.h"
#include "enumtype.h"

GType
cache_start_get_type (void)
{
  static gsize type;
  static const GEnumValue values[] = {
    { CACHE_START_LIVE, "At the live edge, or at the join point `delay` before it", "live" },
    { CACHE_START_JOIN_POINT, "At the newest join point", "join-point" },
    { CACHE_START_OLDEST, "At the oldest join point", "oldest" },
    { CACHE_START_POSITION, "At the join point at or before `position`", "position" },
    { 0, NULL, NULL },
  };

  return weir_enum_type (&type, "WeirCacheStart", values);
}

enum { INDEX_START, INDEX_POSITION, INDEX_DELAY, INDEX_STATS };

// Returns how long ago the next entry arrived, in ns.
static gint64
behind (CacheReader *self)
{
  const WeirCacheIndex *index = index_of (self);
  const WeirCacheEntry *entry;

  if (!self->positioned || self->cursor >= index->head || index->head == index->tail)
    return 0;
  entry = weir_cache_index_at (index, MAX (self->cursor, index->tail));
  return MAX (clock_now () - entry->arrival_ns, 0);
}

static GstStructure *
cache_reader_make_stats (CacheReader *self)
{
  GstStructure *stats = gst_structure_new_empty ("application/x-weir-intervalcachesrc-stats");
  CacheWindow *window = cache_reader_lock (self);

  if (!window)
    return stats;
  cache_window_add_stats (window, stats);
  gst_structure_set (stats, "out", G_TYPE_UINT64, self->counts.out, "bytes-out", G_TYPE_UINT64,
      self->counts.bytes_out, "skipped", G_TYPE_UINT64, self->counts.skipped, "misses",
      G_TYPE_UINT64, self->counts.misses, "position", G_TYPE_UINT64, (guint64) self->next_time,
      "behind", G_TYPE_UINT64, (guint64) behind (self), NULL);
  cache_reader_unlock (window);
  return stats;
}

void
cache_reader_install_properties (GObjectClass *klass, guint first_id)
{
  const GParamFlags ro = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS;
  const GParamFlags rw = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS;

  g_object_class_install_property (klass, first_id + INDEX_START,
      g_param_spec_enum ("start", "Start", "Position at which reading starts", CACHE_TYPE_START,
          CACHE_START_LIVE, rw | GST_PARAM_MUTABLE_READY));
  g_object_class_install_property (klass, first_id + INDEX_POSITION,
      g_param_spec_uint64 ("position", "Position",
          "Position at which reading starts with start=position, in ns of the cache's time", 0,
          G_MAXINT64 / 4, 0, rw | GST_PARAM_MUTABLE_READY));
  g_object_class_install_property (klass, first_id + INDEX_DELAY,
      g_param_spec_uint64 ("delay", "Delay", "Minimum delay behind arrival in ns; 0 = none", 0,
          G_MAXINT64 / 4, 0, rw | GST_PARAM_MUTABLE_PLAYING));
  g_object_class_install_property (klass, first_id + INDEX_STATS,
      g_param_spec_boxed ("stats", "Statistics", "Counts of this reader and of the window",
          GST_TYPE_STRUCTURE, ro));
}

gboolean
cache_reader_set_property (CacheReader *self, guint index, const GValue *value)
{
  GST_OBJECT_LOCK (self->pad);
  if (index == INDEX_START)
    self->settings.start = (CacheStart) g_value_get_enum (value);
  else if (index == INDEX_POSITION)
    self->settings.position = g_value_get_uint64 (value);
  else if (index == INDEX_DELAY)
    self->settings.delay = g_value_get_uint64 (value);
  GST_OBJECT_UNLOCK (self->pad);
  if (index == INDEX_DELAY)
    cache_reader_shift (self, (gint64) g_value_get_uint64 (value));
  cache_reader_wake (self);
  return index <= INDEX_DELAY;
}

gboolean
cache_reader_get_property (CacheReader *self, guint index, GValue *value)
{
  const CacheReaderSettings settings = cache_reader_settings (self);

  if (index == INDEX_START)
    g_value_set_enum (value, (gint) settings.start);
  else if (index == INDEX_POSITION)
    g_value_set_uint64 (value, settings.position);
  else if (index == INDEX_DELAY)
    g_value_set_uint64 (value, settings.delay);
  else if (index == INDEX_STATS)
    g_value_take_boxed (value, cache_reader_make_stats (self));
  return index <= INDEX_STATS;
}
