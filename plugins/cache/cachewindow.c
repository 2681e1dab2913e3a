// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cachewindow.h"

#define AT_ONCE 64 // most entries evicted before the lock is released

// The windows by channel name. The table owns no references; a window removes itself with its last
// reference.
static GMutex channels_lock;
static GHashTable *channels;

// ---- scenes ----

CacheScene *
cache_scene_ref (CacheScene *scene)
{
  g_atomic_int_inc (&scene->refs);
  return scene;
}

void
cache_scene_unref (CacheScene *scene)
{
  if (!scene || !g_atomic_int_dec_and_test (&scene->refs))
    return;
  for (guint i = 0; i < scene->n; i++)
    gst_event_unref (scene->events[i]);
  g_free (scene);
}

gboolean
cache_scene_has (const CacheScene *scene, const GstEvent *event)
{
  for (guint i = 0; scene && i < scene->n; i++) {
    if (scene->events[i] == event)
      return TRUE;
  }
  return FALSE;
}

// Returns TRUE if `event` replaces `old`, by the rule of GstPad for sticky events: same type, and
// for STICKY_MULTI types also the same name.
static gboolean
replaces (GstEvent *event, GstEvent *old)
{
  const GstEventType type = GST_EVENT_TYPE (event);

  if (type != GST_EVENT_TYPE (old))
    return FALSE;
  return !(gst_event_type_get_flags (type) & GST_EVENT_TYPE_STICKY_MULTI)
         || gst_event_has_name (old, gst_structure_get_name (gst_event_get_structure (event)));
}

static CacheScene *
make_scene (const CacheScene *old, GstEvent *event)
{
  const guint n_old = old ? old->n : 0;
  CacheScene *scene = g_malloc (sizeof *scene + (n_old + 1) * sizeof scene->events[0]);
  gboolean placed = FALSE;

  scene->refs = 1;
  scene->n = 0;
  for (guint i = 0; i < n_old; i++) {
    if (!placed && GST_EVENT_TYPE (old->events[i]) > GST_EVENT_TYPE (event)) {
      scene->events[scene->n++] = gst_event_ref (event);
      placed = TRUE;
    }
    if (!replaces (event, old->events[i]))
      scene->events[scene->n++] = gst_event_ref (old->events[i]);
  }
  if (!placed)
    scene->events[scene->n++] = gst_event_ref (event);
  return scene;
}

// ---- windows and their names ----

static CacheWindow *
make_window (const gchar *name)
{
  CacheWindow *window = g_new0 (CacheWindow, 1);

  window->refs = 1;
  window->name = g_strdup (name);
  g_mutex_init (&window->lock);
  g_cond_init (&window->changed);
  weir_cache_index_init (&window->index);
  return window;
}

CacheWindow *
cache_window_get (const gchar *name)
{
  CacheWindow *window;

  if (!name)
    return make_window (NULL);
  g_mutex_lock (&channels_lock);
  if (!channels)
    channels = g_hash_table_new (g_str_hash, g_str_equal);
  window = g_hash_table_lookup (channels, name);
  if (window) {
    cache_window_ref (window);
  } else {
    window = make_window (name);
    g_hash_table_insert (channels, window->name, window);
  }
  g_mutex_unlock (&channels_lock);
  return window;
}

CacheWindow *
cache_window_ref (CacheWindow *window)
{
  g_atomic_int_inc (&window->refs);
  return window;
}

void
cache_entry_ref (const WeirCacheEntry *entry)
{
  if (entry->flags & WEIR_CACHE_STORED)
    cache_piece_ref (entry->object);
  else
    gst_mini_object_ref (entry->object);
  if (entry->state)
    cache_scene_ref (entry->state);
}

void
cache_entry_unref (const WeirCacheEntry *entry)
{
  if (entry->flags & WEIR_CACHE_STORED)
    cache_piece_unref (entry->object);
  else
    gst_mini_object_unref (entry->object);
  cache_scene_unref (entry->state);
}

GstMiniObject *
cache_entry_load (const WeirCacheEntry *entry)
{
  if (entry->flags & WEIR_CACHE_STORED)
    return cache_spill_load (entry->object, entry->home_offset);
  return entry->object;
}

static void
free_window (CacheWindow *window)
{
  cache_spill_close (window->spill);
  while (window->index.head > window->index.tail) {
    WeirCacheEntry entry = weir_cache_index_pop (&window->index);
    cache_entry_unref (&entry);
  }
  weir_cache_index_free (&window->index);
  cache_scene_unref (window->scene);
  g_mutex_clear (&window->lock);
  g_cond_clear (&window->changed);
  g_free (window->name);
  g_free (window);
}

// Drops the last reference under the lock of the channels, so that no thread finds a window that is
// being freed.
void
cache_window_unref (CacheWindow *window)
{
  gint refs = g_atomic_int_get (&window->refs);
  gboolean last;

  while (refs > 1) {
    if (g_atomic_int_compare_and_exchange (&window->refs, refs, refs - 1))
      return;
    refs = g_atomic_int_get (&window->refs);
  }
  g_mutex_lock (&channels_lock);
  last = g_atomic_int_dec_and_test (&window->refs);
  if (last && window->name)
    g_hash_table_remove (channels, window->name);
  g_mutex_unlock (&channels_lock);
  if (last)
    free_window (window);
}

