// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fanout/fanout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fanout/fanout_private.h"

// What is kept where nobody could ask for more: for UDP readers that join at the live edge.
#define LIVE_ONLY_NS 1000000000LL
// Who waits for a key picture asks for one so often.
#define KEY_PAUSE_NS 1000000000LL
// Sends that fail are told of so often.
#define TELL_PAUSE_NS 10000000000LL

const char *
weir_reader_state_name (WeirReaderState state)
{
  static const char *const names[] = {
    [WEIR_READER_OK] = "ok",
    [WEIR_READER_NO_UPPER_LAYERS] = "no-upper-layers",
    [WEIR_READER_REFERENCES] = "references",
    [WEIR_READER_KEYFRAMES] = "keyframes",
    [WEIR_READER_CLOSED] = "closed",
  };

  return (unsigned) state <= WEIR_READER_CLOSED ? names[state] : "unknown";
}

// ---- readers ----

static WeirReader *
reader_new (void)
{
  WeirReader *reader = calloc (1, sizeof *reader);

  if (!reader)
    return NULL;
  atomic_init (&reader->refs, 1);
  atomic_init (&reader->times, 1);
  atomic_init (&reader->wanted_layers, ALL_LAYERS);
  atomic_init (&reader->current_layers, ALL_LAYERS);
  reader->steady = true;
  reader->steady_layers = ALL_LAYERS;
  reader->fd = -1;
  return reader;
}

WeirReader *
weir_reader_new_udp (void)
{
  return reader_new ();
}

WeirReader *
weir_reader_new_conn (WeirConn *conn, WeirFraming framing, uint8_t channel)
{
  WeirReader *reader = reader_new ();

  if (!reader)
    return NULL;
  reader->conn = weir_conn_ref (conn);
  reader->framing = framing;
  reader->channel = channel;
  return reader;
}

WeirReader *
weir_reader_ref (WeirReader *reader)
{
  atomic_fetch_add_explicit (&reader->refs, 1, memory_order_relaxed);
  return reader;
}

void
weir_reader_unref (WeirReader *reader)
{
  if (atomic_fetch_sub_explicit (&reader->refs, 1, memory_order_acq_rel) != 1)
    return;
  if (reader->conn)
    weir_conn_unref (reader->conn);
  free (reader);
}

void
weir_reader_set_route (WeirReader *reader, int fd, const WeirAddress *address)
{
  reader->fd = fd;
  reader->address = *address;
}

void
weir_reader_set_times (WeirReader *reader, unsigned times)
{
  atomic_store_explicit (&reader->times, times, memory_order_relaxed);
}

void
weir_reader_set_layers (WeirReader *reader, WeirLayerSet wanted)
{
  atomic_store_explicit (&reader->wanted_layers, pack_layers (wanted), memory_order_relaxed);
}

WeirLayerSet
weir_reader_get_layers (const WeirReader *reader)
{
  return unpack_layers (atomic_load_explicit (&reader->wanted_layers, memory_order_relaxed));
}

void
weir_reader_set_delay (WeirReader *reader, int64_t delay_ns)
{
  atomic_store_explicit (&reader->delay_ns, delay_ns, memory_order_relaxed);
}

// ---- lists of readers. With the lock held. ----

static void
list_put (ReaderList *list, WeirReader *reader)
{
  list->readers[list->n++] = weir_reader_ref (reader);
  reader->n_lists++;
}

void
weir_reader_leave_stream (WeirReader *reader)
{
  LayerStream *stream = atomic_load_explicit (&reader->stream, memory_order_relaxed);

  if (stream)
    stream->n_readers--;
  atomic_store_explicit (&reader->stream, NULL, memory_order_relaxed);
  reader->steady = false;
}

static void
list_drop (WeirFanout *fanout, WeirReader *reader)
{
  if (--reader->n_lists == 0)
    weir_reader_leave_stream (reader);
  weir_reader_unref (reader);
}

static void
list_unref (WeirFanout *fanout, ReaderList *list)
{
  if (!list || --list->refs > 0)
    return;
  for (size_t i = 0; i < list->n; i++)
    list_drop (fanout, list->readers[i]);
  free (list);
}

