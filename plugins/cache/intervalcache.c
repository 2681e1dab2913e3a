// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * SECTION:element-intervalcache
 * @title: intervalcache
 * @short_description: keeps recent data of a stream; each reader has its own position
 *
 * Keeps the last #WeirIntervalCache:max-time of a stream for any number of readers, each at its own
 * position. Readers are the element's request pads, each with its own thread, and every
 * `intervalcachesrc` with the same #WeirIntervalCache:channel, in any pipeline of the process.
 * Buffers, buffer lists and events are kept by reference and unchanged; no data is copied.
 *
 * The element never waits for a reader. Data that exceeds the bounds is dropped, oldest first. A
 * reader that has not read it continues at the next join point, with DISCONT and an element message
 * `cache-miss` (see `intervalcachesrc`). Without source pads the element is a sink, which does not
 * wait for the clock.
 *
 * A pad without a link downstream waits until an element is linked, and then takes a position by
 * its `start`. This is no error, even for all pads at once: the window is kept for later readers.
 * Source pads accept seeks within the window.
 *
 * A join point is a buffer without the flag DELTA_UNIT; in RTP with H.264, H.265, VP8, VP9, AV1 or
 * MPEG video it is the first packet of a keyframe.
 *
 * Buffers in the window do not return to the buffer pool they came from. A source with a small
 * pool, such as a capture device, needs a window smaller than its pool, or a copy of the buffers.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 videotestsrc is-live=true pattern=ball ! intervalcache name=cache src_1::delay=5000000000 cache.src_0 ! queue ! autovideosink cache.src_1 ! queue ! autovideosink sync=false
 * ]| The second window shows what the first did five seconds ago.
 *
 * Since: 0.1
 */
#include "config.h"

#include "intervalcache.h"

#include "cachepad.h"
#include "elementname.h"
#include "intervalcache_private.h"

#include <stdio.h>

GST_DEBUG_CATEGORY (intervalcache_debug);
#define GST_CAT_DEFAULT intervalcache_debug

static GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);
static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE ("src_%u", GST_PAD_SRC, GST_PAD_REQUEST, GST_STATIC_CAPS_ANY);

static void child_proxy_init (gpointer iface, gpointer data);

G_DEFINE_FINAL_TYPE_WITH_CODE (WeirIntervalCache, weir_interval_cache, GST_TYPE_ELEMENT,
    G_IMPLEMENT_INTERFACE (GST_TYPE_CHILD_PROXY, child_proxy_init))
GST_ELEMENT_REGISTER_DEFINE (
    intervalcache, "intervalcache", GST_RANK_NONE, WEIR_TYPE_INTERVAL_CACHE)

// ---- data: the streaming thread ----

static gint64
running_time (const WeirIntervalCache *self, GstClockTime time)
{
  guint64 running = 0;
  gint sign = 0;

  if (self->segment.format == GST_FORMAT_TIME)
    sign = gst_segment_to_running_time_full (&self->segment, GST_FORMAT_TIME, time, &running);
  if (sign == 0 || running > G_MAXINT64 / 4)
    return WEIR_CACHE_NO_TIME;
  return sign > 0 ? (gint64) running : 0;
}

static void
set_times (
    const WeirIntervalCache *self, WeirCacheEntry *entry, GstClockTime time, GstClockTime duration)
{
  GstClock *clock = gst_system_clock_obtain ();

  entry->arrival_ns = (gint64) gst_clock_get_time (clock);
  entry->time_ns = entry->end_ns = running_time (self, time);
  if (entry->time_ns != WEIR_CACHE_NO_TIME && duration < G_MAXINT64 / 4)
    entry->end_ns += (gint64) duration;
  gst_object_unref (clock);
}

// Warns and posts `cache-spill-full` if the disk has become full, which makes the window smaller.
static void
look_at_spill (WeirIntervalCache *self)
{
  CacheSpill *spill = self->window->spill;
  const guint64 capacity = spill ? cache_spill_capacity (spill) : 0;

  if (capacity >= self->told_capacity)
    return;
  self->told_capacity = capacity;
  GST_WARNING_OBJECT (
      self, "disk full in spill-dir: the file stays at %" G_GUINT64_FORMAT " bytes", capacity);
  gst_element_post_message (GST_ELEMENT (self),
      gst_message_new_element (GST_OBJECT (self),
          gst_structure_new ("cache-spill-full", "capacity", G_TYPE_UINT64, capacity, NULL)));
}

