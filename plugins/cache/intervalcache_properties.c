// SPDX-License-Identifier: LGPL-2.1-or-later
#include "intervalcache_private.h"

#include "enumtype.h"

enum {
  PROP_0,
  PROP_CHANNEL,
  PROP_MAX_TIME,
  PROP_MAX_BYTES,
  PROP_MAX_BUFFERS,
  PROP_SPILL_DIR,
  PROP_SPILL_BYTES,
  PROP_POLICY,
  PROP_STATS
};

#define DEFAULT_MAX_TIME (10 * GST_SECOND)
#define DEFAULT_MAX_BYTES (64 * 1024 * 1024)
#define DEFAULT_MAX_BUFFERS 65536
#define DEFAULT_SPILL_BYTES ((guint64) 1 << 30)

#define WEIR_TYPE_CACHE_POLICY (weir_cache_policy_get_type ())
static GType
weir_cache_policy_get_type (void)
{
  static gsize type;
  static const GEnumValue values[] = {
    { CACHE_POLICY_INTERVAL, "What came last", "interval" },
    { CACHE_POLICY_PREFIX, "What came first", "prefix" },
    { CACHE_POLICY_LRU, "What was read last", "lru" },
    { CACHE_POLICY_LFU, "What is read most often", "lfu" },
    { 0, NULL, NULL },
  };

  return weir_enum_type (&type, "WeirCachePolicy", values);
}

static GstStructure *
interval_cache_make_stats (WeirIntervalCache *self)
{
  GstStructure *stats = gst_structure_new_empty ("application/x-weir-intervalcache-stats");
  CacheWindow *window = interval_cache_get_window (self);

  if (window) {
    g_mutex_lock (&window->lock);
    cache_window_add_stats (window, stats);
    g_mutex_unlock (&window->lock);
    cache_window_unref (window);
  }
  return stats;
}

static void
interval_cache_apply_bounds (WeirIntervalCache *self)
{
  CacheWindow *window = interval_cache_get_window (self);
  CacheBounds bounds;

  if (!window)
    return;
  GST_OBJECT_LOCK (self);
  bounds = self->bounds;
  GST_OBJECT_UNLOCK (self);
  cache_window_set_bounds (window, &bounds);
  cache_window_unref (window);
}

static void
weir_interval_cache_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  WeirIntervalCache *self = WEIR_INTERVAL_CACHE (object);

  GST_OBJECT_LOCK (self);
  switch (id) {
    case PROP_CHANNEL:
      g_free (self->channel);
      self->channel = g_value_dup_string (value);
      break;
    case PROP_MAX_TIME:
      self->bounds.time = g_value_get_uint64 (value);
      break;
    case PROP_MAX_BYTES:
      self->bounds.bytes = g_value_get_uint64 (value);
      break;
    case PROP_MAX_BUFFERS:
      self->bounds.buffers = g_value_get_uint (value);
      break;
    case PROP_SPILL_DIR:
      g_free (self->spill_dir);
      self->spill_dir = g_value_dup_string (value);
      break;
    case PROP_SPILL_BYTES:
      self->spill_bytes = g_value_get_uint64 (value);
      break;
    case PROP_POLICY:
      self->policy = (CachePolicy) g_value_get_enum (value);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
      break;
  }
  GST_OBJECT_UNLOCK (self);
  interval_cache_apply_bounds (self);
}

static void
weir_interval_cache_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  WeirIntervalCache *self = WEIR_INTERVAL_CACHE (object);

  if (id == PROP_STATS) {
    g_value_take_boxed (value, interval_cache_make_stats (self));
    return;
  }
  GST_OBJECT_LOCK (self);
  switch (id) {
    case PROP_CHANNEL:
      g_value_set_string (value, self->channel);
      break;
    case PROP_MAX_TIME:
      g_value_set_uint64 (value, self->bounds.time);
      break;
    case PROP_MAX_BYTES:
      g_value_set_uint64 (value, self->bounds.bytes);
      break;
    case PROP_MAX_BUFFERS:
      g_value_set_uint (value, (guint) self->bounds.buffers);
      break;
    case PROP_SPILL_DIR:
      g_value_set_string (value, self->spill_dir);
      break;
    case PROP_SPILL_BYTES:
      g_value_set_uint64 (value, self->spill_bytes);
      break;
    case PROP_POLICY:
      g_value_set_enum (value, (gint) self->policy);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
      break;
  }
  GST_OBJECT_UNLOCK (self);
}

