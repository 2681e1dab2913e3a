// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * SECTION:element-intervalcachesrc
 * @title: intervalcachesrc
 * @short_description: reads from the window of an intervalcache in another pipeline
 *
 * Reads from the window of the `intervalcache` with the same #WeirIntervalCacheSrc:channel, in any
 * pipeline of the process: the same buffers, with their timestamps and metas, and the events
 * between them. #WeirIntervalCacheSrc:start sets where reading starts.
 *
 * This is a live source. It may start before the cache and then waits for it. If the cache stops
 * and another one takes the channel, reading continues with the new cache; its first buffer has
 * DISCONT. EOS comes from the cache or from gst_element_send_event(). In PAUSED the source keeps
 * its position. Without a link downstream it waits for one. A seek, in the cache's time, moves to
 * the join point at or before the target. A keyframe request (`GstForceKeyUnit`) is forwarded to
 * the upstream of the cache; other upstream events end here.
 *
 * If the reader's position has left the window, it continues at the next join point. The first
 * buffer then has DISCONT, and an element message `cache-miss` describes the gap: `from` and `to`
 * in ns of the cache's time, `skipped` (number of buffers, those in lists too, and of events),
 * `channel` and `pad`.
 *
 * Buffers keep the timestamps that they had in the cache's pipeline. Their running time is that of
 * this pipeline: a sink that synchronises shows the first buffer at once, or after the delay. All
 * intervalcachesrc of a pipeline stay in step, so that sound and picture fit. With
 * #WeirIntervalCacheSrc:timing=cache, the running time stays that of the cache's pipeline. The
 * cache's time, used for positions, is the running time of buffers at the cache, repaired so that
 * it never goes back.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 videotestsrc is-live=true ! vp8enc deadline=1 ! intervalcache channel=test intervalcachesrc channel=test start=join-point ! vp8dec ! autovideosink
 * ]|
 *
 * Since: 0.1
 */
#include "config.h"

#include "intervalcachesrc.h"

#include "cachereader.h"
#include "elementname.h"
#include "enumtype.h"

GST_DEBUG_CATEGORY_EXTERN (intervalcache_debug);

enum { PROP_0, PROP_CHANNEL, PROP_TIMING, PROP_READER };

typedef enum { TIMING_OWN, TIMING_CACHE } Timing;

static GType
timing_get_type (void)
{
  static gsize type;
  static const GEnumValue values[] = {
    { TIMING_OWN, "Running times of this pipeline", "own" },
    { TIMING_CACHE, "Running times of the cache's pipeline", "cache" },
    { 0, NULL, NULL },
  };

  return weir_enum_type (&type, "WeirCacheTiming", values);
}

static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);

struct _WeirIntervalCacheSrc {
  GstElement parent;

  GstPad *srcpad;
  gchar *channel; // under the object lock
  CacheReader reader;
};

G_DEFINE_FINAL_TYPE (WeirIntervalCacheSrc, weir_interval_cache_src, GST_TYPE_ELEMENT)
GST_ELEMENT_REGISTER_DEFINE (
    intervalcachesrc, "intervalcachesrc", GST_RANK_NONE, WEIR_TYPE_INTERVAL_CACHE_SRC)

// Handles the events that a source handles, and forwards keyframe requests to the upstream of the
// cache.
static gboolean
src_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  WeirIntervalCacheSrc *self = WEIR_INTERVAL_CACHE_SRC (parent);
  gboolean ok = TRUE;

  switch (GST_EVENT_TYPE (event)) {
    case GST_EVENT_SEEK:
      ok = cache_reader_seek (&self->reader, event);
      break;
    case GST_EVENT_RECONFIGURE:
      cache_reader_linked (&self->reader);
      break;
    case GST_EVENT_QOS:
    case GST_EVENT_LATENCY:
      break;
    default:
      ok = cache_reader_ask_for_key (&self->reader, event);
      break;
  }
  gst_event_unref (event);
  return ok;
}

static gboolean
src_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  WeirIntervalCacheSrc *self = WEIR_INTERVAL_CACHE_SRC (parent);

  if (GST_QUERY_TYPE (query) == GST_QUERY_LATENCY) {
    gst_query_set_latency (query, TRUE, 0, GST_CLOCK_TIME_NONE);
    return TRUE;
  }
  return cache_reader_query (&self->reader, query) || gst_pad_query_default (pad, parent, query);
}

static gboolean
src_activate_mode (GstPad *pad, GstObject *parent, GstPadMode mode, gboolean active)
{
  WeirIntervalCacheSrc *self = WEIR_INTERVAL_CACHE_SRC (parent);

  return mode == GST_PAD_MODE_PUSH && cache_reader_activate (&self->reader, active);
}

// Handles EOS and flush events that the program sends to the pipeline.
static gboolean
weir_interval_cache_src_send_event (GstElement *element, GstEvent *event)
{
  WeirIntervalCacheSrc *self = WEIR_INTERVAL_CACHE_SRC (element);

  gboolean ok = TRUE;

  switch (GST_EVENT_TYPE (event)) {
    case GST_EVENT_EOS:
      cache_reader_end (&self->reader);
      gst_event_unref (event);
      break;
    case GST_EVENT_FLUSH_START:
      ok = cache_reader_flush (&self->reader, event);
      break;
    case GST_EVENT_FLUSH_STOP:
      ok = cache_reader_flush (&self->reader, event);
      cache_reader_run (&self->reader);
      break;
    default:
      ok = GST_ELEMENT_CLASS (weir_interval_cache_src_parent_class)->send_event (element, event);
      break;
  }
  return ok;
}

