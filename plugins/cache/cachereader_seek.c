// SPDX-License-Identifier: LGPL-2.1-or-later
// Seeks, flushes and queries of a reader, and its keyframe requests.
#include "cachereader_private.h"

#include "keyevent.h"

// A pad of the cache leaves a time outside the window to the upstream, which may be able to seek. A
// reader of a channel has no upstream.
static gboolean
accepts (CacheReader *self, gint64 time)
{
  CacheWindow *window = cache_reader_lock (self);
  gboolean ok = window && !has_nothing (self);

  if (ok && self->at_cache)
    ok = time <= newest (&window->index)->end_ns
         && time >= weir_cache_index_at (&window->index, oldest (self))->time_ns;
  cache_reader_unlock (window);
  return ok;
}

// Moves to `time` (ns), or to the end of the window that is nearer, for the seek `seqnum`.
static void
go_to_time (CacheReader *self, gint64 time, guint32 seqnum)
{
  CacheWindow *window = cache_reader_lock (self);

  if (window && !has_nothing (self)) {
    self->miss = (CacheMiss) { 0 };
    self->delay_limit = -1;
    cache_position_at_time (self, time);
    cache_position_set_valid (self);
    self->sought = self->at_cache;
    cache_timing_restart (self->timing, seqnum);
    cache_reader_retime (self);
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

// Flushes downstream of this reader without a reset of the running time, which other readers in the
// pipeline share.
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
  if (rate != 1.0 || format != GST_FORMAT_TIME || type != GST_SEEK_TYPE_SET
      || !accepts (self, start))
    return FALSE;
  if (flags & GST_SEEK_FLAG_FLUSH)
    flush_for (self, event);
  go_to_time (self, start, gst_event_get_seqnum (event));
  cache_reader_run (self);
  return TRUE;
}

// Removes the running time from the request: a running time of this pipeline has no meaning in the
// cache's pipeline.
gboolean
cache_reader_ask_for_key (CacheReader *self, const GstEvent *event)
{
  CacheWindow *window;
  GstStructure *s;
  gboolean ok;

  if (!weir_key_event_is (event) || !(window = cache_reader_window (self)))
    return FALSE;
  s = gst_structure_copy (gst_event_get_structure ((GstEvent *) event));
  gst_structure_set (s, "running-time", GST_TYPE_CLOCK_TIME, GST_CLOCK_TIME_NONE, NULL);
  ok = cache_window_send_upstream (window, gst_event_new_custom (GST_EVENT_CUSTOM_UPSTREAM, s));
  cache_window_unref (window);
  return ok;
}

// Tells the range of the window, but not that one may seek there, although one may: gst-rtsp-server
// seeks a seekable media at every PLAY, for all of its readers, and then waits for a preroll, which
// a live source does not give.
static void
answer (CacheReader *self, GstQuery *query, const CacheWindow *window)
{
  if (GST_QUERY_TYPE (query) == GST_QUERY_POSITION)
    gst_query_set_position (query, GST_FORMAT_TIME, self->next_time);
  else if (!has_nothing (self))
    gst_query_set_seeking (query, GST_FORMAT_TIME, FALSE,
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