// ---- writing ----

static WeirCacheEntry
take_oldest (CacheWindow *window)
{
  const gboolean was_in_memory = window->index.tail >= window->in_memory;
  WeirCacheEntry entry = weir_cache_index_pop (&window->index);

  window->counts.evicted += entry.n_buffers;
  if (was_in_memory) {
    window->bytes_in_memory -= entry.bytes;
    window->in_memory = window->index.tail;
  }
  return entry;
}

// Evicts the oldest entries that exceed the bounds or lie before the position `until`. Call with
// the lock, which is released while entries are freed.
static void
evict (CacheWindow *window, gint64 until)
{
  WeirCacheIndex *index = &window->index;
  guint n;

  do {
    WeirCacheEntry evicted[AT_ONCE];

    for (n = 0; n < AT_ONCE && (index->tail < until || weir_cache_index_exceeded (index)); n++)
      evicted[n] = take_oldest (window);
    if (n == 0)
      break;
    g_mutex_unlock (&window->lock);
    for (guint i = 0; i < n; i++)
      cache_entry_unref (&evicted[i]);
    g_mutex_lock (&window->lock);
  } while (n == AT_ONCE);
}

// Call with the lock.
static void
window_apply_bounds (CacheWindow *window, const CacheBounds *bounds)
{
  const guint64 in_file = window->spill ? cache_spill_capacity (window->spill) : 0;
  const gboolean any = bounds->bytes == 0;

  window->max_bytes = any ? G_MAXUINT64 : bounds->bytes;
  if (window->spill && window->policy != CACHE_POLICY_INTERVAL)
    window->max_bytes = 0;
  window->index.bounds = (WeirCacheBounds) { .time_ns = (gint64) bounds->time,
    .bytes = any ? 0 : bounds->bytes + MIN (in_file, G_MAXUINT64 - bounds->bytes),
    .buffers = bounds->buffers };
}

// Replaces the object of the first entry in memory by its stored form. `stored` is NULL for an
// event, which stays in memory. Call with the lock.
static void
replace_object (CacheWindow *window, const CacheStored *stored)
{
  WeirCacheEntry *entry = weir_cache_index_at (&window->index, window->in_memory++);

  window->bytes_in_memory -= entry->bytes;
  if (!stored)
    return;
  entry->home = stored->number;
  entry->object = stored->copy;
  if (stored->piece) {
    entry->object = stored->piece;
    entry->home_offset = stored->offset;
    entry->flags |= WEIR_CACHE_STORED;
  }
}

static void
drop_stored (CacheStored *stored)
{
  g_clear_pointer (&stored->piece, cache_piece_unref);
  g_clear_pointer (&stored->copy, gst_mini_object_unref);
}

// Moves the first entry in memory to the file. If the file has no room, evicts the oldest entry,
// which may be this one. Call with the lock, which is released while the data is copied.
static void
spill_one (CacheWindow *window)
{
  const gint64 position = window->in_memory;
  const WeirCacheEntry old = *weir_cache_index_at (&window->index, position);
  const gboolean is_event = old.flags & WEIR_CACHE_EVENT;
  CacheStored stored = { 0 };
  gboolean is_stored, replaced = FALSE;

  cache_entry_ref (&old);
  g_mutex_unlock (&window->lock);
  is_stored = window->spill && !is_event && cache_spill_store (window->spill, old.object, &stored);
  g_mutex_lock (&window->lock);
  if (window->in_memory == position && (is_stored || is_event)) {
    replace_object (window, is_stored ? &stored : NULL);
    replaced = is_stored;
  } else if (window->in_memory == position) {
    evict (window, window->index.tail + 1);
  }
  g_mutex_unlock (&window->lock);
  cache_entry_unref (&old);
  if (replaced)
    gst_mini_object_unref (old.object); // the reference of the window
  else if (is_stored)
    drop_stored (&stored);
  g_mutex_lock (&window->lock);
}

static void
spill (CacheWindow *window)
{
  while (window->bytes_in_memory > window->max_bytes && window->in_memory < window->index.head - 1)
    spill_one (window);
}

// The new writer starts another stream: drops the sticky events of the previous writer.
gboolean
cache_window_claim (CacheWindow *window, GstPad *pad, const CacheBounds *bounds, CachePolicy policy,
    CacheSpill *file)
{
  CacheScene *old = NULL;
  gboolean ok;

  g_mutex_lock (&window->lock);
  ok = !window->writer;
  if (ok) {
    window->writer = gst_object_ref (pad);
    window->discont = TRUE;
    window->claimed = window->index.head;
    window->counts.publishers++;
    window->spill = file;
    window->policy = policy;
    window_apply_bounds (window, bounds);
    old = g_steal_pointer (&window->scene);
  }
  g_mutex_unlock (&window->lock);
  cache_scene_unref (old);
  if (!ok)
    cache_spill_close (file);
  return ok;
}

