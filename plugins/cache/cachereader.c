// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cachereader.h"

#include "enumtype.h"

GST_DEBUG_CATEGORY_EXTERN (intervalcache_debug);
#define GST_CAT_DEFAULT intervalcache_debug

// A window that is too short for a delay is read with this part of it to spare.
#define SPARE_PART 8

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

static CacheSettings
get_settings (CacheReader *self)
{
  CacheSettings settings;

  GST_OBJECT_LOCK (self->pad);
  settings = self->settings;
  GST_OBJECT_UNLOCK (self->pad);
  return settings;
}

// The window, also where the reader may be closed meanwhile.
static CacheWindow *
get_window (CacheReader *self)
{
  CacheWindow *window;

  GST_OBJECT_LOCK (self->pad);
  window = self->window ? cache_window_ref (self->window) : NULL;
  GST_OBJECT_UNLOCK (self->pad);
  return window;
}

static gint64
clock_now (void)
{
  GstClock *clock = gst_system_clock_obtain ();
  gint64 now = (gint64) gst_clock_get_time (clock);

  gst_object_unref (clock);
  return now;
}

/* Places. With the lock. */

static const WeirCacheIndex *
index_of (const CacheReader *self)
{
  return &self->window->index;
}

static const WeirCacheEntry *
newest (const WeirCacheIndex *index)
{
  return index->head > index->tail ? weir_cache_index_at (index, index->head - 1) : NULL;
}

static gboolean
at_end (const WeirCacheIndex *index)
{
  const WeirCacheEntry *last = newest (index);

  return last && last->flags & WEIR_CACHE_EOS;
}

static void
look_for_join (CacheReader *self, gint64 from)
{
  self->cursor = self->looked_from = from;
  self->find_join = TRUE;
}

// At the join point up to there, else at the first that comes.
static void
go_to (CacheReader *self, gint64 position)
{
  gint64 join = weir_cache_index_join_before (index_of (self), position);

  self->cursor = join;
  self->find_join = FALSE;
  if (join == WEIR_CACHE_NO_POSITION)
    look_for_join (self, MIN (position, index_of (self)->head));
}

static void
go_live (CacheReader *self)
{
  self->cursor = index_of (self)->head - (at_end (index_of (self)) ? 1 : 0);
  self->find_join = FALSE;
}

static void
note_miss (CacheReader *self, gint64 from, gint64 n)
{
  self->counts.misses++;
  self->counts.skipped += (guint64) n;
  self->discont = TRUE;
  if (!self->miss.missed)
    self->miss.from = from;
  self->miss.missed = TRUE;
  self->miss.n += n;
}

static void
go_to_time (CacheReader *self, gint64 time)
{
  const WeirCacheIndex *index = index_of (self);

  if (time < weir_cache_index_at (index, index->tail)->time_ns) {
    look_for_join (self, index->tail);
    note_miss (self, time, 0);
  } else if (time > newest (index)->end_ns) {
    go_live (self);
  } else {
    go_to (self, weir_cache_index_find_time (index, time));
  }
}

static void
note_place (CacheReader *self)
{
  const WeirCacheIndex *index = index_of (self);

  self->placed = self->discont = TRUE;
  if (weir_cache_index_has (index, self->cursor))
    self->next_time = weir_cache_index_at (index, self->cursor)->time_ns;
  else if (newest (index))
    self->next_time = newest (index)->end_ns;
}

// Leaves it for later if that can't be said yet.
static void
take_place (CacheReader *self, const CacheSettings *settings)
{
  const WeirCacheIndex *index = index_of (self);

  if (index->head == index->tail && settings->start == CACHE_START_POSITION)
    return;
  if (index->head == index->tail)
    self->cursor = index->head;
  else if (settings->start == CACHE_START_POSITION)
    go_to_time (self, (gint64) settings->position);
  else if (settings->start == CACHE_START_OLDEST)
    look_for_join (self, index->tail);
  else if (settings->start == CACHE_START_JOIN_POINT)
    go_to (self, index->head);
  else if (settings->delay > 0)
    go_to (self, weir_cache_index_find_arrival (index, clock_now () - (gint64) settings->delay));
  else
    go_live (self);
  note_place (self);
}

// The first entry to go on with. Where what is here was due to this reader only later, its delay is
// more than the window holds: it goes on with a bit less than that.
static gint64
place_in_short_window (CacheReader *self, const CacheSettings *settings)
{
  const WeirCacheIndex *index = index_of (self);
  const gint64 oldest = weir_cache_index_at (index, index->tail)->arrival_ns;
  const gint64 now = clock_now ();
  gint64 to;

  if (now - oldest >= (gint64) settings->delay)
    return index->tail;
  to = weir_cache_index_find_arrival (index, oldest + (now - oldest) / SPARE_PART);
  self->delay_limit = now - weir_cache_index_at (index, to)->arrival_ns;
  return to;
}