// The shard's list, to be changed: a new one if a pass goes over the old one. NULL: no memory.
static ReaderList *
list_to_change (Shard *shard)
{
  ReaderList *old = shard->list, *list;

  if (old && old->refs == 1)
    return old;
  if (!(list = malloc (sizeof *list)))
    return NULL;
  list->refs = 1;
  list->n = 0;
  for (size_t i = 0; old && i < old->n; i++)
    list_put (list, old->readers[i]);
  list_unref (shard->fanout, old);
  shard->list = list;
  return list;
}

// ---- a pass ----

static void
add_sends (WeirSendCounters *sum, WeirSendCounters *n)
{
  sum->sends += n->sends;
  sum->gso_sends += n->gso_sends;
  sum->fallbacks += n->fallbacks;
  sum->blocked += n->blocked;
  for (size_t i = 0; i < WEIR_SEGMENT_CLASSES; i++)
    sum->segments[i] += n->segments[i];
  memset (n, 0, sizeof *n);
}

// Readers of one stream follow each other, so that its packets are laid out once. Reader `first`
// begins, with those of its stream.
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
    stream -= first_stream; // the least of all is that one's
    for (; at > 0 && streams[at - 1] > stream; at--) {
      streams[at] = streams[at - 1];
      turns[at] = turns[at - 1];
    }
    streams[at] = stream;
    turns[at] = (Turn) { reader, WEIR_NEVER, true };
  }
}

static int64_t
pass_over (Shard *shard, Server *server, int64_t now_ns)
{
  WeirFanout *fanout = shard->fanout;
  Pass pass = { .fanout = fanout, .shard = shard, .server = server, .now_ns = now_ns };
  Turn turns[SHARD_READERS];
  int64_t next_ns = WEIR_NEVER;
  ReaderList *list;
  bool wishes;
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
  pass.is_stacked = fanout->layers.top.spatial > 0 || fanout->layers.top.quality > 0;
  pass.settings = fanout->settings;
  pthread_mutex_unlock (&fanout->lock);

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
  for (size_t i = 0; i < list->n; i++)
    next_ns = turns[i].next_ns < next_ns ? turns[i].next_ns : next_ns;
  weir_server_clear (server);

  pthread_mutex_lock (&fanout->lock);
  for (size_t i = 0; i < 2; i++)
    add_sends (&fanout->counters.sends, &server->loads[i].sender.counters);
  list_unref (fanout, list);
  wishes = fanout->layers.n_wishes > 0;
  fanout->n_passes--;
  if (fanout->n_draining > 0 || !fanout->running)
    pthread_cond_broadcast (&fanout->passed);
  pthread_mutex_unlock (&fanout->lock);
  if (wishes && fanout->workers)
    weir_task_wake (&fanout->flush);
  return next_ns;
}

static int64_t
run_shard (WeirTask *task, void *scratch, int64_t now_ns)
{
  return pass_over ((Shard *) ((char *) task - offsetof (Shard, task)), scratch, now_ns);
}

// A reader's connection has room again, or broke.
static void
on_writable (void *data)
{
  Shard *shard = atomic_load (&((WeirReader *) data)->shard);

  if (shard->fanout->workers)
    weir_task_wake (&shard->task);
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

// Has all shards served: here, if there are few readers and `here` is somewhere to work; else by
// the workers, one after the other where passes are spread.
static void
serve_all (WeirFanout *fanout, void *here, int64_t now_ns)
{
  Shard *shards;
  int64_t n = 0, i = 0, spread_ns;

  if (!fanout->workers)
    return;
  pthread_mutex_lock (&fanout->lock);
  shards = fanout->shards;
  for (Shard *shard = shards; shard; shard = shard->next)
    n += atomic_load_explicit (&shard->n_readers, memory_order_relaxed) > 0;
  spread_ns = fanout->settings.spread_ns;
  if (fanout->n_readers > fanout->settings.inline_readers)
    here = NULL;
  pthread_mutex_unlock (&fanout->lock);

  // Shards are only ever put in front, and stay for as long as the engine.
  for (Shard *shard = shards; shard; shard = shard->next) {
    if (atomic_load_explicit (&shard->n_readers, memory_order_relaxed) == 0)
      continue;
    if (spread_ns > 0)
      weir_task_wake_at (&shard->task, now_ns + spread_ns * i++ / n);
    else if (here)
      weir_task_run_here (&shard->task, here);
    else
      weir_task_wake (&shard->task);
  }
}

// Makes the streams of layers that readers wait for. True if there were any.
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
  int64_t next_ns;

  do {
    next_ns = WEIR_NEVER;
    for (Shard *shard = fanout->shards; shard; shard = shard->next) {
      int64_t due = pass_over (shard, &fanout->here, now_ns);

      if (due < next_ns)
        next_ns = due;
    }
  } while (grant_layers (fanout));
  return next_ns;
}

