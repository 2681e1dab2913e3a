// SPDX-License-Identifier: LGPL-2.1-or-later
// The shards of readers: adding, moving and removing readers.
#include <errno.h>
#include <stdlib.h>

#include "fanout/fanout_private.h"

// Time that the window keeps if all readers are UDP readers that join at the live edge.
#define LIVE_ONLY_NS 1000000000LL

// ---- lists of readers; under the lock ----

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
list_drop (WeirReader *reader)
{
  if (--reader->n_lists == 0)
    weir_reader_leave_stream (reader);
  weir_reader_unref (reader);
}

void
weir_shard_list_unref (WeirFanout *fanout, ReaderList *list)
{
  if (!list || --list->refs > 0)
    return;
  for (size_t i = 0; i < list->n; i++)
    list_drop (list->readers[i]);
  free (list);
}

// Returns the shard's list for changing: a copy if a pass uses the list. NULL: no memory.
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
  weir_shard_list_unref (shard->fanout, old);
  shard->list = list;
  return list;
}

// ---- adding and removing readers ----

// Returns how many readers a new shard takes. Spread passes have smaller shards, as the readers of
// a shard are served at once. Under the lock.
static size_t
shard_size (const WeirFanout *fanout)
{
  return fanout->settings.spread_ns > 0 ? SPREAD_READERS : SHARD_READERS;
}

static uint32_t
wanted_layers (const WeirReader *reader)
{
  return atomic_load_explicit (&reader->wanted_layers, memory_order_relaxed);
}

// Returns a shard of this priority with room. If one shard does not hold all readers, those of the
// same layers (packed) come together, as they share sends; each of LAYER_STREAMS sets can have a
// shard that is not full. Under the lock. NULL: no memory.
static Shard *
shard_with_room (WeirFanout *fanout, unsigned wanted, uint32_t layers)
{
  unsigned priority = wanted < WEIR_PRIORITIES ? wanted : WEIR_PRIORITIES - 1;
  Shard *shard, *found = NULL, *other = NULL;
  size_t n_shards = 0, size = shard_size (fanout);

  for (shard = fanout->shards; shard; shard = shard->next, n_shards++) {
    size_t n = shard->list ? shard->list->n : 0;

    if (shard->priority != priority || n >= size)
      continue;
    if (shard->layers == layers)
      return shard;
    if (n == 0)
      found = shard;
    other = shard;
  }
  if (found)
    found->layers = layers;
  else if (fanout->n_readers < size || n_shards >= LAYER_STREAMS + fanout->n_readers / size)
    found = other;
  if (found)
    return found;

  if (!(shard = calloc (1, sizeof *shard)))
    return NULL;
  shard->fanout = fanout;
  shard->priority = priority;
  shard->layers = layers;
  if (fanout->workers
      && weir_task_init (&shard->task, fanout->workers, priority, weir_shard_run) < 0) {
    free (shard);
    return NULL;
  }
  shard->next = fanout->shards;
  fanout->shards = shard;
  return shard;
}

// Under the lock. `shard` is NULL if there was no memory for one.
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

// Under the lock.
static int
take_from_shard (Shard *shard, WeirReader *reader)
{
  ReaderList *list = shard->list ? list_to_change (shard) : NULL;

  for (size_t i = 0; list && i < list->n; i++) {
    if (list->readers[i] == reader) {
      list->readers[i] = list->readers[--list->n];
      atomic_store (&shard->n_readers, (unsigned) list->n);
      list_drop (reader);
      return 0;
    }
  }
  return list ? -ENOENT : -ENOMEM;
}

// Under the lock.
static int
move_to_shard (WeirReader *reader, Shard *to)
{
  Shard *from = atomic_load (&reader->shard);
  int r = put_in_shard (to, reader);

  if (r == 0 && (r = take_from_shard (from, reader)) < 0) {
    // No pass has used the new shard's list yet, so this cannot fail.
    take_from_shard (to, reader);
    atomic_store (&reader->shard, from);
  }
  return r;
}

void
weir_shard_gather (Shard *shard)
{
  WeirFanout *fanout = shard->fanout;

  shard->has_strays = false;
  if (fanout->n_readers <= shard_size (fanout) || !fanout->layers.on)
    return;
  for (size_t i = shard->list ? shard->list->n : 0; i-- > 0;) {
    WeirReader *reader = shard->list->readers[i];
    WeirLayerSet now =
        unpack_layers (atomic_load_explicit (&reader->current_layers, memory_order_relaxed));
    uint32_t layers = pack_layers (weir_layer_streams_normal (&fanout->layers, now));
    Shard *to;

    if (reader->conn || layers == shard->layers)
      continue;
    to = shard_with_room (fanout, shard->priority, layers);
    if (to && to != shard && move_to_shard (reader, to) == 0)
      to->has_new = true;
  }
}