static void
keep_data (WeirIntervalCache *self, WeirCacheEntry *entry)
{
  const gint64 position = cache_window_next (self->window);
  const gint64 join = cache_joins_look (&self->joins, entry->object, position);

  if (join == position)
    entry->flags |= WEIR_CACHE_JOIN;
  else if (join != WEIR_CACHE_NO_POSITION)
    cache_window_mark_join (self->window, join);
  cache_window_push (self->window, entry);
  look_at_spill (self);
}

static GstFlowReturn
weir_interval_cache_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  WeirIntervalCache *self = WEIR_INTERVAL_CACHE (parent);
  WeirCacheEntry entry = { .object = buffer, .n_buffers = 1 };

  entry.bytes = gst_buffer_get_size (buffer);
  set_times (self, &entry, GST_BUFFER_DTS_OR_PTS (buffer), GST_BUFFER_DURATION (buffer));
  keep_data (self, &entry);
  return GST_FLOW_OK;
}

static GstFlowReturn
weir_interval_cache_chain_list (GstPad *pad, GstObject *parent, GstBufferList *list)
{
  WeirIntervalCache *self = WEIR_INTERVAL_CACHE (parent);
  const guint n = gst_buffer_list_length (list);
  WeirCacheEntry entry = { .object = list, .n_buffers = n };
  GstBuffer *first, *last;

  if (n == 0) {
    gst_buffer_list_unref (list);
    return GST_FLOW_OK;
  }
  first = gst_buffer_list_get (list, 0);
  last = gst_buffer_list_get (list, n - 1);
  entry.bytes = gst_buffer_list_calculate_size (list);
  set_times (self, &entry, GST_BUFFER_DTS_OR_PTS (last), GST_BUFFER_DURATION (last));
  entry.time_ns = running_time (self, GST_BUFFER_DTS_OR_PTS (first));
  keep_data (self, &entry);
  return GST_FLOW_OK;
}

// ---- events and queries ----

typedef void (*ReaderFunc) (CacheReader *reader);

static gboolean
call_reader (GstElement *element, GstPad *pad, gpointer user_data)
{
  const ReaderFunc *func = user_data;

  (*func) (weir_cache_pad_reader (WEIR_CACHE_PAD (pad)));
  return TRUE;
}

static void
each_reader (WeirIntervalCache *self, ReaderFunc func)
{
  gst_element_foreach_src_pad (GST_ELEMENT (self), call_reader, &func);
}

static void
wait_for_task (CacheReader *reader)
{
  gst_pad_pause_task (reader->pad);
}

static void
run_again (CacheReader *reader)
{
  cache_reader_flushed (reader);
  cache_reader_run (reader);
}

static gboolean
interval_cache_flush_start (WeirIntervalCache *self, GstEvent *event)
{
  each_reader (self, cache_reader_interrupt);
  gst_pad_event_default (self->sinkpad, GST_OBJECT (self), event);
  each_reader (self, wait_for_task);
  return TRUE;
}

static gboolean
interval_cache_flush_stop (WeirIntervalCache *self, GstEvent *event)
{
  gst_segment_init (&self->segment, GST_FORMAT_UNDEFINED);
  cache_window_flush (self->window);
  gst_pad_event_default (self->sinkpad, GST_OBJECT (self), event);
  each_reader (self, run_again);
  return TRUE;
}

static void
set_event_times (const WeirIntervalCache *self, WeirCacheEntry *entry, GstEvent *event)
{
  GstClockTime time = GST_CLOCK_TIME_NONE, duration = GST_CLOCK_TIME_NONE;

  if (GST_EVENT_TYPE (event) == GST_EVENT_GAP)
    gst_event_parse_gap (event, &time, &duration);
  set_times (self, entry, time, duration);
}

