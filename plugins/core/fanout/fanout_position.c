// SPDX-License-Identifier: LGPL-2.1-or-later
// Moves readers: adds them at a plan's position, changes their delay, pauses and resumes them.
#include <errno.h>
#include <sched.h>

#include "fanout/fanout_private.h"

// ---- a reader's position ----

static void
end_join (WeirReader *reader)
{
  reader->join = (WeirJoin) { 0 };
  atomic_store_explicit (&reader->joining, false, memory_order_relaxed);
}

static void
begin_at (WeirFanout *fanout, WeirReader *reader, const WeirPlan *plan, int64_t now_ns)
{
  const WeirWindow *window = &fanout->window;
  const WeirPacket *rtp;
  int64_t came_ns;

  atomic_store_explicit (&reader->cursor, plan->position, memory_order_relaxed);
  atomic_store_explicit (&reader->delay_ns, plan->delay_ns, memory_order_relaxed);
  reader->time_ahead = plan->time_ahead + reader->splice_ahead;
  reader->skip_to = plan->skip_to;
  reader->next_ns = reader->blocked_since = reader->well_since = 0;
  end_join (reader);
  if (plan->spliced || plan->position == window->head
      || (plan->delay_ns == 0 && plan->position == weir_window_live (window)))
    return;
  rtp = weir_window_next_rtp (window, plan->position);
  came_ns = weir_window_at (window, plan->position)->arrival_ns + plan->delay_ns;
  if (plan->delay_ns > 0 && came_ns >= now_ns)
    return;
  reader->join = (WeirJoin) {
    .begun_ns = now_ns,
    .from_arrival = came_ns,
    .from_time = rtp ? rtp->rtp_time : 0,
    .live_time = plan->live_time,
    .rate = fanout->settings.catch_up_rate,
    .compress = fanout->settings.catch_up_live && rtp,
  };
  atomic_store_explicit (&reader->joining, true, memory_order_relaxed);
}

static bool
is_unicast (const WeirReader *reader)
{
  return reader->conn || !weir_address_is_multicast (&reader->address);
}

// Returns the position after the last packet due to the reader.
static int64_t
due_end (const WeirFanout *fanout, const WeirReader *reader, int64_t now_ns)
{
  int64_t delay_ns = reader_delay (reader);

  if (reader_paused (reader))
    return atomic_load_explicit (&reader->cursor, memory_order_relaxed);
  return delay_ns == 0 ? fanout->window.head
                       : weir_window_after (&fanout->window, now_ns - delay_ns);
}

uint64_t
weir_reader_lag (const WeirFanout *fanout, const WeirReader *reader, int64_t now_ns)
{
  int64_t end = due_end (fanout, reader, now_ns);
  int64_t cursor = atomic_load_explicit (&reader->cursor, memory_order_relaxed);

  return end > cursor ? (uint64_t) (end - cursor) : 0;
}

int64_t
weir_reader_target (const WeirFanout *fanout, const WeirReader *reader, int64_t now_ns)
{
  return weir_window_edge (&fanout->window, due_end (fanout, reader, now_ns));
}

int64_t
weir_reader_move_on (const WeirFanout *fanout, WeirReader *reader, int64_t now_ns)
{
  int64_t delay_ns = reader_delay (reader), paused_ns = reader_paused (reader);
  bool behind = delay_ns > 0 || paused_ns;
  int64_t position = weir_overrun_position (fanout, behind), age_ns;

  atomic_fetch_add_explicit (&reader->moved, 1, memory_order_relaxed);
  if (!behind || position == fanout->window.head)
    return position;
  // The delay shrinks by the time lost. `time_ahead` stays, so the timestamps show the loss.
  age_ns =
      (paused_ns ? paused_ns : now_ns) - weir_window_at (&fanout->window, position)->arrival_ns;
  if (age_ns < delay_ns) {
    atomic_store_explicit (&reader->delay_ns, age_ns, memory_order_relaxed);
    end_join (reader);
  }
  return position;
}

// ---- waiting for a join point ----