// The window has moved on.
static void
catch_up (CacheReader *self, const CacheSettings *settings)
{
  const WeirCacheIndex *index = index_of (self);
  gint64 to;

  if (self->cursor < self->window->flushed) {
    self->cursor = self->window->flushed;
    self->discont = TRUE;
    self->find_join = FALSE;
  }
  if (self->cursor >= index->tail || self->find_join)
    return;
  to = settings->delay > 0 ? place_in_short_window (self, settings) : index->tail;
  note_miss (self, self->next_time, to - self->cursor);
  look_for_join (self, to);
}

// Goes to the join point that it looks for. FALSE if there is none yet. Where there was none in a
// whole window, there may never be one.
static gboolean
find_join (CacheReader *self)
{
  const WeirCacheIndex *index = index_of (self);
  gint64 join = weir_cache_index_next_join (index, self->cursor);

  if (join == WEIR_CACHE_NO_POSITION && self->looked_from < index->tail)
    join = index->tail;
  else if (join == WEIR_CACHE_NO_POSITION && at_end (index))
    join = index->head - 1;
  if (join == WEIR_CACHE_NO_POSITION)
    return FALSE;
  if (self->miss.missed) {
    self->miss.n += join - self->cursor;
    self->counts.skipped += (guint64) (join - self->cursor);
  }
  self->cursor = join;
  self->find_join = FALSE;
  return TRUE;
}

/* Waiting. With the lock, which is given up while it waits. */

static gint64
due_at (const CacheReader *self, const CacheSettings *settings, gint64 arrival)
{
  gint64 delay = (gint64) settings->delay;

  return arrival + (self->delay_limit >= 0 ? MIN (delay, self->delay_limit) : delay);
}

static void
wait_for_clock (CacheReader *self, gint64 until)
{
  GstClock *clock = gst_system_clock_obtain ();
  GstClockID id = gst_clock_new_single_shot_id (clock, (GstClockTime) until);

  self->wait_id = id;
  g_mutex_unlock (&self->window->lock);
  gst_clock_id_wait (id, NULL);
  g_mutex_lock (&self->window->lock);
  self->wait_id = NULL;
  gst_clock_id_unref (id);
  gst_object_unref (clock);
}

static void
wait_for_change (CacheReader *self)
{
  g_cond_wait (&self->window->changed, &self->window->lock);
}

// Something has changed: whoever waits looks again.
static void
wake (CacheReader *self)
{
  if (self->wait_id)
    gst_clock_id_unschedule (self->wait_id);
  g_cond_broadcast (&self->window->changed);
}

// TRUE if what stands at the cursor is there and due. Else waits, for one change.
static gboolean
is_due (CacheReader *self)
{
  const WeirCacheIndex *index = index_of (self);
  const CacheSettings settings = get_settings (self);
  gint64 due;

  if (self->paused || self->unlinked) {
    wait_for_change (self);
    return FALSE;
  }
  if (!self->placed)
    take_place (self, &settings);
  if (self->placed)
    catch_up (self, &settings);
  if (!self->placed || self->cursor >= index->head || (self->find_join && !find_join (self))) {
    wait_for_change (self);
    return FALSE;
  }
  due = due_at (self, &settings, weir_cache_index_at (index, self->cursor)->arrival_ns);
  if (settings.delay > 0 && due > clock_now ()) {
    wait_for_clock (self, due);
    return FALSE;
  }
  return TRUE;
}

/* The pad's task. Without the lock. */

typedef struct {
  WeirCacheEntry entry; // with references; no object: nothing more is to come
  gboolean discont;
  CacheMiss miss;
  CacheSpillGone *gone; // had to go from memory for it
} Taken;

// With the lock.
static void
note_source (CacheReader *self, Taken *taken)
{
  const WeirCacheEntry *entry = &taken->entry;
  CacheWindow *window = self->window;

  if (entry->home != self->home) {
    self->home = entry->home;
    self->home_held =
        entry->home == 0
        || (window->spill && cache_spill_ask (window->spill, entry->home, &taken->gone));
  }
  if (self->home_held)
    window->counts.from_memory += entry->bytes;
  else
    window->counts.from_file += entry->bytes;
}

