// SPDX-License-Identifier: LGPL-2.1-or-later
// The task of a reader's pad, and the reader's life cycle.
#include "cachereader_private.h"

GST_DEBUG_CATEGORY_EXTERN (intervalcache_debug);
#define GST_CAT_DEFAULT intervalcache_debug

// ---- waiting. Call with the lock, which is released while waiting ----

static gint64
due_at (const CacheReader *self, const CacheReaderSettings *settings, gint64 arrival)
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
  self->window->n_waiting++;
  g_cond_wait (&self->window->changed, &self->window->lock);
  self->window->n_waiting--;
}

void
cache_reader_look (CacheReader *self)
{
  if (self->wait_id)
    gst_clock_id_unschedule (self->wait_id);
  g_cond_broadcast (&self->window->changed);
}

typedef enum {
  STEP_WAITED,   // one change; look again
  STEP_ANNOUNCE, // tell downstream that data will come later
  STEP_TAKE,     // the entry at the cursor is present and due
} Step;

// Reports whether the entry is an event that precedes the first buffer. Such events are not
// delayed.
static gboolean
leads (const CacheReader *self, const WeirCacheEntry *entry)
{
  return self->discont && entry->flags & WEIR_CACHE_EVENT && !(entry->flags & WEIR_CACHE_EOS);
}

// Sinks of a pipeline preroll together: without an announcement, a sink behind a delay would keep
// the live ones from playing until it has data. Where all readers are delayed, they wait for data:
// a media of gst-rtsp-server cannot be described without.
static gboolean
must_announce (const CacheReader *self, const WeirCacheEntry *entry)
{
  return !self->announced && self->discont && cache_reader_segment (entry->state)
         && cache_timing_has_live (self->timing);
}

// Finds what to do next. Waits for one change if there is nothing to do yet.
static Step
next_step (CacheReader *self)
{
  const WeirCacheIndex *index = index_of (self);
  const CacheReaderSettings settings = cache_reader_settings (self);
  const WeirCacheEntry *entry;
  gint64 due;

  if (self->paused || self->unlinked) {
    wait_for_change (self);
    return STEP_WAITED;
  }
  if (!self->positioned)
    cache_position_start (self, &settings);
  if (self->positioned)
    cache_position_keep_in_window (self, &settings);
  if (!self->positioned || self->cursor >= index->head
      || (self->find_join && !cache_position_find_join (self))) {
    wait_for_change (self);
    return STEP_WAITED;
  }
  entry = weir_cache_index_at (index, self->cursor);
  due = due_at (self, &settings, entry->arrival_ns);
  if (settings.delay > 0 && due > clock_now () && !leads (self, entry)) {
    if (must_announce (self, entry))
      return STEP_ANNOUNCE;
    wait_for_clock (self, due);
    return STEP_WAITED;
  }
  return STEP_TAKE;
}

// ---- the pad's task. Call without the lock ----

typedef struct {
  WeirCacheEntry entry; // owns references; no object = end of the stream
  gboolean announce;    // there is only a state yet
  gboolean discont;
  gboolean sought;
  guint n_links;
  CacheMiss miss;
  CacheSpillEvicted *evicted; // pieces evicted from memory to make room
} Taken;

// Counts the bytes as read from memory or from the file. Call with the lock.
static void
note_source (CacheReader *self, Taken *taken)
{
  const WeirCacheEntry *entry = &taken->entry;
  CacheWindow *window = self->window;

  if (entry->home != self->home) {
    self->home = entry->home;
    self->home_held =
        entry->home == 0
        || (window->spill && cache_spill_ask (window->spill, entry->home, &taken->evicted));
  }
  if (self->home_held)
    window->counts.from_memory += entry->bytes;
  else
    window->counts.from_file += entry->bytes;
}

