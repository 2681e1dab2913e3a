// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fanout/fanout.h"

#include <stdlib.h>
#include <string.h>

#include "fanout/fanout_private.h"
#include "run/clock.h"

size_t
weir_fanout_scratch_size (void)
{
  return sizeof (Server);
}

WeirFanout *
weir_fanout_new (WeirWorkers *workers, const WeirSendOps *ops, const WeirFanoutSettings *settings)
{
  WeirFanout *fanout = calloc (1, sizeof *fanout);

  if (!fanout)
    return NULL;
  if (weir_window_init (&fanout->window, settings->bounds, WEIR_CODEC_OPAQUE) < 0
      || (workers && weir_task_init (&fanout->flush, workers, 0, weir_fanout_run_flush) < 0)) {
    weir_window_free (&fanout->window);
    free (fanout);
    return NULL;
  }
  weir_layer_streams_init (&fanout->layers);
  fanout->workers = workers;
  fanout->ops = ops;
  fanout->settings = *settings;
  fanout->left_at = -1;
  pthread_mutex_init (&fanout->writer, NULL);
  pthread_mutex_init (&fanout->lock, NULL);
  weir_cond_init (&fanout->passed);
  weir_fanout_set_bounds (fanout);
  return fanout;
}

void
weir_fanout_free (WeirFanout *fanout)
{
  Shard *shard;

  weir_fanout_unwatch_all (fanout);
  if (fanout->workers)
    weir_task_clear (&fanout->flush);
  while ((shard = fanout->shards)) {
    fanout->shards = shard->next;
    if (fanout->workers)
      weir_task_clear (&shard->task);
    weir_shard_list_unref (fanout, shard->list);
    free (shard);
  }
  weir_layer_streams_free (&fanout->layers);
  weir_window_free (&fanout->window);
  pthread_mutex_destroy (&fanout->writer);
  pthread_mutex_destroy (&fanout->lock);
  pthread_cond_destroy (&fanout->passed);
  free (fanout);
}

void
weir_fanout_set (WeirFanout *fanout, const WeirFanoutSettings *settings)
{
  pthread_mutex_lock (&fanout->writer);
  pthread_mutex_lock (&fanout->lock);
  if (settings->gso != fanout->settings.gso) {
    for (Shard *shard = fanout->shards; shard; shard = shard->next) {
      for (size_t i = 0; shard->list && i < shard->list->n; i++)
        atomic_store (&shard->list->readers[i]->gso_again_ns, 0);
    }
  }
  fanout->settings = *settings;
  weir_fanout_set_bounds (fanout);
  pthread_mutex_unlock (&fanout->lock);
  pthread_mutex_unlock (&fanout->writer);
}

static void
clear_counts (Counts *counts)
{
  atomic_store (&counts->due, 0);
  atomic_store (&counts->packets, 0);
  atomic_store (&counts->bytes, 0);
  for (size_t i = 0; i < WEIR_N_DROPS; i++)
    atomic_store (&counts->dropped[i], 0);
}

static void
clear_reader (WeirReader *reader)
{
  atomic_store (&reader->due, 0);
  atomic_store (&reader->error, 0);
  atomic_store (&reader->gso_error, 0);
  atomic_store (&reader->moved, 0);
  atomic_store (&reader->packets, 0);
  atomic_store (&reader->bytes, 0);
  for (size_t i = 0; i < WEIR_N_DROPS; i++)
    atomic_store (&reader->dropped[i], 0);
}

void
weir_fanout_start (WeirFanout *fanout)
{
  pthread_mutex_lock (&fanout->writer);
  pthread_mutex_lock (&fanout->lock);
  memset (&fanout->counters, 0, sizeof fanout->counters);
  fanout->window.n_opaque = 0;
  atomic_store (&fanout->failed, false);
  atomic_store (&fanout->news, false);
  fanout->told_ns = fanout->news_ns = 0;
  for (Shard *shard = fanout->shards; shard; shard = shard->next) {
    clear_counts (&shard->counts);
    for (size_t i = 0; shard->list && i < shard->list->n; i++)
      clear_reader (shard->list->readers[i]);
  }
  fanout->running = true;
  pthread_mutex_unlock (&fanout->lock);
  pthread_mutex_unlock (&fanout->writer);
}

void
weir_fanout_set_file (WeirFanout *fanout, WeirBlockFile *file)
{
  WeirBlockFile *old = NULL;

  pthread_mutex_lock (&fanout->writer);
  pthread_mutex_lock (&fanout->lock);
  if (fanout->window.file)
    old = weir_block_file_ref (fanout->window.file);
  weir_window_set_file (&fanout->window, file);
  weir_layer_streams_set_file (fanout);
  pthread_mutex_unlock (&fanout->lock);
  pthread_mutex_unlock (&fanout->writer);
  weir_block_file_unref (old);
}

