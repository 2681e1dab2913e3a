// SPDX-License-Identifier: LGPL-2.1-or-later
#include "intervalcache_private.h"

#include "cachepad.h"
#include "cachereader_private.h"
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
  PROP_FIT_DELAY,
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
    { CACHE_POLICY_INTERVAL, "Keep the newest data in memory", "interval" },
    { CACHE_POLICY_PREFIX, "Keep the oldest data in memory", "prefix" },
    { CACHE_POLICY_LRU, "Keep the most recently read data in memory", "lru" },
    { CACHE_POLICY_LFU, "Keep the most often read data in memory", "lfu" },
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

static gboolean
look_at_delay (GstElement *element, GstPad *pad, gpointer longest)
{
  guint64 *delay = longest;

  *delay = MAX (*delay, cache_reader_settings (weir_cache_pad_reader (WEIR_CACHE_PAD (pad))).delay);
  return TRUE;
}

CacheBounds
interval_cache_find_bounds (WeirIntervalCache *self)
{
  guint64 longest = 0;
  CacheBounds bounds;
  gboolean fits;

  gst_element_foreach_src_pad (GST_ELEMENT (self), look_at_delay, &longest);
  GST_OBJECT_LOCK (self);
  bounds = self->bounds;
  fits = self->fit_delay;
  GST_OBJECT_UNLOCK (self);
  // A reader gets a delay that leaves an eighth of the window free.
  if (fits && bounds.time > 0)
    bounds.time = MIN (bounds.time + longest + longest / 4, G_MAXINT64 / 4);
  return bounds;
}

void
interval_cache_apply_bounds (WeirIntervalCache *self)
{
  CacheWindow *window = interval_cache_get_window (self);
  CacheBounds bounds;

  if (!window)
    return;
  bounds = interval_cache_find_bounds (self);
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
    case PROP_FIT_DELAY:
      self->fit_delay = g_value_get_boolean (value);
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
    case PROP_FIT_DELAY:
      g_value_set_boolean (value, self->fit_delay);
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
          "Name under which intervalcachesrc finds this cache in the process; NULL = none", NULL,
          rw | GST_PARAM_MUTABLE_READY));
  g_object_class_install_property (klass, PROP_MAX_TIME,
      g_param_spec_uint64 ("max-time", "Maximum time",
          "Maximum duration of the window in ns; 0 = unlimited", 0, G_MAXINT64 / 4,
          DEFAULT_MAX_TIME, rw | GST_PARAM_MUTABLE_PLAYING));
  g_object_class_install_property (klass, PROP_MAX_BYTES,
      g_param_spec_uint64 ("max-bytes", "Maximum bytes",
          "Maximum size of the window in memory in bytes; 0 = unlimited", 0, G_MAXUINT64,
          DEFAULT_MAX_BYTES, rw | GST_PARAM_MUTABLE_PLAYING));
  g_object_class_install_property (klass, PROP_MAX_BUFFERS,
      g_param_spec_uint ("max-buffers", "Maximum buffers",
          "Maximum number of buffers and events in the window; 0 = unlimited", 0, G_MAXUINT,
          DEFAULT_MAX_BUFFERS, rw | GST_PARAM_MUTABLE_PLAYING));
  /**
   * WeirIntervalCache:spill-dir:
   *
   * Folder for a file that stores the part of the window above #WeirIntervalCache:max-bytes. The
   * file has no name and is freed with the cache. If the disk is full, the window becomes smaller,
   * and an element message `cache-spill-full` contains the `capacity` of the file (#guint64, in
   * bytes). Upstream's thread writes the file and waits for the disk when the system is behind with
   * writing: put a `queue` before this element if upstream must not wait.
   */
  g_object_class_install_property (klass, PROP_SPILL_DIR,
      g_param_spec_string ("spill-dir", "Spill directory",
          "Folder for the window's file, which stores data above max-bytes; NULL keeps the window "
          "in memory",
          NULL, rw | GST_PARAM_MUTABLE_READY));
  g_object_class_install_property (klass, PROP_SPILL_BYTES,
      g_param_spec_uint64 ("spill-bytes", "Spill bytes",
          "Maximum size of the file in bytes, rounded down to whole MiB", 0, G_MAXINT64,
          DEFAULT_SPILL_BYTES, rw | GST_PARAM_MUTABLE_READY));
  /**
   * WeirIntervalCache:policy:
   *
   * Selects the data that stays in memory, up to #WeirIntervalCache:max-bytes, if there is a
   * #WeirIntervalCache:spill-dir. `interval` keeps the newest data and suits live media. The other
   * policies suit stored media: all data goes to the file, and blocks of 1 MiB stay in memory, the
   * first ones (`prefix`) or the ones that readers read (`lru`, `lfu`). `hit-ratio` in
   * #WeirIntervalCache:stats measures the success.
   */
  g_object_class_install_property (klass, PROP_POLICY,
      g_param_spec_enum ("policy", "Policy", "Data that stays in memory, with spill-dir",
          WEIR_TYPE_CACHE_POLICY, CACHE_POLICY_INTERVAL, rw | GST_PARAM_MUTABLE_READY));
  g_object_class_install_property (klass, PROP_FIT_DELAY,
      g_param_spec_boolean ("fit-delay", "Fit delay",
          "Make max-time longer as the delays of the source pads need it", FALSE,
          rw | GST_PARAM_MUTABLE_PLAYING));
  /**
   * WeirIntervalCache:stats:
   *
   * All fields are #guint64 unless noted. Buffers: `in`, and its parts `evicted` and `held`.
   * `bytes-in`, `held-bytes`, and its part `spilled-bytes` (in the file). `oldest` and `newest`:
   * the range of the window, in ns of the cache's time. `repaired`: timestamps that were missing,
   * jumped or went back. `readers` (#guint): open readers. `publishers`: caches that have used this
   * channel so far. `hit-ratio` (#gdouble): part of the bytes read that came from memory, 0 to 1.
   * `read-from-memory`, `read-from-file`: bytes. The `stats` of a source pad and of an
   * `intervalcachesrc` have the same fields and, for the reader: `out` and `bytes-out` (buffers),
   * `misses` and `skipped` (see `intervalcachesrc`), `position` (time of the next buffer, in ns of
   * the cache's time), `behind` (time since that buffer arrived, in ns).
   */
  g_object_class_install_property (klass, PROP_STATS,
      g_param_spec_boxed (
          "stats", "Statistics", "Counts of the input and of the window", GST_TYPE_STRUCTURE, ro));
  gst_type_mark_as_plugin_api (WEIR_TYPE_CACHE_POLICY, 0);
}