// Moves the readers of a nearly empty shard to another shard. Under the lock. Returns that shard,
// which the caller must wake so that it serves them; NULL: nothing was moved.
static Shard *
merge (WeirFanout *fanout, Shard *shard)
{
  unsigned n = atomic_load (&shard->n_readers);
  size_t size = shard_size (fanout);
  Shard *to = fanout->shards;

  if (n == 0 || n > size / 4)
    return NULL;
  while (to
         && (to == shard || to->priority != shard->priority || atomic_load (&to->n_readers) == 0
             || atomic_load (&to->n_readers) + n > size / 2))
    to = to->next;
  if (!to)
    return NULL;
  while (shard->list->n > 0 && move_to_shard (shard->list->readers[0], to) == 0)
    ;
  return to;
}

void
weir_fanout_set_bounds (WeirFanout *fanout)
{
  WeirWindowBounds *bounds = &fanout->window.bounds;

  *bounds = fanout->settings.bounds;
  bounds->keep_join = fanout->settings.join_at_keyframe;
  if (!bounds->keep_join && !fanout->settings.keep_window && fanout->n_conns == 0
      && bounds->time_ns > LIVE_ONLY_NS)
    bounds->time_ns = LIVE_ONLY_NS;
}

// A reader's connection has room again, or broke.
static void
on_writable (void *data)
{
  Shard *shard = atomic_load (&((WeirReader *) data)->shard);

  if (shard->fanout->workers)
    weir_task_wake (&shard->task);
}

int
weir_fanout_add (
    WeirFanout *fanout, WeirReader *reader, unsigned priority, const WeirPlan *plan, int64_t now_ns)
{
  int r;

  pthread_mutex_lock (&fanout->lock);
  weir_reader_begin (fanout, reader, plan, now_ns);
  r = put_in_shard (shard_with_room (fanout, priority, wanted_layers (reader)), reader);
  if (r == 0) {
    fanout->n_readers++;
    fanout->n_conns += reader->conn != NULL;
    fanout->n_resending += reader->resends != NULL;
    weir_reader_await_join (fanout, reader);
    weir_fanout_set_bounds (fanout);
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

  atomic_store (&reader->removed, true);
  // A pass may be about to send to it.
  weir_reader_hold (reader);
  reader_release (reader);
  if (reader->conn)
    weir_conn_unwatch (reader->conn, on_writable, reader);
  pthread_mutex_lock (&fanout->lock);
  // Without memory for a shorter list the reader stays in the old one; passes skip it.
  shard = atomic_load (&reader->shard);
  take_from_shard (shard, reader);
  merged = merge (fanout, shard);
  reader->left = weir_reader_time (fanout, reader);
  weir_fanout_trim_without (fanout, reader);
  weir_reader_end_await (fanout, reader);
  fanout->n_readers--;
  fanout->n_conns -= reader->conn != NULL;
  fanout->n_resending -= reader->resends != NULL;
  weir_fanout_set_bounds (fanout);
  if (fanout->n_draining > 0)
    pthread_cond_broadcast (&fanout->passed);
  pthread_mutex_unlock (&fanout->lock);
  if (merged && fanout->workers)
    weir_task_wake (&merged->task);
}

int
weir_fanout_set_priority (WeirFanout *fanout, WeirReader *reader, unsigned priority)
{
  Shard *old;
  int r;

  pthread_mutex_lock (&fanout->lock);
  priority = priority < WEIR_PRIORITIES ? priority : WEIR_PRIORITIES - 1;
  old = atomic_load (&reader->shard);
  r = old->priority == priority
          ? 0
          : move_to_shard (reader, shard_with_room (fanout, priority, wanted_layers (reader)));
  pthread_mutex_unlock (&fanout->lock);
  // The new shard does not know yet when the reader's next packet is due.
  if (r == 0 && fanout->workers)
    weir_task_wake (&atomic_load (&reader->shard)->task);
  return r;
}

void
weir_fanout_unwatch_all (WeirFanout *fanout)
{
  for (Shard *shard = fanout->shards; shard; shard = shard->next) {
    for (size_t i = 0; shard->list && i < shard->list->n; i++) {
      WeirReader *reader = shard->list->readers[i];

      if (reader->conn)
        weir_conn_unwatch (reader->conn, on_writable, reader);
    }
  }
}
