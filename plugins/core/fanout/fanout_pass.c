// SPDX-License-Identifier: LGPL-2.1-or-later
// Passes over the readers of a shard, and when they run.
#include <stdlib.h>
#include <string.h>

#include "fanout/fanout_private.h"

static void
add_sends (WeirSendCounters *sum, WeirSendCounters *n)
{
  sum->sends += n->sends;
  sum->gso_sends += n->gso_sends;
  sum->fallbacks += n->fallbacks;
  sum->blocked += n->blocked;
  sum->triggers += n->triggers;
  sum->clones += n->clones;
  sum->clones_dropped += n->clones_dropped;
  for (size_t i = 0; i < WEIR_SEGMENT_CLASSES; i++)
    sum->segments[i] += n->segments[i];
  memset (n, 0, sizeof *n);
}

// Begins to read the readers from memory, all at once. Otherwise each turn would wait for its own.
static void
prefetch (const ReaderList *list)
{
  for (size_t i = 0; i < list->n; i++) {
    const char *reader = (const char *) list->readers[i];

    __builtin_prefetch (reader, 1);
    for (size_t at = CACHE_LINE; at <= offsetof (WeirReader, join); at += CACHE_LINE)
      __builtin_prefetch (reader + at, 0);
  }
}

// Orders the readers by stream, so that each stream's packets are prepared once. The stream of
// reader `first` comes first.
static void
order_readers (const ReaderList *list, size_t first, Turn *turns)
{
  uintptr_t first_stream = 0, streams[SHARD_READERS];

  for (size_t i = 0; i < list->n; i++) {
    WeirReader *reader = list->readers[first + i < list->n ? first + i : first + i - list->n];
    uintptr_t stream = (uintptr_t) atomic_load_explicit (&reader->stream, memory_order_relaxed);
    size_t at = i;

    if (i == 0)
      first_stream = stream;
    stream -= first_stream; // makes the stream of reader `first` the lowest
    for (; at > 0 && streams[at - 1] > stream; at--) {
      streams[at] = streams[at - 1];
      turns[at] = turns[at - 1];
    }
    streams[at] = stream;
    turns[at] = (Turn) { reader, WEIR_NEVER, true };
  }
}

// Returns when the next packet of one of the readers is due, and notes how many get clones.
static int64_t
end_turns (Shard *shard, const Turn *turns, size_t n)
{
  int64_t next_ns = WEIR_NEVER;
  unsigned n_cloned = 0;

  for (size_t i = 0; i < n; i++) {
    next_ns = turns[i].next_ns < next_ns ? turns[i].next_ns : next_ns;
    n_cloned +=
        atomic_load_explicit (&turns[i].reader->clones, memory_order_relaxed) == WEIR_CLONES_SENT;
  }
  atomic_store_explicit (&shard->n_cloned, n_cloned, memory_order_relaxed);
  return next_ns;
}

// Lets the shards serve the readers that have come from others.
static void
wake_new (WeirFanout *fanout)
{
  Shard *shards;

  pthread_mutex_lock (&fanout->lock);
  shards = fanout->shards;
  pthread_mutex_unlock (&fanout->lock);
  for (Shard *shard = shards; shard; shard = shard->next) {
    bool has_new;

    pthread_mutex_lock (&fanout->lock);
    has_new = shard->has_new;
    shard->has_new = false;
    pthread_mutex_unlock (&fanout->lock);
    if (has_new)
      weir_task_wake (&shard->task);
  }
}

static void
end_pass (Shard *shard, Server *server, ReaderList *list)
{
  WeirFanout *fanout = shard->fanout;
  bool wishes, strays;

  pthread_mutex_lock (&fanout->lock);
  for (size_t i = 0; i < N_LOADS; i++)
    add_sends (&fanout->counters.sends, &server->loads[i].sender.counters);
  weir_shard_list_unref (fanout, list);
  if ((strays = shard->has_strays))
    weir_shard_gather (shard);
  wishes = fanout->layers.n_wishes > 0;
  fanout->n_passes--;
  if (fanout->n_draining > 0 || !fanout->running)
    pthread_cond_broadcast (&fanout->passed);
  pthread_mutex_unlock (&fanout->lock);
  if (strays && fanout->workers)
    wake_new (fanout);
  if (wishes && fanout->workers)
    weir_task_wake (&fanout->flush);
}

