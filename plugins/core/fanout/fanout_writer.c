// SPDX-License-Identifier: LGPL-2.1-or-later
// The writer: adds incoming packets to the window.
#include "fanout/fanout_private.h"

// Least time between two requests for a keyframe.
#define KEY_PAUSE_NS 1000000000LL
// Least time between two reports of failed sends, or of changed readers.
#define TELL_PAUSE_NS 10000000000LL

int64_t
weir_fanout_slowest (const WeirFanout *fanout)
{
  int64_t slowest = INT64_MAX;

  for (const Shard *shard = fanout->shards; shard; shard = shard->next) {
    for (size_t i = 0; shard->list && i < shard->list->n; i++) {
      const WeirReader *reader = shard->list->readers[i];
      int64_t cursor = atomic_load_explicit (&reader->cursor, memory_order_relaxed);

      if (cursor < slowest && reader_delay (reader) == 0 && !reader_paused (reader)
          && !reader_is (reader, WEIR_READER_CLOSED)
          && !atomic_load_explicit (&reader->removed, memory_order_relaxed))
        slowest = cursor;
    }
  }
  return slowest;
}

void
weir_fanout_publish (WeirFanout *fanout)
{
  WeirWindow *window = &fanout->window;

  fanout->urgent = false;
  if (window->n_staged == 0)
    return;
  pthread_mutex_lock (&fanout->lock);
  if (weir_block_file_was_full (window->file))
    weir_window_make_smaller (window);
  fanout->counters.packets_opaque = window->n_opaque;
  if (fanout->settings.overrun == WEIR_OVERRUN_TAIL_DROP
      && weir_fanout_slowest (fanout) < weir_window_tail_after (window)) {
    fanout->counters.packets_refused += weir_window_drop_stage (window);
  } else if (weir_window_publish (window, &fanout->counters.packets_refused)) {
    fanout->counters.bursts++;
    fanout->published = true;
    if (fanout->n_await_join > 0)
      weir_fanout_look_for_join (fanout);
    weir_fanout_trim (fanout);
  }
  pthread_mutex_unlock (&fanout->lock);
  weir_layer_streams_take (fanout);
}

int64_t
weir_fanout_run_flush (WeirTask *task, void *scratch, int64_t now_ns)
{
  WeirFanout *fanout = (WeirFanout *) ((char *) task - offsetof (WeirFanout, flush));
  int64_t due_ns = WEIR_NEVER;
  bool published;

  (void) scratch;
  pthread_mutex_lock (&fanout->writer);
  fanout->published = false;
  if (fanout->window.n_staged > 0)
    due_ns = fanout->window.staged_ns + fanout->settings.coalesce_ns;
  if (due_ns <= now_ns) {
    weir_fanout_publish (fanout);
    due_ns = WEIR_NEVER;
  }
  published = weir_layer_streams_grant (fanout) || fanout->published;
  fanout->flush_armed = due_ns != WEIR_NEVER;
  pthread_mutex_unlock (&fanout->writer);
  if (published)
    weir_fanout_serve_all (fanout, false, now_ns);
  return due_ns;
}

void
weir_fanout_set_codec (WeirFanout *fanout, WeirCodec codec, uint8_t dependency_id)
{
  pthread_mutex_lock (&fanout->writer);
  weir_layer_streams_set_codec (fanout, codec, dependency_id);
  weir_window_set_codec (&fanout->window, codec);
  pthread_mutex_unlock (&fanout->writer);
}

bool
weir_fanout_begin (WeirFanout *fanout)
{
  bool running;

  pthread_mutex_lock (&fanout->writer);
  pthread_mutex_lock (&fanout->lock);
  running = fanout->running;
  pthread_mutex_unlock (&fanout->lock);
  fanout->published = false;
  if (!running)
    pthread_mutex_unlock (&fanout->writer);
  return running;
}