// Takes the entry at the cursor and moves the cursor on. Call with the lock.
static void
take_entry (CacheReader *self, Taken *taken)
{
  taken->entry = *weir_cache_index_at (index_of (self), self->cursor++);
  self->before = weir_cache_index_before (index_of (self), self->cursor);
  taken->n_links = self->n_links;
  cache_entry_ref (&taken->entry);
  self->next_time = taken->entry.end_ns;
  taken->miss = self->miss;
  taken->miss.to = taken->entry.time_ns;
  self->miss = (CacheMiss) { 0 };
  if (taken->entry.flags & WEIR_CACHE_EVENT)
    return;
  taken->discont = self->discont || taken->entry.flags & WEIR_CACHE_DISCONT;
  taken->sought = self->sought;
  self->discont = self->sought = FALSE;
  self->counts.out += taken->entry.n_buffers;
  self->counts.bytes_out += taken->entry.bytes;
  note_source (self, taken);
}

// Takes only the state of the entry at the cursor, which is not due yet. Call with the lock.
static void
take_state (CacheReader *self, Taken *taken)
{
  const WeirCacheEntry *entry = weir_cache_index_at (index_of (self), self->cursor);

  taken->entry.state = cache_scene_ref (entry->state);
  taken->announce = self->announced = TRUE;
}

static gboolean
may_run (const CacheReader *self)
{
  return self->active && !self->flushing;
}

// Waits for the next entry that is due, and takes it, or its state to announce it. Returns FALSE if
// the task must end. The window may be missing: a seek may start the task when the pad is inactive
// already.
static gboolean
take (CacheReader *self, Taken *taken)
{
  CacheWindow *window = cache_reader_lock (self);
  Step step = STEP_WAITED;
  gboolean runs;

  if (!window)
    return FALSE;
  while (may_run (self) && !self->ended && step == STEP_WAITED)
    step = next_step (self);
  runs = may_run (self);
  if (runs && !self->ended && step == STEP_ANNOUNCE)
    take_state (self, taken);
  else if (runs && !self->ended)
    take_entry (self, taken);
  cache_reader_unlock (window);
  return runs;
}

static void
tell_miss (CacheReader *self, const CacheMiss *miss)
{
  GstStructure *s = gst_structure_new ("cache-miss", "channel", G_TYPE_STRING, self->window->name,
      "pad", G_TYPE_STRING, GST_PAD_NAME (self->pad), "from", G_TYPE_UINT64,
      (guint64) MIN (miss->from, miss->to), "to", G_TYPE_UINT64, (guint64) miss->to, "skipped",
      G_TYPE_UINT64, miss->n, NULL);

  GST_DEBUG_OBJECT (self->pad, "%" GST_PTR_FORMAT, s);
  gst_element_post_message (self->element, gst_message_new_element (GST_OBJECT (self->element), s));
}

// Pushes the sticky events that apply to this position and are not downstream yet.
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
reader_push (CacheReader *self, GstMiniObject *object, gboolean discont)
{
  if (GST_IS_BUFFER_LIST (object))
    return push_list (self, GST_BUFFER_LIST (object), discont);
  if (GST_IS_BUFFER (object))
    return push_buffer (self, GST_BUFFER (object), discont);
  // push_scene() has pushed sticky events already.
  if (cache_scene_has (self->sent, GST_EVENT (object)))
    gst_event_unref (GST_EVENT (object));
  else
    gst_pad_push_event (self->pad, GST_EVENT (object));
  return GST_FLOW_OK;
}

// Makes the reader wait for a link after a push that reached no element. Does not wait if a link
// came in the meantime.
static void
wait_for_link (CacheReader *self, guint n_links)
{
  g_mutex_lock (&self->window->lock);
  self->unlinked = self->n_links == n_links;
  g_mutex_unlock (&self->window->lock);
}

static void
reader_end (CacheReader *self, GstFlowReturn ret)
{
  GST_DEBUG_OBJECT (self->pad, "task ends: %s", gst_flow_get_name (ret));
  gst_pad_pause_task (self->pad);
  if (ret == GST_FLOW_FLUSHING)
    return;
  if (ret != GST_FLOW_EOS)
    GST_ELEMENT_FLOW_ERROR (self->element, ret);
  gst_pad_push_event (self->pad, gst_event_new_eos ());
}