// With the lock.
static void
take_entry (CacheReader *self, Taken *taken)
{
  taken->entry = *weir_cache_index_at (index_of (self), self->cursor++);
  gst_mini_object_ref (taken->entry.object);
  if (taken->entry.state)
    cache_scene_ref (taken->entry.state);
  self->next_time = taken->entry.end_ns;
  taken->miss = self->miss;
  taken->miss.to = taken->entry.time_ns;
  self->miss = (CacheMiss) { 0 };
  if (taken->entry.flags & WEIR_CACHE_EVENT)
    return;
  taken->discont = self->discont || taken->entry.flags & WEIR_CACHE_DISCONT;
  self->discont = FALSE;
  self->counts.out += taken->entry.n_buffers;
  self->counts.bytes_out += taken->entry.bytes;
  note_source (self, taken);
}

// FALSE if the task is to end.
static gboolean
take (CacheReader *self, Taken *taken)
{
  gboolean flushing;

  g_mutex_lock (&self->window->lock);
  while (!self->flushing && !self->ended && !is_due (self))
    ;
  flushing = self->flushing;
  if (!flushing && !self->ended)
    take_entry (self, taken);
  g_mutex_unlock (&self->window->lock);
  return !flushing;
}

static void
tell_miss (CacheReader *self, const CacheMiss *miss)
{
  GstStructure *s = gst_structure_new ("cache-miss", "channel", G_TYPE_STRING, self->window->name,
      "pad", G_TYPE_STRING, GST_PAD_NAME (self->pad), "from", G_TYPE_UINT64,
      (guint64) MIN (miss->from, miss->to), "to", G_TYPE_UINT64, (guint64) miss->to, "skipped",
      G_TYPE_UINT64, (guint64) miss->n, NULL);

  GST_DEBUG_OBJECT (self->pad, "%" GST_PTR_FORMAT, s);
  gst_element_post_message (self->element, gst_message_new_element (GST_OBJECT (self->element), s));
}

// What is in force at this place and not yet downstream.
static void
push_scene (CacheReader *self, CacheScene *scene)
{
  if (scene == self->sent || !scene)
    return;
  for (guint i = 0; i < scene->n; i++) {
    if (!cache_scene_has (self->sent, scene->events[i]))
      gst_pad_push_event (self->pad, gst_event_ref (scene->events[i]));
  }
  cache_scene_unref (self->sent);
  self->sent = cache_scene_ref (scene);
}

static GstFlowReturn
push_list (CacheReader *self, GstBufferList *list, gboolean discont)
{
  if (discont && gst_buffer_list_length (list) > 0) {
    list = gst_buffer_list_make_writable (list);
    GST_BUFFER_FLAG_SET (gst_buffer_list_get_writable (list, 0), GST_BUFFER_FLAG_DISCONT);
  }
  return gst_pad_push_list (self->pad, list);
}

static GstFlowReturn
push_buffer (CacheReader *self, GstBuffer *buffer, gboolean discont)
{
  if (discont) {
    buffer = gst_buffer_make_writable (buffer);
    GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_DISCONT);
  }
  return gst_pad_push (self->pad, buffer);
}

static GstFlowReturn
push (CacheReader *self, GstMiniObject *object, gboolean discont)
{
  if (GST_IS_BUFFER_LIST (object))
    return push_list (self, GST_BUFFER_LIST (object), discont);
  if (GST_IS_BUFFER (object))
    return push_buffer (self, GST_BUFFER (object), discont);
  // A sticky event went with the others in force, as the last of them.
  if (cache_scene_has (self->sent, GST_EVENT (object)))
    gst_event_unref (GST_EVENT (object));
  else
    gst_pad_push_event (self->pad, GST_EVENT (object));
  return GST_FLOW_OK;
}

// A link that comes later brings a new place.
static void
wait_for_link (CacheReader *self)
{
  g_mutex_lock (&self->window->lock);
  self->unlinked = !gst_pad_is_linked (self->pad);
  g_mutex_unlock (&self->window->lock);
}

static void
end (CacheReader *self, GstFlowReturn ret)
{
  GST_DEBUG_OBJECT (self->pad, "ends: %s", gst_flow_get_name (ret));
  gst_pad_pause_task (self->pad);
  if (ret == GST_FLOW_FLUSHING)
    return;
  if (ret != GST_FLOW_EOS)
    GST_ELEMENT_FLOW_ERROR (self->element, ret);
  gst_pad_push_event (self->pad, gst_event_new_eos ());
}