void
weir_reader_await_join (WeirFanout *fanout, WeirReader *reader)
{
  if (!fanout->settings.join_at_keyframe || !is_unicast (reader)
      || fanout->window.last_join != WEIR_NO_POSITION)
    return;
  reader->awaits_join = true;
  fanout->n_await_join++;
  fanout->await_from = atomic_load_explicit (&reader->cursor, memory_order_relaxed);
}

void
weir_reader_end_await (WeirFanout *fanout, WeirReader *reader)
{
  if (!reader->awaits_join)
    return;
  reader->awaits_join = false;
  if (--fanout->n_await_join == 0)
    atomic_store_explicit (&fanout->join_wanted, false, memory_order_relaxed);
}

// Requests a keyframe only after the reader's first frame, which may be a keyframe itself.
void
weir_fanout_look_for_join (WeirFanout *fanout)
{
  WeirCodec codec = fanout->layers.codec;

  if (fanout->window.last_join == WEIR_NO_POSITION) {
    if (codec != WEIR_CODEC_OPAQUE && fanout->window.frame_start > fanout->await_from)
      atomic_store_explicit (&fanout->join_wanted, true, memory_order_relaxed);
    return;
  }
  for (Shard *shard = fanout->shards; shard; shard = shard->next) {
    for (size_t i = 0; shard->list && i < shard->list->n; i++)
      weir_reader_end_await (fanout, shard->list->readers[i]);
  }
}

// ---- moving a reader ----

void
weir_reader_hold (WeirReader *reader)
{
  while (atomic_flag_test_and_set_explicit (&reader->busy, memory_order_acquire))
    sched_yield ();
}

static void
release_and_wake (WeirFanout *fanout, WeirReader *reader)
{
  reader_release (reader);
  if (fanout->workers)
    weir_task_wake (&atomic_load (&reader->shard)->task);
}

// Finds the sequence number of the reader's next packet. Returns false if it is not known.
static bool
find_next_seq (const WeirFanout *fanout, const WeirReader *reader, uint16_t *seq)
{
  const LayerStream *stream = atomic_load_explicit (&reader->stream, memory_order_relaxed);
  int64_t cursor = atomic_load_explicit (&reader->cursor, memory_order_relaxed);
  const WeirWindow *window = stream ? &stream->window : &fanout->window;
  int64_t at = stream ? weir_window_find (window, cursor) : cursor;
  bool known;

  if (stream && reader->past_extra && at < window->head
      && weir_window_at (window, at)->flags & WEIR_PACKET_EXTRA)
    at++;
  known = weir_window_seq_at (window, at, seq);
  *seq = (uint16_t) (*seq + reader->seq_delta);
  if (reader->is_protected && !reader->numbered)
    *seq = reader->protect.next_seq (reader->protect.data, *seq);
  return known;
}

static void
describe_next (const WeirFanout *fanout, const WeirReader *reader, int64_t now_ns, WeirPlan *plan)
{
  const WeirWindow *window = &fanout->window;
  int64_t cursor = atomic_load_explicit (&reader->cursor, memory_order_relaxed);
  const WeirPacket *packet;

  *plan = (WeirPlan) {
    .position = cursor,
    .made_ns = now_ns,
    .delay_ns = reader_delay (reader),
    .time_ahead = reader->time_ahead,
    .paused_ns = reader_paused (reader),
  };
  plan->known = find_next_seq (fanout, reader, &plan->seq);
  if (cursor >= window->tail && (packet = weir_window_next_rtp (window, cursor))) {
    plan->live_time = packet->rtp_time;
    if (reader->join.rate > 0 && reader->join.compress)
      plan->live_time = weir_join_time (&reader->join, plan->live_time);
    plan->rtp_time = (uint32_t) (plan->live_time + reader_ahead (reader, packet->rtp_time));
    plan->rtp_time_known = true;
  }
}

