// SPDX-License-Identifier: LGPL-2.1-or-later
// Running times of a reader, for sinks that synchronise.
//
// The times of buffers do not change; the pad's offset moves their running time. A pad of the cache
// has the running time of the cache's pipeline, plus its delay. A reader of a channel is in another
// pipeline, which began at another time: there, data is due when it arrived, plus the delay, plus
// the lag that the readers of that pipeline share (timing.h).
#include "cachereader_private.h"

const GstSegment *
cache_reader_segment (const CacheScene *scene)
{
  const GstSegment *segment = NULL;

  for (guint i = 0; scene && i < scene->n; i++) {
    if (GST_EVENT_TYPE (scene->events[i]) == GST_EVENT_SEGMENT)
      gst_event_parse_segment (scene->events[i], &segment);
  }
  return segment && segment->format == GST_FORMAT_TIME ? segment : NULL;
}

static GstClockTime
time_of (GstMiniObject *object)
{
  if (GST_IS_BUFFER_LIST (object))
    object = GST_MINI_OBJECT (gst_buffer_list_get (GST_BUFFER_LIST (object), 0));
  return GST_BUFFER_DTS_OR_PTS (GST_BUFFER (object));
}

// Returns the running time of the whole pipeline in ns. It stands still while the pipeline is
// paused.
static GstClockTime
running_now (GstElement *element)
{
  GstElement *top = cache_timing_dup_pipeline (element);
  GstClockTime now;
  gboolean plays;

  GST_OBJECT_LOCK (top);
  plays = GST_STATE_TARGET (top) == GST_STATE_PLAYING;
  GST_OBJECT_UNLOCK (top);
  now = plays ? gst_element_get_current_running_time (element) : gst_element_get_start_time (top);
  gst_object_unref (top);
  return now;
}

// Returns FALSE if the data has no running time.
static gboolean
running_time_of (GstMiniObject *object, const CacheScene *scene, gint64 *time)
{
  const GstSegment *segment = cache_reader_segment (scene);
  const GstClockTime stamp = time_of (object);
  guint64 absolute;
  gint sign;

  if (!segment || !GST_CLOCK_TIME_IS_VALID (stamp))
    return FALSE;
  sign = gst_segment_to_running_time_full (segment, GST_FORMAT_TIME, stamp, &absolute);
  *time = sign * (gint64) absolute;
  return sign != 0;
}

void
cache_reader_shift (CacheReader *self, gint64 late)
{
  if (self->at_cache)
    gst_pad_set_offset (self->pad, late);
}

void
cache_reader_retime (CacheReader *self)
{
  g_atomic_int_set (&self->retimes, TRUE);
}

// Returns the running time of the cache's pipeline, or GST_CLOCK_TIME_NONE if it has none.
static GstClockTime
running_now_at_cache (CacheReader *self)
{
  CacheWindow *window = cache_reader_lock (self);
  GstPad *writer = window && window->writer ? gst_object_ref (window->writer) : NULL;
  GstElement *cache;
  GstClockTime now = GST_CLOCK_TIME_NONE;

  cache_reader_unlock (window);
  cache = writer ? gst_pad_get_parent_element (writer) : NULL;
  if (cache)
    now = running_now (cache);
  g_clear_object (&cache);
  g_clear_object (&writer);
  return now;
}

static gint64
delay_of (CacheReader *self)
{
  const gint64 delay = (gint64) cache_reader_settings (self).delay;

  return self->delay_limit >= 0 ? MIN (delay, self->delay_limit) : delay;
}

// Finds the difference between the two pipelines, with the delay, and tells the other readers how
// late this data is. Without a running time of the cache, its data counts as in time.
static void
measure (CacheReader *self, gint64 time)
{
  const GstClockTime now = running_now (self->element), at_cache = running_now_at_cache (self);
  const gint64 delay = delay_of (self);
  const gint64 age = GST_CLOCK_TIME_IS_VALID (at_cache) ? (gint64) at_cache - time : delay;

  if (!GST_CLOCK_TIME_IS_VALID (now))
    return;
  g_atomic_int_set (&self->retimes, FALSE);
  self->apart = (gint64) now - (time + age) + delay;
  self->n_timings = 0;
  cache_timing_need (self->timing, age - delay);
}

static void
keep_in_step (CacheReader *self, GstMiniObject *object, const CacheScene *scene)
{
  gint64 time;
  guint n;

  if (g_atomic_int_get (&self->retimes) && running_time_of (object, scene, &time))
    measure (self, time);
  n = cache_timing_n_changes (self->timing);
  if (n == self->n_timings || g_atomic_int_get (&self->retimes))
    return;
  self->n_timings = n;
  gst_pad_set_offset (self->pad, self->apart + cache_timing_lag (self->timing));
}

// Shows the target of a seek at once.
static void
shift_to_now (CacheReader *self, GstMiniObject *object, const CacheScene *scene)
{
  const GstClockTime now = running_now (self->element);
  gint64 time;

  if (GST_CLOCK_TIME_IS_VALID (now) && running_time_of (object, scene, &time))
    cache_reader_shift (self, (gint64) now - time);
}

void
cache_reader_place (
    CacheReader *self, GstMiniObject *object, const CacheScene *scene, gboolean sought)
{
  if (self->at_cache && sought)
    shift_to_now (self, object, scene);
  else if (!self->at_cache && !g_atomic_int_get (&self->keeps_times))
    keep_in_step (self, object, scene);
}