// Drops the packets ahead of a reader. No pass is running.
static void
flush_reader (WeirFanout *fanout, WeirReader *reader)
{
  int64_t cursor = atomic_load (&reader->cursor), head = fanout->window.head;
  uint64_t n = head > cursor ? (uint64_t) (head - cursor) : 0;

  n *= reader_times (reader, &fanout->settings);

  atomic_fetch_add (&reader->due, n);
  atomic_fetch_add (&reader->dropped[WEIR_DROP_FLUSHED], n);
  fanout->counters.due += n;
  fanout->counters.dropped[WEIR_DROP_FLUSHED] += n;
  atomic_store (&reader->cursor, head);
  atomic_store (&reader->joining, false);
  reader->join.rate = 0;
  reader->blocked_since = 0;
  reader->room = NULL;
  reader->next_ns = 0;
}

// Empties the window. Waits for sends in progress.
static void
empty (WeirFanout *fanout, bool goes_on)
{
  Room *rooms;

  pthread_mutex_lock (&fanout->writer);
  weir_fanout_publish (fanout);
  pthread_mutex_lock (&fanout->lock);
  goes_on = goes_on && fanout->running;
  fanout->running = false;
  while (fanout->n_passes > 0)
    pthread_cond_wait (&fanout->passed, &fanout->lock);
  for (Shard *shard = fanout->shards; shard; shard = shard->next) {
    for (size_t i = 0; shard->list && i < shard->list->n; i++)
      flush_reader (fanout, shard->list->readers[i]);
  }
  weir_layer_streams_flush (fanout);
  weir_window_flush (&fanout->window);
  fanout->await_from = fanout->window.head;
  atomic_store (&fanout->join_wanted, false);
  rooms = fanout->rooms;
  fanout->rooms = NULL;
  fanout->running = goes_on;
  pthread_mutex_unlock (&fanout->lock);
  pthread_mutex_unlock (&fanout->writer);
  weir_rooms_free (rooms); // closes the duplicated descriptors, so that the owner's close is final
}

void
weir_fanout_stop (WeirFanout *fanout)
{
  empty (fanout, false);
}

void
weir_fanout_flush (WeirFanout *fanout)
{
  empty (fanout, true);
}

bool
weir_fanout_drain (WeirFanout *fanout, int64_t deadline_ns)
{
  int64_t head;
  bool sent;
  int r = 0;

  pthread_mutex_lock (&fanout->writer);
  fanout->published = false;
  weir_fanout_publish (fanout);
  weir_layer_streams_end_frame (fanout);
  pthread_mutex_unlock (&fanout->writer);
  weir_fanout_serve_all (fanout, false, weir_now_ns ());

  pthread_mutex_lock (&fanout->lock);
  head = fanout->window.head;
  fanout->n_draining++;
  while (!(sent = weir_fanout_slowest (fanout) >= head) && !fanout->interrupted && r == 0)
    r = weir_cond_wait_until (&fanout->passed, &fanout->lock, deadline_ns);
  fanout->n_draining--;
  pthread_mutex_unlock (&fanout->lock);
  return sent;
}

void
weir_fanout_interrupt (WeirFanout *fanout, bool interrupted)
{
  pthread_mutex_lock (&fanout->lock);
  fanout->interrupted = interrupted;
  pthread_cond_broadcast (&fanout->passed);
  pthread_mutex_unlock (&fanout->lock);
}

// ---- counters ----

void
weir_fanout_counters (WeirFanout *fanout, WeirFanoutCounters *counters)
{
  pthread_mutex_lock (&fanout->lock);
  *counters = fanout->counters;
  for (const Shard *shard = fanout->shards; shard; shard = shard->next) {
    unsigned n_cloned = atomic_load_explicit (&shard->n_cloned, memory_order_relaxed);
    unsigned n_readers = atomic_load_explicit (&shard->n_readers, memory_order_relaxed);

    counters->kernel_readers += n_cloned < n_readers ? n_cloned : n_readers;
    counters->due += get_count (&shard->counts.due);
    counters->packets += get_count (&shard->counts.packets);
    counters->bytes += get_count (&shard->counts.bytes);
    for (size_t i = 0; i < WEIR_N_DROPS; i++)
      counters->dropped[i] += get_count (&shard->counts.dropped[i]);
  }
  pthread_mutex_unlock (&fanout->lock);
}

void
weir_fanout_rates (WeirFanout *fanout, WeirRates *rates)
{
  pthread_mutex_lock (&fanout->writer);
  *rates = fanout->layers.input ? fanout->layers.input->rates : (WeirRates) { 0 };
  pthread_mutex_unlock (&fanout->writer);
}

size_t
weir_fanout_limit (WeirFanout *fanout)
{
  size_t limit;

  pthread_mutex_lock (&fanout->lock);
  limit = fanout->window.limit;
  pthread_mutex_unlock (&fanout->lock);
  return limit;
}

size_t
weir_fanout_n_readers (WeirFanout *fanout)
{
  size_t n;

  pthread_mutex_lock (&fanout->lock);
  n = fanout->n_readers;
  pthread_mutex_unlock (&fanout->lock);
  return n;
}