uint8_t *
weir_fanout_reserve (WeirFanout *fanout, size_t len)
{
  uint8_t *room;

  if (fanout->window.n_staged == WEIR_STAGE_PACKETS)
    weir_fanout_publish (fanout);
  room = weir_window_reserve (&fanout->window, len);
  if (!room) {
    fanout->n_in++;
    fanout->bytes_in += len;
    fanout->n_refused++;
  }
  return room;
}

void
weir_fanout_commit (WeirFanout *fanout, size_t len, int64_t now_ns)
{
  weir_fanout_commit_layer (fanout, len, NULL, now_ns);
}

void
weir_fanout_commit_layer (WeirFanout *fanout, size_t len, const WeirLayer *layer, int64_t now_ns)
{
  fanout->n_in++;
  fanout->bytes_in += len;
  switch (weir_window_stage (&fanout->window, len, layer, now_ns)) {
    case WEIR_STAGE_FRAME:
    case WEIR_STAGE_FULL:
      weir_fanout_publish (fanout);
      break;
    case WEIR_STAGE_URGENT:
      fanout->urgent = true;
      break;
    case WEIR_STAGE_MORE:
      break;
  }
}

void
weir_fanout_end (WeirFanout *fanout, int64_t now_ns)
{
  WeirWindow *window = &fanout->window;
  bool published, done;
  int64_t due_ns = WEIR_NEVER;

  if (fanout->urgent || fanout->settings.coalesce_ns == 0)
    weir_fanout_publish (fanout);
  if (window->n_staged > 0 && !fanout->flush_armed && fanout->workers) {
    fanout->flush_armed = true;
    due_ns = window->staged_ns + fanout->settings.coalesce_ns;
  }
  done = window->n_staged == 0 && fanout->flush_armed;
  if (done)
    fanout->flush_armed = false;
  pthread_mutex_lock (&fanout->lock);
  fanout->counters.packets_in += fanout->n_in;
  fanout->counters.bytes_in += fanout->bytes_in;
  fanout->counters.packets_refused += fanout->n_refused;
  pthread_mutex_unlock (&fanout->lock);
  fanout->n_in = fanout->bytes_in = fanout->n_refused = 0;
  published = fanout->published;
  pthread_mutex_unlock (&fanout->writer);

  if (due_ns != WEIR_NEVER)
    weir_task_wake_at (&fanout->flush, due_ns);
  if (done)
    weir_task_cancel (&fanout->flush);
  if (published)
    weir_fanout_serve_all (fanout, true, now_ns);
}

bool
weir_fanout_wants_key (WeirFanout *fanout, int64_t now_ns)
{
  Layers *layers = &fanout->layers;

  if ((!atomic_load_explicit (&layers->key_wanted, memory_order_relaxed)
          && !atomic_load_explicit (&fanout->join_wanted, memory_order_relaxed))
      || (layers->key_asked_ns && now_ns - layers->key_asked_ns < KEY_PAUSE_NS))
    return false;
  atomic_store_explicit (&layers->key_wanted, false, memory_order_relaxed);
  atomic_store_explicit (&fanout->join_wanted, false, memory_order_relaxed);
  layers->key_asked_ns = now_ns;
  return true;
}

static bool
is_report_due (atomic_bool *flag, int64_t *told_ns, int64_t now_ns)
{
  if (!atomic_load_explicit (flag, memory_order_relaxed)
      || (*told_ns && now_ns - *told_ns < TELL_PAUSE_NS))
    return false;
  *told_ns = now_ns;
  return atomic_exchange_explicit (flag, false, memory_order_acquire);
}

bool
weir_fanout_has_failed (WeirFanout *fanout, int64_t now_ns)
{
  return is_report_due (&fanout->failed, &fanout->told_ns, now_ns);
}

bool
weir_fanout_has_news (WeirFanout *fanout, int64_t now_ns)
{
  return is_report_due (&fanout->news, &fanout->news_ns, now_ns);
}