void
weir_reader_begin (WeirFanout *fanout, WeirReader *reader, const WeirPlan *plan, int64_t now_ns)
{
  // A multicast group cannot choose its position.
  bool unicast = is_unicast (reader);
  WeirPlan fresh;
  uint16_t seq;

  if (!plan || !unicast || plan->position < fanout->window.tail
      || now_ns - plan->made_ns > PLAN_NS) {
    fresh = weir_plan_start (fanout, weir_reader_get_layers (reader),
        fanout->settings.join_at_keyframe && unicast, unicast ? reader_delay (reader) : 0, now_ns);
    plan = &fresh;
  }
  begin_at (fanout, reader, plan, now_ns);
  reader->seq_delta = plan->seq_ahead;
  reader->picture_delta = plan->pictures_ahead;
  if (plan->continues && weir_window_seq_at (&fanout->window, plan->position, &seq))
    reader->seq_delta = (uint16_t) (plan->seq - seq);
  describe_next (fanout, reader, now_ns, &reader->begun);
}

// Moves a reader behind the window's tail to the tail. Counts the packets between as dropped.
static void
drop_lost (WeirFanout *fanout, WeirReader *reader)
{
  int64_t cursor = atomic_load_explicit (&reader->cursor, memory_order_relaxed);
  uint64_t n;

  if (cursor >= fanout->window.tail)
    return;
  n = (uint64_t) (fanout->window.tail - cursor) * reader_times (reader, &fanout->settings);
  atomic_fetch_add_explicit (&reader->due, n, memory_order_relaxed);
  atomic_fetch_add_explicit (&reader->dropped[WEIR_DROP_OVERRUN], n, memory_order_relaxed);
  fanout->counters.due += n;
  fanout->counters.dropped[WEIR_DROP_OVERRUN] += n;
  atomic_store_explicit (&reader->cursor, fanout->window.tail, memory_order_relaxed);
  reader->past_extra = false;
}

// Moves a reader to the plan's position in the main window. Its sequence numbers continue. The next
// pass chooses its stream again.
static void
go_to (WeirFanout *fanout, WeirReader *reader, const WeirPlan *plan, int64_t now_ns)
{
  uint16_t next, there;
  bool known;

  drop_lost (fanout, reader);
  known = find_next_seq (fanout, reader, &next);
  weir_reader_leave_stream (reader);
  begin_at (fanout, reader, plan, now_ns);
  if (weir_window_seq_at (&fanout->window, plan->position, &there) && known)
    reader->seq_delta = (uint16_t) (next - there);
  reader->picture_delta = 0;
  reader->past_extra = false;
}

// Plans the full delay for the packets to come, as the window is empty.
static WeirPlan
plan_await (const WeirFanout *fanout, int64_t delay_ns)
{
  return (WeirPlan) { .position = fanout->window.head,
    .delay_ns = delay_ns,
    .time_ahead = weir_fanout_ticks (fanout, delay_ns) };
}

static bool
can_await (const WeirFanout *fanout, int64_t delay_ns)
{
  return fanout->window.head == fanout->window.tail && delay_ns != WEIR_DELAY_OLDEST;
}

int
weir_fanout_set_delay (
    WeirFanout *fanout, WeirReader *reader, int64_t delay_ns, int64_t now_ns, WeirPlan *plan)
{
  int64_t paused_ns;

  if (!is_unicast (reader))
    return -EINVAL;
  weir_reader_hold (reader);
  pthread_mutex_lock (&fanout->lock);
  paused_ns = reader_paused (reader);
  if (delay_ns != reader_delay (reader) || paused_ns) {
    WeirPlan next =
        can_await (fanout, delay_ns)
            ? plan_await (fanout, delay_ns)
            : weir_plan_start (fanout, weir_reader_get_layers (reader), true, delay_ns, now_ns);

    go_to (fanout, reader, &next, now_ns);
    if (paused_ns)
      atomic_store_explicit (&reader->paused_ns, now_ns, memory_order_relaxed);
  }
  describe_next (fanout, reader, now_ns, &reader->begun);
  if (plan)
    *plan = reader->begun;
  pthread_mutex_unlock (&fanout->lock);
  release_and_wake (fanout, reader);
  return 0;
}