// Tells downstream what will come, and that nothing has come yet.
static void
announce (CacheReader *self, CacheScene *scene)
{
  const GstClockTime start = cache_reader_segment (scene)->start;

  push_scene (self, scene);
  cache_scene_unref (scene);
  gst_pad_push_event (self->pad, gst_event_new_gap (start, GST_CLOCK_TIME_NONE));
}

static void
loop (gpointer user_data)
{
  CacheReader *self = user_data;
  Taken taken = { 0 };
  GstMiniObject *object;
  GstFlowReturn ret;

  if (!take (self, &taken)) {
    reader_end (self, GST_FLOW_FLUSHING);
    return;
  }
  if (taken.announce) {
    announce (self, taken.entry.state);
    return;
  }
  if (!taken.entry.object) {
    reader_end (self, GST_FLOW_EOS);
    return;
  }
  cache_spill_page_out (taken.evicted);
  if (taken.miss.missed)
    tell_miss (self, &taken.miss);
  object = cache_entry_load (&taken.entry);
  if (GST_IS_BUFFER (object) || GST_IS_BUFFER_LIST (object))
    cache_reader_place (self, object, taken.entry.state, taken.sought);
  push_scene (self, taken.entry.state);
  cache_scene_unref (taken.entry.state);
  ret = reader_push (self, object, taken.discont);
  if (ret == GST_FLOW_NOT_LINKED)
    wait_for_link (self, taken.n_links);
  else if (ret != GST_FLOW_OK)
    reader_end (self, ret);
}

// ---- control ----

CacheReaderSettings
cache_reader_settings (CacheReader *self)
{
  CacheReaderSettings settings;

  GST_OBJECT_LOCK (self->pad);
  settings = self->settings;
  GST_OBJECT_UNLOCK (self->pad);
  return settings;
}

CacheWindow *
cache_reader_window (CacheReader *self)
{
  CacheWindow *window;

  GST_OBJECT_LOCK (self->pad);
  window = self->window ? cache_window_ref (self->window) : NULL;
  GST_OBJECT_UNLOCK (self->pad);
  return window;
}

CacheWindow *
cache_reader_lock (CacheReader *self)
{
  CacheWindow *window = cache_reader_window (self);

  if (!window)
    return NULL;
  g_mutex_lock (&window->lock);
  if (self->window == window)
    return window;
  cache_reader_unlock (window);
  return NULL;
}

void
cache_reader_unlock (CacheWindow *window)
{
  if (!window)
    return;
  g_mutex_unlock (&window->lock);
  cache_window_unref (window);
}

// Takes a position if the reader has none, so that the live edge is the one of this moment. Call
// with the lock.
static void
reader_begin (CacheReader *self)
{
  const CacheReaderSettings settings = cache_reader_settings (self);

  if (!self->positioned && !self->paused && !self->unlinked)
    cache_position_start (self, &settings);
  cache_reader_look (self);
}

void
cache_reader_linked (CacheReader *self)
{
  CacheWindow *window = cache_reader_lock (self);

  if (window)
    self->n_links++;
  if (window && self->unlinked) {
    self->unlinked = self->positioned = FALSE;
    reader_begin (self);
  }
  cache_reader_unlock (window);
}

static void
on_linked (GstPad *pad, GstPad *peer, CacheReader *self)
{
  cache_reader_linked (self);
}

void
cache_reader_init (CacheReader *self, GstElement *element, GstPad *pad, gboolean at_cache)
{
  self->element = element;
  self->at_cache = at_cache;
  self->pad = pad;
  g_signal_connect (pad, "linked", G_CALLBACK (on_linked), self);
}

// Sets the window under both locks, so that a reader of the field needs only one of them.
static void
set_window (CacheReader *self, CacheWindow *window)
{
  GST_OBJECT_LOCK (self->pad);
  self->window = window;
  GST_OBJECT_UNLOCK (self->pad);
}