void
interval_cache_properties_init (WeirIntervalCache *self)
{
  self->bounds = (CacheBounds) { DEFAULT_MAX_TIME, DEFAULT_MAX_BYTES, DEFAULT_MAX_BUFFERS };
  self->spill_bytes = DEFAULT_SPILL_BYTES;
}

void
interval_cache_properties_install (GObjectClass *klass)
{
  const GParamFlags ro = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS;
  const GParamFlags rw = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS;

  klass->set_property = weir_interval_cache_set_property;
  klass->get_property = weir_interval_cache_get_property;

  g_object_class_install_property (klass, PROP_CHANNEL,
      g_param_spec_string ("channel", "Channel",
          "The name under which intervalcachesrc finds it in this process; none = it can't", NULL,
          rw | GST_PARAM_MUTABLE_READY));
  g_object_class_install_property (klass, PROP_MAX_TIME,
      g_param_spec_uint64 ("max-time", "Longest time",
          "How much of the stream is kept at most, in ns; 0 = any", 0, G_MAXINT64 / 4,
          DEFAULT_MAX_TIME, rw | GST_PARAM_MUTABLE_PLAYING));
  g_object_class_install_property (klass, PROP_MAX_BYTES,
      g_param_spec_uint64 ("max-bytes", "Most bytes",
          "How many bytes are kept in memory at most; 0 = any number", 0, G_MAXUINT64,
          DEFAULT_MAX_BYTES, rw | GST_PARAM_MUTABLE_PLAYING));
  g_object_class_install_property (klass, PROP_MAX_BUFFERS,
      g_param_spec_uint ("max-buffers", "Most buffers",
          "How many buffers and events are kept at most; 0 = any number", 0, G_MAXUINT,
          DEFAULT_MAX_BUFFERS, rw | GST_PARAM_MUTABLE_PLAYING));
  /**
   * WeirIntervalCache:spill-dir:
   *
   * What exceeds #WeirIntervalCache:max-bytes goes to a file here, which has no name and goes with
   * the cache. Where the disk is full, the window is as much smaller, and an element message
   * `cache-spill-full` tells the `capacity` that the file has (#guint64, in bytes). Upstream's
   * thread writes the file, and waits for the disk where the system has more to write out than it
   * wants to have: what can't wait needs a `queue` before this element.
   */
  g_object_class_install_property (klass, PROP_SPILL_DIR,
      g_param_spec_string ("spill-dir", "Directory of the file",
          "Where there is a file for what exceeds max-bytes; none = there is no such file", NULL,
          rw | GST_PARAM_MUTABLE_READY));
  g_object_class_install_property (klass, PROP_SPILL_BYTES,
      g_param_spec_uint64 ("spill-bytes", "Size of the file",
          "How many bytes the file has at most, in whole MiB", 0, G_MAXINT64, DEFAULT_SPILL_BYTES,
          rw | GST_PARAM_MUTABLE_READY));
  /**
   * WeirIntervalCache:policy:
   *
   * With #WeirIntervalCache:spill-dir, what is in memory up to #WeirIntervalCache:max-bytes. With
   * `interval` that is what came last: for live media. The others are for stored media, which goes
   * to the file as it comes, and of which blocks of 1 MiB stay in memory: those of the beginning
   * (`prefix`), or those that readers ask for (`lru`, `lfu`). `hit-ratio` in
   * #WeirIntervalCache:stats tells how well that does.
   */
  g_object_class_install_property (klass, PROP_POLICY,
      g_param_spec_enum ("policy", "Policy", "What is kept in memory, of what is in the file, too",
          WEIR_TYPE_CACHE_POLICY, CACHE_POLICY_INTERVAL, rw | GST_PARAM_MUTABLE_READY));
  /**
   * WeirIntervalCache:stats:
   *
   * All #guint64, but where another type is told. Of buffers: `in`, `evicted` and `held`, which
   * make up `in`. `bytes-in`, `held-bytes`, and of them `spilled-bytes` (in the file). `oldest` and
   * `newest`: what it holds, in ns of the cache's time. `repaired`: times that were missing, jumped
   * or went back. `readers` (#guint). `publishers`: how many caches have had this channel. Those of
   * a pad are the same as those of an `intervalcachesrc`, and so called. They have this too, and of
   * the reader: `out` and `bytes-out` (buffers), `misses` and `skipped` (see `intervalcachesrc`),
   * `position` (the time of what comes next), `behind` (how long ago that came in, in ns).
   */
  g_object_class_install_property (klass, PROP_STATS,
      g_param_spec_boxed (
          "stats", "Statistics", "What came in, and what is held", GST_TYPE_STRUCTURE, ro));
  gst_type_mark_as_plugin_api (WEIR_TYPE_CACHE_POLICY, 0);
}