// ---- the writer ----

// Where the slowest reader at the live edge is. With the lock held.
static int64_t
slowest (const WeirFanout *fanout)
{
  int64_t slowest = INT64_MAX;

  for (const Shard *shard = fanout->shards; shard; shard = shard->next) {
    for (size_t i = 0; shard->list && i < shard->list->n; i++) {
      const WeirReader *reader = shard->list->readers[i];
      int64_t cursor = atomic_load_explicit (&reader->cursor, memory_order_relaxed);

      if (cursor < slowest && reader_delay (reader) == 0 && !reader_paused (reader)
          && !reader_is (reader, WEIR_READER_CLOSED)
          && !atomic_load_explicit (&reader->gone, memory_order_relaxed))
        slowest = cursor;
    }
  }
  return slowest;
}

// With the writer's lock held.
static void
publish_stage (WeirFanout *fanout)
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
      && slowest (fanout) < weir_window_tail_after (window)) {
    fanout->counters.packets_refused += weir_window_drop_stage (window);
  } else if (weir_window_publish (window, &fanout->counters.packets_refused)) {
    fanout->counters.bursts++;
    fanout->published = true;
  }
  pthread_mutex_unlock (&fanout->lock);
  weir_layer_streams_take (fanout);
}

// Publishes what has waited long enough for the rest of its frame.
static int64_t
run_flush (WeirTask *task, void *scratch, int64_t now_ns)
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
    publish_stage (fanout);
    due_ns = WEIR_NEVER;
  }
  published = weir_layer_streams_grant (fanout) || fanout->published;
  fanout->flush_armed = due_ns != WEIR_NEVER;
  pthread_mutex_unlock (&fanout->writer);
  if (published)
    serve_all (fanout, NULL, now_ns);
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
  bool wanted;

  pthread_mutex_lock (&fanout->writer);
  pthread_mutex_lock (&fanout->lock);
  wanted = fanout->running
           && (fanout->n_readers > 0 || fanout->settings.join_at_keyframe
               || fanout->settings.keep_window);
  pthread_mutex_unlock (&fanout->lock);
  fanout->published = false;
  if (!wanted)
    pthread_mutex_unlock (&fanout->writer);
  return wanted;
}

uint8_t *
weir_fanout_reserve (WeirFanout *fanout, size_t len)
{
  uint8_t *room;

  if (fanout->window.n_staged == WEIR_STAGE_PACKETS)
    publish_stage (fanout);
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
      publish_stage (fanout);
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
  bool published;
  int64_t due_ns = WEIR_NEVER;

  if (fanout->urgent || fanout->settings.coalesce_ns == 0)
    publish_stage (fanout);
  if (window->n_staged > 0 && !fanout->flush_armed && fanout->workers) {
    fanout->flush_armed = true;
    due_ns = window->staged_ns + fanout->settings.coalesce_ns;
  }
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
  if (published)
    serve_all (fanout, &fanout->here, now_ns);
}

bool
weir_fanout_wants_key (WeirFanout *fanout, int64_t now_ns)
{
  Layers *layers = &fanout->layers;

  if (!atomic_load_explicit (&layers->key_wanted, memory_order_relaxed)
      || (layers->key_asked_ns && now_ns - layers->key_asked_ns < KEY_PAUSE_NS))
    return false;
  atomic_store_explicit (&layers->key_wanted, false, memory_order_relaxed);
  layers->key_asked_ns = now_ns;
  return true;
}