void
cache_reader_open (CacheReader *self, CacheWindow *window)
{
  self->delayed = cache_reader_settings (self).delay > 0;
  self->timing = cache_timing_join (self->element, self->delayed);
  g_mutex_lock (&window->lock);
  window->n_readers++;
  self->counts = (CacheReaderCounts) { 0 };
  self->miss = (CacheMiss) { 0 };
  self->active = self->flushing = self->positioned = self->find_join = self->sought = FALSE;
  self->ended = self->unlinked = self->announced = FALSE;
  self->next_time = 0;
  self->home = 0;
  self->home_held = TRUE;
  cache_reader_retime (self);
  set_window (self, cache_window_ref (window));
  g_mutex_unlock (&window->lock);
}

void
cache_reader_close (CacheReader *self)
{
  CacheWindow *window = cache_reader_lock (self);

  g_clear_pointer (&self->sent, cache_scene_unref);
  cache_timing_leave (self->timing, self->delayed);
  self->timing = NULL;
  if (!window)
    return;
  window->n_readers--;
  set_window (self, NULL);
  cache_reader_unlock (window);
  cache_window_unref (window); // the reference of the reader
}

void
cache_reader_run (CacheReader *self)
{
  CacheWindow *window = cache_reader_lock (self);
  gboolean runs = FALSE;

  if (window && self->active) {
    self->flushing = FALSE;
    self->unlinked = !gst_pad_is_linked (self->pad);
    reader_begin (self);
    runs = TRUE;
  }
  cache_reader_unlock (window);
  if (runs)
    gst_pad_start_task (self->pad, loop, self, NULL);
}

void
cache_reader_interrupt (CacheReader *self)
{
  CacheWindow *window = cache_reader_lock (self);

  if (window) {
    self->flushing = TRUE;
    cache_reader_look (self);
  }
  cache_reader_unlock (window);
}

gboolean
cache_reader_activate (CacheReader *self, gboolean active)
{
  CacheWindow *window = cache_reader_lock (self);

  if (!window)
    return !active;
  self->active = active;
  self->flushing = FALSE;
  cache_reader_look (self);
  cache_reader_unlock (window);
  if (!active)
    return gst_pad_stop_task (self->pad);
  cache_reader_run (self);
  return TRUE;
}

void
cache_reader_pause (CacheReader *self, gboolean paused)
{
  CacheWindow *window = cache_reader_lock (self);

  if (window) {
    self->paused = paused;
    cache_reader_retime (self);
    reader_begin (self);
  }
  cache_reader_unlock (window);
}

void
cache_reader_end (CacheReader *self)
{
  CacheWindow *window = cache_reader_lock (self);

  if (window) {
    self->ended = TRUE;
    cache_reader_look (self);
  }
  cache_reader_unlock (window);
}

void
cache_reader_wake (CacheReader *self)
{
  const gboolean delayed = cache_reader_settings (self).delay > 0;
  CacheWindow *window = cache_reader_lock (self);

  if (window) {
    if (delayed != self->delayed)
      cache_timing_change (self->timing, delayed);
    self->delayed = delayed;
    self->delay_limit = -1;
    cache_reader_retime (self);
    cache_reader_look (self);
  }
  cache_reader_unlock (window);
}

// Takes the stream lock, because another thread may have restarted the task.
void
cache_reader_flushed (CacheReader *self)
{
  const gint64 delay = (gint64) cache_reader_settings (self).delay;
  CacheScene *sent = NULL;
  CacheWindow *window;

  GST_PAD_STREAM_LOCK (self->pad);
  window = cache_reader_lock (self);
  if (window) {
    sent = g_steal_pointer (&self->sent);
    self->discont = TRUE;
    self->ended = self->sought = self->announced = FALSE;
    self->delay_limit = -1;
    cache_reader_retime (self);
    cache_reader_shift (self, delay);
  }
  cache_reader_unlock (window);
  GST_PAD_STREAM_UNLOCK (self->pad);
  cache_scene_unref (sent);
}