static void
note_event (WeirIntervalCache *self, GstEvent *event)
{
  GstCaps *caps;

  if (GST_EVENT_TYPE (event) == GST_EVENT_SEGMENT) {
    gst_event_copy_segment (event, &self->segment);
  } else if (GST_EVENT_TYPE (event) == GST_EVENT_CAPS) {
    gst_event_parse_caps (event, &caps);
    cache_joins_set_caps (&self->joins, caps);
  }
}

// Posts EOS if the element is a sink: a pipeline ends when all of its sinks have posted EOS.
static void
tell_eos (WeirIntervalCache *self, guint32 seqnum)
{
  GstMessage *message;

  if (!GST_OBJECT_FLAG_IS_SET (self, GST_ELEMENT_FLAG_SINK))
    return;
  message = gst_message_new_eos (GST_OBJECT (self));
  gst_message_set_seqnum (message, seqnum);
  gst_element_post_message (GST_ELEMENT (self), message);
}

static gboolean
keep_event (WeirIntervalCache *self, GstEvent *event)
{
  const gboolean eos = GST_EVENT_TYPE (event) == GST_EVENT_EOS;
  const guint32 seqnum = gst_event_get_seqnum (event);
  WeirCacheEntry entry = { .object = event, .flags = WEIR_CACHE_EVENT };

  note_event (self, event);
  if (eos)
    entry.flags |= WEIR_CACHE_EOS;
  set_event_times (self, &entry, event);
  cache_window_push (self->window, &entry);
  if (eos)
    tell_eos (self, seqnum);
  return TRUE;
}

static gboolean
weir_interval_cache_sink_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  WeirIntervalCache *self = WEIR_INTERVAL_CACHE (parent);

  if (GST_EVENT_TYPE (event) == GST_EVENT_FLUSH_START)
    return interval_cache_flush_start (self, event);
  if (GST_EVENT_TYPE (event) == GST_EVENT_FLUSH_STOP)
    return interval_cache_flush_stop (self, event);
  if (GST_EVENT_IS_SERIALIZED (event))
    return keep_event (self, event);
  return gst_pad_event_default (pad, parent, event);
}

// Refuses serialized queries: no reader has reached that point of the stream yet.
static gboolean
weir_interval_cache_sink_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  if (GST_QUERY_IS_SERIALIZED (query))
    return FALSE;
  return gst_pad_query_default (pad, parent, query);
}

// ---- pads ----

CacheWindow *
interval_cache_get_window (WeirIntervalCache *self)
{
  CacheWindow *window;

  GST_OBJECT_LOCK (self);
  window = self->window ? cache_window_ref (self->window) : NULL;
  GST_OBJECT_UNLOCK (self);
  return window;
}

static void
set_sink_flag (WeirIntervalCache *self)
{
  GST_OBJECT_LOCK (self);
  if (GST_ELEMENT (self)->numsrcpads > 0)
    GST_OBJECT_FLAG_UNSET (self, GST_ELEMENT_FLAG_SINK);
  else
    GST_OBJECT_FLAG_SET (self, GST_ELEMENT_FLAG_SINK);
  GST_OBJECT_UNLOCK (self);
}

static gchar *
choose_name (WeirIntervalCache *self, const gchar *wanted)
{
  guint number;
  gchar *name;

  GST_OBJECT_LOCK (self);
  if (wanted && sscanf (wanted, "src_%u", &number) == 1)
    self->next_pad = MAX (self->next_pad, number + 1);
  name = wanted ? g_strdup (wanted) : g_strdup_printf ("src_%u", self->next_pad++);
  GST_OBJECT_UNLOCK (self);
  return name;
}

// Opens and activates a new pad if the element runs: a pad must be active before it is added.
static void
open_pad (WeirIntervalCache *self, WeirCachePad *pad)
{
  CacheWindow *window = interval_cache_get_window (self);

  if (!window)
    return;
  cache_reader_open (weir_cache_pad_reader (pad), window);
  gst_pad_set_active (GST_PAD (pad), TRUE);
  cache_window_unref (window);
}