static int64_t
pass_over (Shard *shard, Server *server, int64_t now_ns)
{
  WeirFanout *fanout = shard->fanout;
  Pass pass = { .fanout = fanout, .shard = shard, .server = server, .now_ns = now_ns };
  Turn turns[SHARD_READERS];
  int64_t next_ns;
  ReaderList *list;
  size_t first;

  weir_server_init (server, fanout->ops);
  pthread_mutex_lock (&fanout->lock);
  list = shard->list;
  if (!list || list->n == 0 || !fanout->running) {
    pthread_mutex_unlock (&fanout->lock);
    return WEIR_NEVER;
  }
  list->refs++;
  fanout->n_passes++;
  first = shard->next_first++ % list->n;
  pass.head = fanout->window.head;
  pass.tail = fanout->window.tail;
  pass.has_layers = fanout->layers.on;
  pass.is_vp8 = fanout->layers.codec == WEIR_CODEC_VP8;
  pass.is_stacked = has_stacked_layers (fanout);
  pass.settings = fanout->settings;
  pthread_mutex_unlock (&fanout->lock);

  prefetch (list);
  order_readers (list, first, turns);
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < list->n; i++) {
      if (turns[i].more)
        weir_serve_turn (&pass, &turns[i]);
    }
    weir_serve_end_round (&pass);
    for (size_t i = 0; i < list->n; i++)
      more |= turns[i].more;
  }
  next_ns = end_turns (shard, turns, list->n);
  weir_server_clear (server);

  end_pass (shard, server, list);
  return next_ns;
}

int64_t
weir_shard_run (WeirTask *task, void *scratch, int64_t now_ns)
{
  return pass_over ((Shard *) ((char *) task - offsetof (Shard, task)), scratch, now_ns);
}

void
weir_fanout_wake_waiting (WeirFanout *fanout)
{
  Shard *shards;

  pthread_mutex_lock (&fanout->lock);
  shards = fanout->shards;
  pthread_mutex_unlock (&fanout->lock);
  for (Shard *shard = shards; shard; shard = shard->next) {
    if (atomic_exchange (&shard->waiting, false))
      weir_task_wake (&shard->task);
  }
}

void
weir_fanout_serve_all (WeirFanout *fanout, bool here, int64_t now_ns)
{
  Shard *shards;
  void *scratch;
  int64_t n = 0, i = 0, spread_ns;

  if (!fanout->workers)
    return;
  pthread_mutex_lock (&fanout->lock);
  shards = fanout->shards;
  for (Shard *shard = shards; shard; shard = shard->next)
    n += atomic_load_explicit (&shard->n_readers, memory_order_relaxed) > 0;
  spread_ns = fanout->settings.spread_ns;
  if (fanout->n_readers > fanout->settings.inline_readers)
    here = false;
  pthread_mutex_unlock (&fanout->lock);
  scratch = here && n > 0 ? weir_workers_take_scratch (fanout->workers) : NULL;

  // Shards are only prepended, and live as long as the engine.
  for (Shard *shard = shards; shard; shard = shard->next) {
    if (atomic_load_explicit (&shard->n_readers, memory_order_relaxed) == 0)
      continue;
    if (spread_ns > 0)
      weir_task_wake_at (&shard->task, now_ns + spread_ns * i++ / n);
    else if (scratch)
      weir_task_run_here (&shard->task, scratch);
    else
      weir_task_wake (&shard->task);
  }
  if (scratch)
    weir_workers_give_scratch (fanout->workers, scratch);
}

// Makes the streams that readers wait for. Returns whether there were any.
static bool
grant_layers (WeirFanout *fanout)
{
  bool granted;

  pthread_mutex_lock (&fanout->writer);
  granted = weir_layer_streams_grant (fanout);
  pthread_mutex_unlock (&fanout->writer);
  return granted;
}

int64_t
weir_fanout_run (WeirFanout *fanout, int64_t now_ns)
{
  Server *server = calloc (1, sizeof *server);
  int64_t next_ns;

  do {
    next_ns = WEIR_NEVER;
    for (Shard *shard = server ? fanout->shards : NULL; shard; shard = shard->next) {
      int64_t due = pass_over (shard, server, now_ns);

      if (due < next_ns)
        next_ns = due;
    }
  } while (grant_layers (fanout));
  free (server);
  return next_ns;
}