bool
weir_fanout_rejoin (WeirFanout *fanout, WeirReader *reader, int64_t now_ns)
{
  bool may;

  weir_reader_hold (reader);
  pthread_mutex_lock (&fanout->lock);
  may = is_unicast (reader) && !atomic_load (&reader->removed) && !reader_paused (reader)
        && fanout->window.last_join != WEIR_NO_POSITION;
  if (may) {
    WeirPlan next = weir_plan_start (
        fanout, weir_reader_get_layers (reader), true, reader_delay (reader), now_ns);

    go_to (fanout, reader, &next, now_ns);
    describe_next (fanout, reader, now_ns, &reader->begun);
  }
  pthread_mutex_unlock (&fanout->lock);
  release_and_wake (fanout, reader);
  return may;
}

void
weir_fanout_await (WeirFanout *fanout, WeirReader *reader, int64_t delay_ns, int64_t now_ns)
{
  if (!is_unicast (reader))
    return;
  weir_reader_hold (reader);
  pthread_mutex_lock (&fanout->lock);
  if (can_await (fanout, delay_ns) && !reader_paused (reader)) {
    WeirPlan next = plan_await (fanout, delay_ns);

    begin_at (fanout, reader, &next, now_ns);
    describe_next (fanout, reader, now_ns, &reader->begun);
  }
  pthread_mutex_unlock (&fanout->lock);
  release_and_wake (fanout, reader);
}

int
weir_fanout_pause (WeirFanout *fanout, WeirReader *reader, int64_t now_ns)
{
  if (!is_unicast (reader))
    return -EINVAL;
  weir_reader_hold (reader);
  if (!reader_paused (reader))
    atomic_store_explicit (&reader->paused_ns, now_ns, memory_order_relaxed);
  release_and_wake (fanout, reader);
  return 0;
}

// Shifts the reader's schedule, as if all packets had arrived `by_ns` later.
static void
shift (const WeirFanout *fanout, WeirReader *reader, int64_t by_ns)
{
  atomic_store_explicit (&reader->delay_ns, reader_delay (reader) + by_ns, memory_order_relaxed);
  reader->time_ahead += weir_fanout_ticks (fanout, by_ns);
  reader->join.begun_ns += by_ns;
  reader->join.from_arrival += by_ns;
  reader->next_ns = reader->blocked_since = reader->well_since = 0;
}

int
weir_fanout_resume (WeirFanout *fanout, WeirReader *reader, int64_t now_ns, WeirPlan *plan)
{
  int64_t paused_ns;

  if (!is_unicast (reader))
    return -EINVAL;
  weir_reader_hold (reader);
  pthread_mutex_lock (&fanout->lock);
  paused_ns = reader_paused (reader);
  if (paused_ns) {
    shift (fanout, reader, now_ns - paused_ns);
    atomic_store_explicit (&reader->paused_ns, 0, memory_order_relaxed);
  }
  describe_next (fanout, reader, now_ns, &reader->begun);
  if (plan)
    *plan = reader->begun;
  pthread_mutex_unlock (&fanout->lock);
  release_and_wake (fanout, reader);
  return 0;
}

void
weir_fanout_next (WeirFanout *fanout, WeirReader *reader, int64_t now_ns, WeirPlan *plan)
{
  weir_reader_hold (reader);
  pthread_mutex_lock (&fanout->lock);
  if (!reader_paused (reader) && now_ns - reader->begun.made_ns <= PLAN_NS)
    *plan = reader->begun;
  else
    describe_next (fanout, reader, now_ns, plan);
  pthread_mutex_unlock (&fanout->lock);
  release_and_wake (fanout, reader);
}

void
weir_fanout_set_clock_rate (WeirFanout *fanout, uint32_t clock_rate)
{
  const WeirWindow *window = &fanout->window;

  pthread_mutex_lock (&fanout->lock);
  fanout->clock_rate = clock_rate;
  // Without packets no timestamp has been sent yet, so leads can still change.
  for (Shard *shard = window->head == window->tail ? fanout->shards : NULL; shard;
      shard = shard->next) {
    for (size_t i = 0; shard->list && i < shard->list->n; i++) {
      WeirReader *reader = shard->list->readers[i];

      reader->time_ahead = weir_fanout_ticks (fanout, reader_delay (reader)) + reader->splice_ahead;
    }
  }
  pthread_mutex_unlock (&fanout->lock);
}