static GstPad *
weir_interval_cache_request_new_pad (
    GstElement *element, GstPadTemplate *template, const gchar *wanted, const GstCaps *caps)
{
  WeirIntervalCache *self = WEIR_INTERVAL_CACHE (element);
  gchar *name = choose_name (self, wanted);
  WeirCachePad *pad = gst_object_ref_sink (weir_cache_pad_new (template, name, element));
  gboolean ok;

  open_pad (self, pad);
  ok = gst_element_add_pad (element, GST_PAD (pad));
  if (ok) {
    set_sink_flag (self);
    gst_child_proxy_child_added (GST_CHILD_PROXY (self), G_OBJECT (pad), name);
  } else {
    gst_pad_set_active (GST_PAD (pad), FALSE);
    cache_reader_close (weir_cache_pad_reader (pad));
  }
  gst_object_unref (pad);
  g_free (name);
  return ok ? GST_PAD (pad) : NULL; // owned by the element
}

static void
weir_interval_cache_release_pad (GstElement *element, GstPad *pad)
{
  gst_object_ref (pad);
  gst_child_proxy_child_removed (GST_CHILD_PROXY (element), G_OBJECT (pad), GST_PAD_NAME (pad));
  gst_pad_set_active (pad, FALSE);
  gst_element_remove_pad (element, pad);
  cache_reader_close (weir_cache_pad_reader (WEIR_CACHE_PAD (pad)));
  set_sink_flag (WEIR_INTERVAL_CACHE (element));
  gst_object_unref (pad);
}

static GObject *
get_child (GstChildProxy *proxy, guint index)
{
  GObject *pad;

  GST_OBJECT_LOCK (proxy);
  pad = g_list_nth_data (GST_ELEMENT (proxy)->srcpads, index);
  if (pad)
    g_object_ref (pad);
  GST_OBJECT_UNLOCK (proxy);
  return pad;
}

static guint
count_children (GstChildProxy *proxy)
{
  guint n;

  GST_OBJECT_LOCK (proxy);
  n = GST_ELEMENT (proxy)->numsrcpads;
  GST_OBJECT_UNLOCK (proxy);
  return n;
}

static void
child_proxy_init (gpointer iface, gpointer data)
{
  GstChildProxyInterface *proxy = iface;

  proxy->get_child_by_index = get_child;
  proxy->get_children_count = count_children;
}

// ---- states ----

static void
open_reader (CacheReader *reader)
{
  cache_reader_open (reader, WEIR_INTERVAL_CACHE (reader->element)->window);
}

typedef struct {
  gchar *channel;
  gchar *spill_dir;
  guint64 spill_bytes;
  CachePolicy policy;
  CacheBounds bounds;
} CacheSettings;

static CacheSettings
get_settings (WeirIntervalCache *self)
{
  CacheBounds bounds = interval_cache_find_bounds (self);
  CacheSettings settings;

  GST_OBJECT_LOCK (self);
  settings = (CacheSettings) { g_strdup (self->channel), g_strdup (self->spill_dir),
    self->spill_bytes, self->policy, bounds };
  GST_OBJECT_UNLOCK (self);
  return settings;
}

static void
clear_settings (CacheSettings *settings)
{
  g_free (settings->channel);
  g_free (settings->spill_dir);
}

static WeirPolicyRule
rule_of (CachePolicy policy)
{
  if (policy == CACHE_POLICY_PREFIX)
    return WEIR_POLICY_PREFIX;
  return policy == CACHE_POLICY_LRU ? WEIR_POLICY_LRU : WEIR_POLICY_LFU;
}

static gboolean
open_spill (WeirIntervalCache *self, const CacheSettings *settings, CacheSpill **spill)
{
  *spill = NULL;
  if (!settings->spill_dir)
    return TRUE;
  *spill = cache_spill_new (settings->spill_dir, settings->spill_bytes);
  if (!*spill)
    GST_ELEMENT_ERROR (self, RESOURCE, OPEN_READ_WRITE,
        ("cannot create a file in spill-dir=%s", settings->spill_dir), GST_ERROR_SYSTEM);
  else if (settings->policy != CACHE_POLICY_INTERVAL)
    cache_spill_set_rule (*spill, rule_of (settings->policy), settings->bounds.bytes);
  return *spill != NULL;
}