static gboolean
open_channel (WeirIntervalCacheSrc *self)
{
  gchar *channel;
  CacheWindow *window;

  GST_OBJECT_LOCK (self);
  channel = g_strdup (self->channel);
  GST_OBJECT_UNLOCK (self);
  if (!channel) {
    GST_ELEMENT_ERROR (self, RESOURCE, SETTINGS, ("intervalcachesrc: channel is missing"), (NULL));
    return FALSE;
  }
  window = cache_window_get (channel);
  cache_reader_open (&self->reader, window);
  cache_reader_pause (&self->reader, TRUE);
  cache_window_unref (window);
  g_free (channel);
  return TRUE;
}

static GstStateChangeReturn
weir_interval_cache_src_change_state (GstElement *element, GstStateChange transition)
{
  WeirIntervalCacheSrc *self = WEIR_INTERVAL_CACHE_SRC (element);
  GstStateChangeReturn ret;

  if (transition == GST_STATE_CHANGE_READY_TO_PAUSED && !open_channel (self))
    return GST_STATE_CHANGE_FAILURE;
  if (transition == GST_STATE_CHANGE_PAUSED_TO_PLAYING)
    cache_reader_pause (&self->reader, FALSE);
  else if (transition == GST_STATE_CHANGE_PLAYING_TO_PAUSED)
    cache_reader_pause (&self->reader, TRUE);
  ret =
      GST_ELEMENT_CLASS (weir_interval_cache_src_parent_class)->change_state (element, transition);
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY
      || (transition == GST_STATE_CHANGE_READY_TO_PAUSED && ret == GST_STATE_CHANGE_FAILURE))
    cache_reader_close (&self->reader);
  else if (ret == GST_STATE_CHANGE_SUCCESS
           && (transition == GST_STATE_CHANGE_READY_TO_PAUSED
               || transition == GST_STATE_CHANGE_PLAYING_TO_PAUSED))
    ret = GST_STATE_CHANGE_NO_PREROLL;
  return ret;
}

static void
weir_interval_cache_src_set_property (
    GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  WeirIntervalCacheSrc *self = WEIR_INTERVAL_CACHE_SRC (object);

  if (id == PROP_CHANNEL) {
    GST_OBJECT_LOCK (self);
    g_free (self->channel);
    self->channel = g_value_dup_string (value);
    GST_OBJECT_UNLOCK (self);
  } else if (id == PROP_TIMING) {
    g_atomic_int_set (&self->reader.keeps_times, g_value_get_enum (value) == TIMING_CACHE);
  } else if (!cache_reader_set_property (&self->reader, id - PROP_READER, value)) {
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  }
}

static void
weir_interval_cache_src_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  WeirIntervalCacheSrc *self = WEIR_INTERVAL_CACHE_SRC (object);

  if (id == PROP_CHANNEL) {
    GST_OBJECT_LOCK (self);
    g_value_set_string (value, self->channel);
    GST_OBJECT_UNLOCK (self);
  } else if (id == PROP_TIMING) {
    g_value_set_enum (
        value, g_atomic_int_get (&self->reader.keeps_times) ? TIMING_CACHE : TIMING_OWN);
  } else if (!cache_reader_get_property (&self->reader, id - PROP_READER, value)) {
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  }
}

static void
weir_interval_cache_src_init (WeirIntervalCacheSrc *self)
{
  self->srcpad = gst_pad_new_from_static_template (&src_template, "src");
  gst_pad_set_event_function (self->srcpad, src_event);
  gst_pad_set_query_function (self->srcpad, src_query);
  gst_pad_set_activatemode_function (self->srcpad, src_activate_mode);
  gst_element_add_pad (GST_ELEMENT (self), self->srcpad);
  cache_reader_init (&self->reader, GST_ELEMENT (self), self->srcpad, FALSE);
  GST_OBJECT_FLAG_SET (self, GST_ELEMENT_FLAG_SOURCE);
}

static void
weir_interval_cache_src_finalize (GObject *object)
{
  WeirIntervalCacheSrc *self = WEIR_INTERVAL_CACHE_SRC (object);

  g_free (self->channel);
  G_OBJECT_CLASS (weir_interval_cache_src_parent_class)->finalize (object);
}

static void
weir_interval_cache_src_class_init (WeirIntervalCacheSrcClass *klass)
{
  GObjectClass *gobject_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  GST_DEBUG_CATEGORY_INIT (intervalcache_debug, "intervalcache", 0, "Interval cache");

  gobject_class->set_property = weir_interval_cache_src_set_property;
  gobject_class->get_property = weir_interval_cache_src_get_property;
  gobject_class->finalize = weir_interval_cache_src_finalize;
  element_class->change_state = weir_interval_cache_src_change_state;
  element_class->send_event = weir_interval_cache_src_send_event;

  g_object_class_install_property (gobject_class, PROP_CHANNEL,
      g_param_spec_string ("channel", "Channel", "Channel of the intervalcache to read from", NULL,
          G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY));
  g_object_class_install_property (gobject_class, PROP_TIMING,
      g_param_spec_enum ("timing", "Timing", "The pipeline whose running times buffers have",
          timing_get_type (), TIMING_OWN,
          G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY));
  cache_reader_install_properties (gobject_class, PROP_READER);

  gst_type_mark_as_plugin_api (CACHE_TYPE_START, 0);
  gst_type_mark_as_plugin_api (timing_get_type (), 0);
  weir_element_class_set_default_name (gobject_class);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class, "Cache reader", "Source",
      "Reads from the window of an intervalcache in another pipeline", "Weir");
}