static void
loop (gpointer user_data)
{
  CacheReader *self = user_data;
  Taken taken = { 0 };
  GstFlowReturn ret;

  if (!take (self, &taken)) {
    end (self, GST_FLOW_FLUSHING);
    return;
  }
  if (!taken.entry.object) {
    end (self, GST_FLOW_EOS);
    return;
  }
  cache_spill_let_go (taken.gone);
  if (taken.miss.missed)
    tell_miss (self, &taken.miss);
  push_scene (self, taken.entry.state);
  cache_scene_unref (taken.entry.state);
  ret = push (self, taken.entry.object, taken.discont);
  if (ret == GST_FLOW_NOT_LINKED)
    wait_for_link (self);
  else if (ret != GST_FLOW_OK)
    end (self, ret);
}

/* Control */

// What comes from now on is live. With the lock.
static void
begin (CacheReader *self)
{
  const CacheSettings settings = get_settings (self);

  if (!self->placed && !self->paused && !self->unlinked)
    take_place (self, &settings);
  wake (self);
}

static void
on_linked (GstPad *pad, GstPad *peer, CacheReader *self)
{
  CacheWindow *window = get_window (self);

  if (!window)
    return;
  g_mutex_lock (&window->lock);
  if (self->unlinked) {
    self->unlinked = self->placed = FALSE;
    begin (self);
  }
  g_mutex_unlock (&window->lock);
  cache_window_unref (window);
}

void
cache_reader_init (CacheReader *self, GstElement *element, GstPad *pad)
{
  self->element = element;
  self->pad = pad;
  g_signal_connect (pad, "linked", G_CALLBACK (on_linked), self);
}

void
cache_reader_open (CacheReader *self, CacheWindow *window)
{
  g_mutex_lock (&window->lock);
  window->n_readers++;
  self->counts = (CacheReaderCounts) { 0 };
  self->miss = (CacheMiss) { 0 };
  self->placed = self->find_join = self->ended = self->unlinked = FALSE;
  self->flushing = TRUE;
  self->delay_limit = -1;
  self->next_time = 0;
  self->home = 0;
  self->home_held = TRUE;
  g_mutex_unlock (&window->lock);
  GST_OBJECT_LOCK (self->pad);
  self->window = cache_window_ref (window);
  GST_OBJECT_UNLOCK (self->pad);
}

void
cache_reader_close (CacheReader *self)
{
  CacheWindow *window;

  GST_OBJECT_LOCK (self->pad);
  window = g_steal_pointer (&self->window);
  GST_OBJECT_UNLOCK (self->pad);
  g_clear_pointer (&self->sent, cache_scene_unref);
  if (!window)
    return;
  g_mutex_lock (&window->lock);
  window->n_readers--;
  g_mutex_unlock (&window->lock);
  cache_window_unref (window);
}

gboolean
cache_reader_run (CacheReader *self)
{
  g_mutex_lock (&self->window->lock);
  self->flushing = FALSE;
  self->unlinked = !gst_pad_is_linked (self->pad);
  begin (self);
  g_mutex_unlock (&self->window->lock);
  return gst_pad_start_task (self->pad, loop, self, NULL);
}

void
cache_reader_interrupt (CacheReader *self)
{
  g_mutex_lock (&self->window->lock);
  self->flushing = TRUE;
  wake (self);
  g_mutex_unlock (&self->window->lock);
}

void
cache_reader_pause (CacheReader *self, gboolean paused)
{
  g_mutex_lock (&self->window->lock);
  self->paused = paused;
  begin (self);
  g_mutex_unlock (&self->window->lock);
}

void
cache_reader_end (CacheReader *self)
{
  CacheWindow *window = get_window (self);

  if (!window)
    return;
  g_mutex_lock (&window->lock);
  self->ended = TRUE;
  wake (self);
  g_mutex_unlock (&window->lock);
  cache_window_unref (window);
}

void
cache_reader_wake (CacheReader *self)
{
  CacheWindow *window = get_window (self);

  if (!window)
    return;
  g_mutex_lock (&window->lock);
  self->delay_limit = -1;
  wake (self);
  g_mutex_unlock (&window->lock);
  cache_window_unref (window);
}

void
cache_reader_flushed (CacheReader *self)
{
  g_clear_pointer (&self->sent, cache_scene_unref);
  g_mutex_lock (&self->window->lock);
  self->discont = TRUE;
  self->ended = FALSE;
  g_mutex_unlock (&self->window->lock);
}

/* Seeking, and queries */

static gboolean
go_to_wanted (CacheReader *self, gint64 time)
{
  const WeirCacheIndex *index = index_of (self);
  gboolean ok;

  g_mutex_lock (&self->window->lock);
  ok = newest (index) != NULL;
  if (ok) {
    self->miss = (CacheMiss) { 0 };
    self->delay_limit = -1;
    go_to_time (self, time);
    note_place (self);
    wake (self);
  }
  g_mutex_unlock (&self->window->lock);
  return ok;
}

