// SPDX-License-Identifier: LGPL-2.1-or-later
// What others ask of a reader: to go elsewhere, where it is, and its properties.
#include "cachereader_private.h"
#include "enumtype.h"

// ---- seeking, and queries ----

static gboolean
holds (CacheReader *self, gint64 time)
{
  CacheWindow *window = cache_reader_lock (self);
  const gboolean ok = window && !has_nothing (self) && time <= newest (&window->index)->end_ns
                      && time >= weir_cache_index_at (&window->index, oldest (self))->time_ns;

  cache_reader_unlock (window);
  return ok;
}

// What has left the window by now is missed, as it is by any other reader.
static void
go_to_time (CacheReader *self, gint64 time)
{
  CacheWindow *window = cache_reader_lock (self);

  if (window && !has_nothing (self)) {
    self->miss = (CacheMiss) { 0 };
    self->delay_limit = -1;
    cache_place_at_time (self, time);
    cache_place_note (self);
    self->sought = self->at_cache;
    cache_reader_look (self);
  }
  cache_reader_unlock (window);
}

gboolean
cache_reader_flush (CacheReader *self, GstEvent *event)
{
  const gboolean start = GST_EVENT_TYPE (event) == GST_EVENT_FLUSH_START;
  gboolean ok;

  if (start)
    cache_reader_interrupt (self);
  ok = gst_pad_push_event (self->pad, event);
  if (start)
    gst_pad_pause_task (self->pad);
  else
    cache_reader_flushed (self);
  return ok;
}

// The pipeline's running time goes on, for its other readers.
static void
flush_for (CacheReader *self, GstEvent *seek)
{
  GstEvent *start = gst_event_new_flush_start (), *stop = gst_event_new_flush_stop (FALSE);

  gst_event_set_seqnum (start, gst_event_get_seqnum (seek));
  gst_event_set_seqnum (stop, gst_event_get_seqnum (seek));
  cache_reader_flush (self, start);
  cache_reader_flush (self, stop);
}

gboolean
cache_reader_seek (CacheReader *self, GstEvent *event)
{
  gdouble rate;
  GstFormat format;
  GstSeekFlags flags;
  GstSeekType type;
  gint64 start;

  gst_event_parse_seek (event, &rate, &format, &flags, &type, &start, NULL, NULL);
  if (rate != 1.0 || format != GST_FORMAT_TIME || type != GST_SEEK_TYPE_SET || !holds (self, start))
    return FALSE;
  if (flags & GST_SEEK_FLAG_FLUSH)
    flush_for (self, event);
  go_to_time (self, start);
  cache_reader_run (self);
  return TRUE;
}

// As soon as can be: a time of this pipeline says nothing in another one.
gboolean
cache_reader_ask_for_key (CacheReader *self, const GstEvent *event)
{
  CacheWindow *window;
  GstStructure *s;
  gboolean ok;

  if (GST_EVENT_TYPE (event) != GST_EVENT_CUSTOM_UPSTREAM
      || !gst_event_has_name ((GstEvent *) event, "GstForceKeyUnit")
      || !(window = cache_reader_window (self)))
    return FALSE;
  s = gst_structure_copy (gst_event_get_structure ((GstEvent *) event));
  gst_structure_set (s, "running-time", GST_TYPE_CLOCK_TIME, GST_CLOCK_TIME_NONE, NULL);
  ok = cache_window_send_upstream (window, gst_event_new_custom (GST_EVENT_CUSTOM_UPSTREAM, s));
  cache_window_unref (window);
  return ok;
}

static void
answer (CacheReader *self, GstQuery *query, const CacheWindow *window)
{
  if (GST_QUERY_TYPE (query) == GST_QUERY_POSITION)
    gst_query_set_position (query, GST_FORMAT_TIME, self->next_time);
  else if (!has_nothing (self))
    gst_query_set_seeking (query, GST_FORMAT_TIME, TRUE,
        weir_cache_index_at (&window->index, oldest (self))->time_ns,
        newest (&window->index)->end_ns);
  else
    gst_query_set_seeking (query, GST_FORMAT_TIME, FALSE, -1, -1);
}

gboolean
cache_reader_query (CacheReader *self, GstQuery *query)
{
  GstFormat format = GST_FORMAT_UNDEFINED;
  CacheWindow *window;

  if (GST_QUERY_TYPE (query) == GST_QUERY_SEEKING)
    gst_query_parse_seeking (query, &format, NULL, NULL, NULL);
  else if (GST_QUERY_TYPE (query) == GST_QUERY_POSITION)
    gst_query_parse_position (query, &format, NULL);
  if (format != GST_FORMAT_TIME || !(window = cache_reader_lock (self)))
    return FALSE;
  answer (self, query, window);
  cache_reader_unlock (window);
  return TRUE;
}

// ---- properties ----

GType
cache_start_get_type (void)
{
  static gsize type;
  static const GEnumValue values[] = {
    { CACHE_START_LIVE, "At what comes next, or with a delay that much before", "live" },
    { CACHE_START_JOIN_POINT, "At the newest join point", "join-point" },
    { CACHE_START_OLDEST, "At the oldest join point", "oldest" },
    { CACHE_START_POSITION, "At the join point before a time", "position" },
    { 0, NULL, NULL },
  };

  return weir_enum_type (&type, "WeirCacheStart", values);
}

enum { INDEX_START, INDEX_POSITION, INDEX_DELAY, INDEX_STATS };

// How long ago what comes next came in.
static gint64
behind (CacheReader *self)
{
  const WeirCacheIndex *index = index_of (self);
  const WeirCacheEntry *entry;

  if (!self->placed || self->cursor >= index->head || index->head == index->tail)
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
      g_param_spec_enum ("start", "Start", "Where reading begins", CACHE_TYPE_START,
          CACHE_START_LIVE, rw | GST_PARAM_MUTABLE_READY));
  g_object_class_install_property (klass, first_id + INDEX_POSITION,
      g_param_spec_uint64 ("position", "Position",
          "Where reading begins with start=position: a time of the cache, in ns", 0, G_MAXINT64 / 4,
          0, rw | GST_PARAM_MUTABLE_READY));
  g_object_class_install_property (klass, first_id + INDEX_DELAY,
      g_param_spec_uint64 ("delay", "Delay",
          "How long after it came in something leaves at the earliest, in ns; 0 = at once", 0,
          G_MAXINT64 / 4, 0, rw | GST_PARAM_MUTABLE_PLAYING));
  g_object_class_install_property (klass, first_id + INDEX_STATS,
      g_param_spec_boxed ("stats", "Statistics", "What was read, and what the window holds",
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