void
cache_window_release (CacheWindow *window)
{
  CacheSpill *file;
  GstPad *pad;

  g_mutex_lock (&window->lock);
  pad = g_steal_pointer (&window->writer);
  file = g_steal_pointer (&window->spill);
  g_mutex_unlock (&window->lock);
  gst_object_unref (pad);
  cache_spill_close (file);
}

gboolean
cache_window_send_upstream (CacheWindow *window, GstEvent *event)
{
  GstPad *pad;
  gboolean ok;

  g_mutex_lock (&window->lock);
  pad = window->writer ? gst_object_ref (window->writer) : NULL;
  g_mutex_unlock (&window->lock);
  if (!pad) {
    gst_event_unref (event);
    return FALSE;
  }
  ok = gst_pad_push_event (pad, event);
  gst_object_unref (pad);
  return ok;
}

void
cache_window_set_bounds (CacheWindow *window, const CacheBounds *bounds)
{
  g_mutex_lock (&window->lock);
  window_apply_bounds (window, bounds);
  evict (window, 0);
  g_mutex_unlock (&window->lock);
}

void
cache_window_flush (CacheWindow *window)
{
  g_mutex_lock (&window->lock);
  window->flushed = window->index.head;
  window->before_flushed = window->index.total;
  window->discont = TRUE;
  evict (window, window->flushed);
  g_mutex_unlock (&window->lock);
}

// Returns the previous scene (transfer full). Call with the lock.
static CacheScene *
change_scene (CacheWindow *window, GstEvent *event)
{
  CacheScene *old = window->scene;

  window->scene = make_scene (old, event);
  return old;
}

static gboolean
changes_scene (const WeirCacheEntry *entry)
{
  return entry->flags & WEIR_CACHE_EVENT && !(entry->flags & WEIR_CACHE_EOS)
         && GST_EVENT_IS_STICKY (entry->object);
}

gint64
cache_window_next (CacheWindow *window)
{
  gint64 next;

  g_mutex_lock (&window->lock);
  next = window->index.head;
  g_mutex_unlock (&window->lock);
  return next;
}

gint64
cache_window_push (CacheWindow *window, WeirCacheEntry *entry)
{
  CacheScene *old = NULL;
  gint64 position = -1;

  g_mutex_lock (&window->lock);
  if (changes_scene (entry))
    old = change_scene (window, entry->object);
  if (window->discont && !(entry->flags & WEIR_CACHE_EVENT)) {
    entry->flags |= WEIR_CACHE_DISCONT;
    window->discont = FALSE;
  }
  entry->state = window->scene ? cache_scene_ref (window->scene) : NULL;
  window->counts.in += entry->n_buffers;
  window->counts.bytes_in += entry->bytes;
  if (weir_cache_index_push (&window->index, entry) == 0) {
    position = window->index.head - 1;
    window->bytes_in_memory += entry->bytes;
    if (window->n_waiting > 0)
      g_cond_broadcast (&window->changed);
    evict (window, 0);
    spill (window);
  } else {
    window->counts.evicted += entry->n_buffers;
  }
  g_mutex_unlock (&window->lock);
  cache_scene_unref (old);
  if (position < 0)
    cache_entry_unref (entry);
  return position;
}

void
cache_window_mark_join (CacheWindow *window, gint64 position)
{
  g_mutex_lock (&window->lock);
  weir_cache_index_mark_join (&window->index, position);
  g_cond_broadcast (&window->changed);
  g_mutex_unlock (&window->lock);
}

// ---- statistics ----

void
cache_window_add_stats (CacheWindow *window, GstStructure *stats)
{
  const WeirCacheIndex *index = &window->index;
  const CacheCounts *c = &window->counts;
  guint64 oldest = 0, newest = 0;
  gdouble ratio = 1;

  if (c->from_file > 0)
    ratio = (gdouble) c->from_memory / (gdouble) (c->from_memory + c->from_file);
  if (index->head > index->tail) {
    oldest = (guint64) weir_cache_index_at (index, index->tail)->time_ns;
    newest = (guint64) weir_cache_index_at (index, index->head - 1)->end_ns;
  }
  gst_structure_set (stats, "in", G_TYPE_UINT64, c->in, "bytes-in", G_TYPE_UINT64, c->bytes_in,
      "evicted", G_TYPE_UINT64, c->evicted, "held", G_TYPE_UINT64, c->in - c->evicted, "held-bytes",
      G_TYPE_UINT64, index->bytes, "spilled-bytes", G_TYPE_UINT64,
      index->bytes - window->bytes_in_memory, "oldest", G_TYPE_UINT64, oldest, "newest",
      G_TYPE_UINT64, newest, "repaired", G_TYPE_UINT64, index->n_repaired, "publishers",
      G_TYPE_UINT64, c->publishers, "readers", G_TYPE_UINT, window->n_readers, "hit-ratio",
      G_TYPE_DOUBLE, ratio, "read-from-memory", G_TYPE_UINT64, c->from_memory, "read-from-file",
      G_TYPE_UINT64, c->from_file, NULL);
}