static CacheWindow *
claim_window (WeirIntervalCache *self, const CacheSettings *settings)
{
  CacheSpill *spill;
  CacheWindow *window;

  if (!open_spill (self, settings, &spill))
    return NULL;
  self->told_capacity = spill ? cache_spill_capacity (spill) : 0;
  window = cache_window_get (settings->channel);
  if (cache_window_claim (window, self->sinkpad, &settings->bounds, settings->policy, spill))
    return window;
  GST_ELEMENT_ERROR (self, RESOURCE, BUSY,
      ("channel=%s is in use by another intervalcache", settings->channel), (NULL));
  cache_window_unref (window);
  return NULL;
}

static gboolean
open_window (WeirIntervalCache *self)
{
  CacheSettings settings = get_settings (self);
  CacheWindow *window = claim_window (self, &settings);

  clear_settings (&settings);
  if (!window)
    return FALSE;
  GST_OBJECT_LOCK (self);
  self->window = window;
  GST_OBJECT_UNLOCK (self);
  gst_segment_init (&self->segment, GST_FORMAT_UNDEFINED);
  self->joins = (CacheJoins) { 0 };
  each_reader (self, open_reader);
  return TRUE;
}

static void
close_window (WeirIntervalCache *self)
{
  CacheWindow *window;

  each_reader (self, cache_reader_close);
  GST_OBJECT_LOCK (self);
  window = g_steal_pointer (&self->window);
  GST_OBJECT_UNLOCK (self);
  cache_window_release (window);
  cache_window_unref (window);
}

static GstStateChangeReturn
weir_interval_cache_change_state (GstElement *element, GstStateChange transition)
{
  WeirIntervalCache *self = WEIR_INTERVAL_CACHE (element);
  GstStateChangeReturn ret;

  if (transition == GST_STATE_CHANGE_READY_TO_PAUSED && !open_window (self))
    return GST_STATE_CHANGE_FAILURE;
  ret = GST_ELEMENT_CLASS (weir_interval_cache_parent_class)->change_state (element, transition);
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY
      || (transition == GST_STATE_CHANGE_READY_TO_PAUSED && ret == GST_STATE_CHANGE_FAILURE))
    close_window (self);
  return ret;
}

static void
weir_interval_cache_init (WeirIntervalCache *self)
{
  self->sinkpad = gst_pad_new_from_static_template (&sink_template, "sink");
  gst_pad_set_chain_function (self->sinkpad, weir_interval_cache_chain);
  gst_pad_set_chain_list_function (self->sinkpad, weir_interval_cache_chain_list);
  gst_pad_set_event_function (self->sinkpad, weir_interval_cache_sink_event);
  gst_pad_set_query_function (self->sinkpad, weir_interval_cache_sink_query);
  GST_PAD_SET_PROXY_CAPS (self->sinkpad);
  gst_element_add_pad (GST_ELEMENT (self), self->sinkpad);
  interval_cache_properties_init (self);
  set_sink_flag (self);
}

static void
weir_interval_cache_finalize (GObject *object)
{
  WeirIntervalCache *self = WEIR_INTERVAL_CACHE (object);

  g_free (self->channel);
  g_free (self->spill_dir);
  G_OBJECT_CLASS (weir_interval_cache_parent_class)->finalize (object);
}

static void
weir_interval_cache_class_init (WeirIntervalCacheClass *klass)
{
  GObjectClass *gobject_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  GST_DEBUG_CATEGORY_INIT (intervalcache_debug, "intervalcache", 0, "Interval cache");

  gobject_class->finalize = weir_interval_cache_finalize;
  element_class->change_state = weir_interval_cache_change_state;
  element_class->request_new_pad = weir_interval_cache_request_new_pad;
  element_class->release_pad = weir_interval_cache_release_pad;

  interval_cache_properties_install (gobject_class);
  gst_type_mark_as_plugin_api (WEIR_TYPE_CACHE_PAD, 0);
  weir_element_class_set_default_name (gobject_class);
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template_with_gtype (
      element_class, &src_template, WEIR_TYPE_CACHE_PAD);
  gst_element_class_set_static_metadata (element_class, "Interval cache", "Generic",
      "Keeps recent data of a stream; each reader has its own position", "Weir");
}