bool
weir_fanout_has_failed (WeirFanout *fanout, int64_t now_ns)
{
  if (!atomic_load_explicit (&fanout->failed, memory_order_relaxed)
      || (fanout->told_ns && now_ns - fanout->told_ns < TELL_PAUSE_NS))
    return false;
  fanout->told_ns = now_ns;
  return atomic_exchange_explicit (&fanout->failed, false, memory_order_acquire);
}

// ---- who comes and goes ----

// With the lock held. NULL: no memory.
static Shard *
shard_with_room (WeirFanout *fanout, unsigned wanted)
{
  unsigned class = wanted < WEIR_CLASSES ? wanted : WEIR_CLASSES - 1;
  Shard *shard = fanout->open[class];

  if (shard && (!shard->list || shard->list->n < SHARD_READERS))
    return shard;
  for (shard = fanout->shards; shard; shard = shard->next) {
    if (shard->class == class && (!shard->list || shard->list->n < SHARD_READERS))
      return fanout->open[class] = shard;
  }

  if (!(shard = calloc (1, sizeof *shard)))
    return NULL;
  shard->fanout = fanout;
  shard->class = class;
  if (fanout->workers && weir_task_init (&shard->task, fanout->workers, class, run_shard) < 0) {
    free (shard);
    return NULL;
  }
  shard->next = fanout->shards;
  fanout->shards = shard;
  return fanout->open[class] = shard;
}

// With the lock held. `shard` NULL: there is no memory for one.
static int
put_in_shard (Shard *shard, WeirReader *reader)
{
  ReaderList *list = shard ? list_to_change (shard) : NULL;

  if (!list)
    return -ENOMEM;
  list_put (list, reader);
  atomic_store (&shard->n_readers, (unsigned) list->n);
  atomic_store (&reader->shard, shard);
  return 0;
}

// With the lock held.
static int
take_from_shard (Shard *shard, WeirReader *reader)
{
  ReaderList *list = shard->list ? list_to_change (shard) : NULL;

  for (size_t i = 0; list && i < list->n; i++) {
    if (list->readers[i] == reader) {
      list->readers[i] = list->readers[--list->n];
      atomic_store (&shard->n_readers, (unsigned) list->n);
      list_drop (shard->fanout, reader);
      shard->fanout->open[shard->class] = shard;
      return 0;
    }
  }
  return list ? -ENOENT : -ENOMEM;
}

// With the lock held.
static int
move_to_shard (WeirReader *reader, Shard *to)
{
  Shard *from = atomic_load (&reader->shard);
  int r = put_in_shard (to, reader);

  if (r == 0 && (r = take_from_shard (from, reader)) < 0) {
    // No pass has seen it in the new shard, whose list is therefore its own: this can't fail.
    take_from_shard (to, reader);
    atomic_store (&reader->shard, from);
  }
  return r;
}

// Where few readers are left in a shard, they go to another with few. With the lock held. Gives
// that one, which does not know yet what they wait for; NULL: they stay.
static Shard *
merge (WeirFanout *fanout, Shard *shard)
{
  unsigned n = atomic_load (&shard->n_readers);
  Shard *to = fanout->shards;

  if (n == 0 || n > SHARD_READERS / 4)
    return NULL;
  while (to
         && (to == shard || to->class != shard->class || atomic_load (&to->n_readers) == 0
             || atomic_load (&to->n_readers) + n > SHARD_READERS / 2))
    to = to->next;
  if (!to)
    return NULL;
  while (shard->list->n > 0 && move_to_shard (shard->list->readers[0], to) == 0)
    ;
  fanout->open[shard->class] = to;
  return to;
}

// What is kept: all that the settings say only if somebody can ask for it. With the lock held.
static void
set_bounds (WeirFanout *fanout)
{
  WeirWindowBounds *bounds = &fanout->window.bounds;

  *bounds = fanout->settings.bounds;
  bounds->keep_join = fanout->settings.join_at_keyframe;
  if (!bounds->keep_join && !fanout->settings.keep_window && fanout->n_conns == 0
      && bounds->time_ns > LIVE_ONLY_NS)
    bounds->time_ns = LIVE_ONLY_NS;
}