static gboolean
holds (CacheReader *self, gint64 time)
{
  const WeirCacheIndex *index = index_of (self);
  gboolean ok;

  g_mutex_lock (&self->window->lock);
  ok = newest (index) && time >= weir_cache_index_at (index, index->tail)->time_ns
       && time <= newest (index)->end_ns;
  g_mutex_unlock (&self->window->lock);
  return ok;
}

static void
flush (CacheReader *self, guint32 seqnum, gboolean start)
{
  GstEvent *event = start ? gst_event_new_flush_start () : gst_event_new_flush_stop (TRUE);

  gst_event_set_seqnum (event, seqnum);
  gst_pad_push_event (self->pad, event);
}

gboolean
cache_reader_seek (CacheReader *self, GstEvent *event)
{
  const guint32 seqnum = gst_event_get_seqnum (event);
  gdouble rate;
  GstFormat format;
  GstSeekFlags flags;
  GstSeekType type;
  gint64 start;

  gst_event_parse_seek (event, &rate, &format, &flags, &type, &start, NULL, NULL);
  if (rate != 1.0 || format != GST_FORMAT_TIME || type != GST_SEEK_TYPE_SET || !holds (self, start))
    return FALSE;
  if (!(flags & GST_SEEK_FLAG_FLUSH))
    return go_to_wanted (self, start);
  cache_reader_interrupt (self);
  flush (self, seqnum, TRUE);
  gst_pad_pause_task (self->pad);
  flush (self, seqnum, FALSE);
  cache_reader_flushed (self);
  go_to_wanted (self, start);
  return cache_reader_run (self);
}

static void
answer_seeking (CacheReader *self, GstQuery *query)
{
  const WeirCacheIndex *index = index_of (self);
  gint64 from = -1, to = -1;

  g_mutex_lock (&self->window->lock);
  if (newest (index)) {
    from = weir_cache_index_at (index, index->tail)->time_ns;
    to = newest (index)->end_ns;
  }
  g_mutex_unlock (&self->window->lock);
  gst_query_set_seeking (query, GST_FORMAT_TIME, from >= 0, from, to);
}

static void
answer_position (CacheReader *self, GstQuery *query)
{
  gint64 position;

  g_mutex_lock (&self->window->lock);
  position = self->next_time;
  g_mutex_unlock (&self->window->lock);
  gst_query_set_position (query, GST_FORMAT_TIME, position);
}

gboolean
cache_reader_query (CacheReader *self, GstQuery *query)
{
  GstFormat format = GST_FORMAT_UNDEFINED;

  if (!self->window)
    return FALSE;
  if (GST_QUERY_TYPE (query) == GST_QUERY_SEEKING)
    gst_query_parse_seeking (query, &format, NULL, NULL, NULL);
  else if (GST_QUERY_TYPE (query) == GST_QUERY_POSITION)
    gst_query_parse_position (query, &format, NULL);
  if (format != GST_FORMAT_TIME)
    return FALSE;
  if (GST_QUERY_TYPE (query) == GST_QUERY_SEEKING)
    answer_seeking (self, query);
  else
    answer_position (self, query);
  return TRUE;
}

/* Properties */

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
make_stats (CacheReader *self)
{
  GstStructure *stats = gst_structure_new_empty ("application/x-weir-cache-reader");
  CacheWindow *window = get_window (self);

  if (!window)
    return stats;
  g_mutex_lock (&window->lock);
  gst_structure_set (stats, "out", G_TYPE_UINT64, self->counts.out, "bytes-out", G_TYPE_UINT64,
      self->counts.bytes_out, "skipped", G_TYPE_UINT64, self->counts.skipped, "misses",
      G_TYPE_UINT64, self->counts.misses, "position", G_TYPE_UINT64, (guint64) self->next_time,
      "behind", G_TYPE_UINT64, (guint64) behind (self), NULL);
  g_mutex_unlock (&window->lock);
  cache_window_add_stats (window, stats);
  cache_window_unref (window);
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
  cache_reader_wake (self);
  return index <= INDEX_DELAY;
}

gboolean
cache_reader_get_property (CacheReader *self, guint index, GValue *value)
{
  const CacheSettings settings = get_settings (self);

  if (index == INDEX_START)
    g_value_set_enum (value, (gint) settings.start);
  else if (index == INDEX_POSITION)
    g_value_set_uint64 (value, settings.position);
  else if (index == INDEX_DELAY)
    g_value_set_uint64 (value, settings.delay);
  else if (index == INDEX_STATS)
    g_value_take_boxed (value, make_stats (self));
  return index <= INDEX_STATS;
}