int
weir_fanout_add (
    WeirFanout *fanout, WeirReader *reader, unsigned class, const WeirPlan *plan, int64_t now_ns)
{
  int r;

  pthread_mutex_lock (&fanout->lock);
  weir_places_put (fanout, reader, plan, now_ns);
  r = put_in_shard (shard_with_room (fanout, class), reader);
  if (r == 0) {
    fanout->n_readers++;
    fanout->n_conns += reader->conn != NULL;
    set_bounds (fanout);
  }
  pthread_mutex_unlock (&fanout->lock);
  if (r < 0)
    return r;
  if (reader->conn && !weir_conn_watch (reader->conn, on_writable, reader)) {
    weir_fanout_remove (fanout, reader);
    return -ENOMEM;
  }
  if (fanout->workers)
    weir_task_wake (&atomic_load (&reader->shard)->task);
  return 0;
}

void
weir_fanout_remove (WeirFanout *fanout, WeirReader *reader)
{
  Shard *shard, *merged;

  atomic_store (&reader->gone, true);
  // A pass may be about to send to it.
  weir_reader_hold (reader);
  reader_let_go (reader);
  if (reader->conn)
    weir_conn_unwatch (reader->conn, on_writable, reader);
  pthread_mutex_lock (&fanout->lock);
  // Without memory for a shorter list it stays in the old one, which passes over it.
  shard = atomic_load (&reader->shard);
  take_from_shard (shard, reader);
  merged = merge (fanout, shard);
  fanout->n_readers--;
  fanout->n_conns -= reader->conn != NULL;
  set_bounds (fanout);
  if (fanout->n_draining > 0)
    pthread_cond_broadcast (&fanout->passed);
  pthread_mutex_unlock (&fanout->lock);
  if (merged && fanout->workers)
    weir_task_wake (&merged->task);
}

int
weir_fanout_set_class (WeirFanout *fanout, WeirReader *reader, unsigned class)
{
  Shard *old;
  int r;

  pthread_mutex_lock (&fanout->lock);
  class = class < WEIR_CLASSES ? class : WEIR_CLASSES - 1;
  old = atomic_load (&reader->shard);
  r = old->class == class ? 0 : move_to_shard (reader, shard_with_room (fanout, class));
  pthread_mutex_unlock (&fanout->lock);
  // What it waits for, the new shard does not know yet.
  if (r == 0 && fanout->workers)
    weir_task_wake (&atomic_load (&reader->shard)->task);
  return r;
}

// ---- as a whole ----

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
      || (workers && weir_task_init (&fanout->flush, workers, 0, run_flush) < 0)) {
    weir_window_free (&fanout->window);
    free (fanout);
    return NULL;
  }
  weir_layer_streams_init (&fanout->layers);
  fanout->workers = workers;
  fanout->ops = ops;
  fanout->settings = *settings;
  pthread_mutex_init (&fanout->writer, NULL);
  pthread_mutex_init (&fanout->lock, NULL);
  weir_cond_init (&fanout->passed);
  set_bounds (fanout);
  return fanout;
}

static void
unwatch_all (WeirFanout *fanout)
{
  for (Shard *shard = fanout->shards; shard; shard = shard->next) {
    for (size_t i = 0; shard->list && i < shard->list->n; i++) {
      WeirReader *reader = shard->list->readers[i];

      if (reader->conn)
        weir_conn_unwatch (reader->conn, on_writable, reader);
    }
  }
}

void
weir_fanout_free (WeirFanout *fanout)
{
  Shard *shard;

  unwatch_all (fanout);
  if (fanout->workers)
    weir_task_clear (&fanout->flush);
  while ((shard = fanout->shards)) {
    fanout->shards = shard->next;
    if (fanout->workers)
      weir_task_clear (&shard->task);
    list_unref (fanout, shard->list);
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
  set_bounds (fanout);
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
  fanout->told_ns = 0;
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

// Nothing runs: what the reader has still before it is thrown away.
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

void
weir_fanout_stop (WeirFanout *fanout)
{
  Room *rooms;

  pthread_mutex_lock (&fanout->writer);
  publish_stage (fanout);
  pthread_mutex_lock (&fanout->lock);
  fanout->running = false;
  while (fanout->n_passes > 0)
    pthread_cond_wait (&fanout->passed, &fanout->lock);
  for (Shard *shard = fanout->shards; shard; shard = shard->next) {
    for (size_t i = 0; shard->list && i < shard->list->n; i++)
      flush_reader (fanout, shard->list->readers[i]);
  }
  weir_layer_streams_flush (fanout);
  weir_window_flush (&fanout->window);
  rooms = fanout->rooms;
  fanout->rooms = NULL;
  pthread_mutex_unlock (&fanout->lock);
  pthread_mutex_unlock (&fanout->writer);
  weir_rooms_free (rooms); // so that whoever closes a socket has closed it
}

bool
weir_fanout_drain (WeirFanout *fanout, int64_t deadline_ns)
{
  int64_t head;
  bool sent;
  int r = 0;

  pthread_mutex_lock (&fanout->writer);
  fanout->published = false;
  publish_stage (fanout);
  weir_layer_streams_end_frame (fanout);
  pthread_mutex_unlock (&fanout->writer);
  serve_all (fanout, NULL, weir_now_ns ());

  pthread_mutex_lock (&fanout->lock);
  head = fanout->window.head;
  fanout->n_draining++;
  while (!(sent = slowest (fanout) >= head) && !fanout->interrupted && r == 0)
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

// ---- what is counted ----

static uint64_t
get_count (const _Atomic uint64_t *counter)
{
  return atomic_load_explicit (counter, memory_order_relaxed);
}

void
weir_fanout_counters (WeirFanout *fanout, WeirFanoutCounters *counters)
{
  pthread_mutex_lock (&fanout->lock);
  *counters = fanout->counters;
  for (const Shard *shard = fanout->shards; shard; shard = shard->next) {
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
  *rates = fanout->layers.rates;
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

// One that it will take as soon as a frame allows it is as good as taken.
static WeirReaderState
reader_state (const WeirReader *reader)
{
  int state = atomic_load_explicit (&reader->state, memory_order_relaxed);
  int wanted = atomic_load_explicit (&reader->wanted, memory_order_relaxed);

  return (WeirReaderState) (wanted > state ? wanted : state);
}

int
weir_reader_take_error (WeirReader *reader)
{
  return atomic_exchange_explicit (&reader->error, 0, memory_order_relaxed);
}

void
weir_reader_counters (
    WeirFanout *fanout, WeirReader *reader, int64_t now_ns, WeirReaderCounters *counters)
{
  const WeirWindow *window = &fanout->window;
  int64_t cursor, paused_ns;

  pthread_mutex_lock (&fanout->lock);
  paused_ns = reader_paused (reader);
  cursor = atomic_load_explicit (&reader->cursor, memory_order_relaxed);
  *counters = (WeirReaderCounters) {
    .due = get_count (&reader->due),
    .packets = get_count (&reader->packets),
    .bytes = get_count (&reader->bytes),
    .state = reader_state (reader),
    .class = atomic_load (&reader->shard) ? atomic_load (&reader->shard)->class : 0,
    .catching_up = reader_joining (reader),
    .delay_ns = reader_delay (reader) + (paused_ns ? now_ns - paused_ns : 0),
    .paused = paused_ns != 0,
    .moved = atomic_load_explicit (&reader->moved, memory_order_relaxed),
    .wanted_layers =
        unpack_layers (atomic_load_explicit (&reader->wanted_layers, memory_order_relaxed)),
    .current_layers =
        unpack_layers (atomic_load_explicit (&reader->current_layers, memory_order_relaxed)),
  };
  for (size_t i = 0; i < WEIR_N_DROPS; i++)
    counters->dropped[i] = get_count (&reader->dropped[i]);
  counters->lag_packets = weir_places_lag (fanout, reader, now_ns);
  if (counters->lag_packets > 0) {
    int64_t at = cursor < window->tail ? window->tail : cursor;

    counters->lag_ns = now_ns - counters->delay_ns - weir_window_at (window, at)->arrival_ns;
  }
  pthread_mutex_unlock (&fanout->lock);
}
