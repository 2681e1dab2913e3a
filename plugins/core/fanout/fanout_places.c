// SPDX-License-Identifier: LGPL-2.1-or-later
// Readers' positions: where a reader begins, and where it moves to.
#include <errno.h>
#include <sched.h>

#include "fanout/fanout_private.h"

// A plan is valid for this time.
#define PLAN_NS 2000000000LL
// A reader that begins at the oldest packet would be pushed out by the next one: it begins this far
// from the tail.
#define EDGE_NS 1000000000LL
// Packets without a sequence number (RTCP) do not come in rows this long.
#define RTP_NEAR 64

static int64_t
to_ticks (const WeirFanout *fanout, int64_t ns)
{
  const int64_t second = 1000000000, rate = fanout->clock_rate;

  return ns / second * rate + ns % second * rate / second;
}

static int64_t
oldest_place (const WeirWindow *window)
{
  int64_t position;

  if (window->tail == 0 || window->tail == window->head)
    return window->tail;
  position =
      weir_window_after (window, weir_window_at (window, window->tail)->arrival_ns + EDGE_NS);
  return position < window->head ? position : window->tail;
}

// ---- numbers ----

// Returns the first RTP packet at or after a position, or NULL if there is none within RTP_NEAR.
static const WeirPacket *
next_rtp (const WeirWindow *window, int64_t at)
{
  int64_t end = window->head < at + RTP_NEAR ? window->head : at + RTP_NEAR;

  for (; at < end; at++) {
    if (weir_window_at (window, at)->flags & WEIR_PACKET_RTP)
      return weir_window_at (window, at);
  }
  return NULL;
}

// Finds the sequence number that the next packet at or after a position has, or will have. Returns
// false if it is not known.
static bool
find_seq (const WeirWindow *window, int64_t at, uint16_t *seq)
{
  int64_t first = at < window->tail ? window->tail : at;
  const WeirPacket *packet = next_rtp (window, first);
  int64_t end = first - RTP_NEAR > window->tail ? first - RTP_NEAR : window->tail;

  *seq = 0;
  if (packet)
    *seq = packet->seq;
  for (at = first; !packet && at > end; at--) {
    if (weir_window_at (window, at - 1)->flags & WEIR_PACKET_RTP) {
      packet = weir_window_at (window, at - 1);
      *seq = (uint16_t) (packet->seq + 1);
    }
  }
  return packet != NULL;
}

// ---- plans ----

typedef struct {
  int64_t position;
  int64_t edge;     // the position where the reader has caught up
  int64_t delay_ns; // the delay that the reader gets
  bool join;        // `position` is a join point
} Place;

static Place
live_place (const WeirWindow *window, bool at_keyframe)
{
  bool join = at_keyframe && window->last_join != WEIR_NO_POSITION;

  return (Place) { join ? window->last_join : weir_window_live (window), window->head, 0, join };
}

static Place
delayed_place (const WeirWindow *window, int64_t delay_ns, int64_t now_ns)
{
  int64_t oldest = oldest_place (window);
  int64_t edge = weir_window_after (window, now_ns - delay_ns);
  int64_t begin = weir_window_edge (window, edge);
  int64_t join = weir_window_join_before (window, begin);
  int64_t age_ns = 0;

  if (join == WEIR_NO_POSITION || join < oldest)
    join = weir_window_next_join (window, oldest);
  if (join == WEIR_NO_POSITION && begin < oldest)
    begin = oldest;
  if (join != WEIR_NO_POSITION)
    begin = join;
  if (begin < window->head)
    age_ns = now_ns - weir_window_at (window, begin)->arrival_ns;
  return (Place) {
    .position = begin,
    .edge = edge > begin ? edge : begin,
    .delay_ns = delay_ns < age_ns || (begin == edge && edge > oldest) ? delay_ns : age_ns,
    .join = join != WEIR_NO_POSITION,
  };
}

// Returns the highest RTP time before a place.
static int64_t
time_at_edge (const WeirWindow *window, const Place *place)
{
  int64_t time = weir_window_at (window, place->position)->rtp_time;

  if (place->delay_ns == 0)
    return window->newest_time > time ? window->newest_time : time;
  for (int64_t position = place->position; position < place->edge; position++) {
    const WeirPacket *packet = weir_window_at (window, position);

    if (packet->flags & WEIR_PACKET_RTP && packet->rtp_time > time)
      time = packet->rtp_time;
  }
  return time;
}

WeirPlan
weir_places_plan (const WeirFanout *fanout, bool at_keyframe, int64_t delay_ns, int64_t now_ns)
{
  const WeirWindow *window = &fanout->window;
  Place place =
      delay_ns > 0 ? delayed_place (window, delay_ns, now_ns) : live_place (window, at_keyframe);
  WeirPlan plan = { .position = place.position,
    .made_ns = now_ns,
    .delay_ns = place.delay_ns,
    .time_ahead = to_ticks (fanout, place.delay_ns),
    .live_time = WEIR_LIVE_UNKNOWN };
  const WeirPacket *packet = next_rtp (window, plan.position);

  if (packet) {
    plan.live_time = packet->rtp_time;
    if (place.join && fanout->settings.catch_up_live)
      plan.live_time = time_at_edge (window, &place);
    plan.rtp_time = (uint32_t) (plan.live_time + plan.time_ahead);
    plan.rtp_time_known = true;
  }
  plan.known = find_seq (window, plan.position, &plan.seq);
  return plan;
}

bool
weir_fanout_plan (WeirFanout *fanout, int64_t delay_ns, int64_t now_ns, WeirPlan *plan)
{
  pthread_mutex_lock (&fanout->lock);
  *plan = weir_places_plan (fanout, fanout->settings.join_at_keyframe, delay_ns, now_ns);
  pthread_mutex_unlock (&fanout->lock);
  return plan->known;
}

// ---- a reader's position; under the lock ----

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
  reader->time_ahead = plan->time_ahead;
  reader->next_ns = reader->blocked_since = reader->well_since = 0;
  end_join (reader);
  if (plan->position == window->head
      || (plan->delay_ns == 0 && plan->position == weir_window_live (window)))
    return;
  rtp = next_rtp (window, plan->position);
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
is_alone (const WeirReader *reader)
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
weir_places_lag (const WeirFanout *fanout, const WeirReader *reader, int64_t now_ns)
{
  int64_t end = due_end (fanout, reader, now_ns);
  int64_t cursor = atomic_load_explicit (&reader->cursor, memory_order_relaxed);

  return end > cursor ? (uint64_t) (end - cursor) : 0;
}

int64_t
weir_places_edge (const WeirFanout *fanout, const WeirReader *reader, int64_t now_ns)
{
  return weir_window_edge (&fanout->window, due_end (fanout, reader, now_ns));
}

// Returns where a reader continues after its packets were dropped from the window.
static int64_t
next_place (const WeirFanout *fanout, bool behind)
{
  const WeirWindow *window = &fanout->window;
  int64_t oldest = behind ? oldest_place (window) : window->tail, join;

  if (fanout->settings.overrun != WEIR_OVERRUN_TO_JOIN)
    return window->tail;
  join = weir_window_next_join (window, oldest);
  if (join == WEIR_NO_POSITION)
    join = weir_window_next_join (window, window->tail);
  if (join != WEIR_NO_POSITION)
    return join;
  return behind ? oldest : weir_window_live (window);
}

int64_t
weir_places_move_on (const WeirFanout *fanout, WeirReader *reader, int64_t now_ns)
{
  int64_t delay_ns = reader_delay (reader), paused_ns = reader_paused (reader);
  bool behind = delay_ns > 0 || paused_ns;
  int64_t position = next_place (fanout, behind), age_ns;

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
weir_places_await_join (WeirFanout *fanout, WeirReader *reader)
{
  if (!fanout->settings.join_at_keyframe || !is_alone (reader)
      || fanout->window.last_join != WEIR_NO_POSITION)
    return;
  reader->awaits_join = true;
  fanout->n_await_join++;
  fanout->await_from = atomic_load_explicit (&reader->cursor, memory_order_relaxed);
}

void
weir_places_await_no_more (WeirFanout *fanout, WeirReader *reader)
{
  if (!reader->awaits_join)
    return;
  reader->awaits_join = false;
  if (--fanout->n_await_join == 0)
    atomic_store_explicit (&fanout->join_wanted, false, memory_order_relaxed);
}

// The reader's first frame may be a keyframe: none is asked for before the next frame.
void
weir_places_look_for_join (WeirFanout *fanout)
{
  WeirCodec codec = fanout->layers.codec;

  if (fanout->window.last_join == WEIR_NO_POSITION) {
    if (codec != WEIR_CODEC_OPAQUE && fanout->window.frame_start > fanout->await_from)
      atomic_store_explicit (&fanout->join_wanted, true, memory_order_relaxed);
    return;
  }
  for (Shard *shard = fanout->shards; shard; shard = shard->next) {
    for (size_t i = 0; shard->list && i < shard->list->n; i++)
      weir_places_await_no_more (fanout, shard->list->readers[i]);
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
release (WeirFanout *fanout, WeirReader *reader)
{
  reader_let_go (reader);
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
  known = find_seq (window, at, seq);
  *seq = (uint16_t) (*seq + reader->seq_delta);
  return known;
}

static void
say_next (const WeirFanout *fanout, const WeirReader *reader, int64_t now_ns, WeirPlan *plan)
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
  if (cursor >= window->tail && (packet = next_rtp (window, cursor))) {
    plan->live_time = packet->rtp_time;
    if (reader->join.rate > 0 && reader->join.compress)
      plan->live_time = weir_join_time (&reader->join, plan->live_time);
    plan->rtp_time = (uint32_t) (plan->live_time + reader->time_ahead);
    plan->rtp_time_known = true;
  }
}

void
weir_places_put (WeirFanout *fanout, WeirReader *reader, const WeirPlan *plan, int64_t now_ns)
{
  // A multicast group cannot choose its position.
  bool alone = is_alone (reader);
  WeirPlan fresh;
  uint16_t seq;

  if (!plan || !alone || plan->position < fanout->window.tail || now_ns - plan->made_ns > PLAN_NS) {
    fresh = weir_places_plan (fanout, fanout->settings.join_at_keyframe && alone,
        alone ? reader_delay (reader) : 0, now_ns);
    plan = &fresh;
  }
  begin_at (fanout, reader, plan, now_ns);
  if (plan->goes_on && find_seq (&fanout->window, plan->position, &seq))
    reader->seq_delta = (uint16_t) (plan->seq - seq);
  say_next (fanout, reader, now_ns, &reader->begun);
}

// Counts packets that the window dropped before the reader got them as lost.
static void
lose_what_is_gone (WeirFanout *fanout, WeirReader *reader)
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

// Moves a reader in the main window; its sequence numbers continue. It chooses its stream again
// later.
static void
go_to (WeirFanout *fanout, WeirReader *reader, const WeirPlan *plan, int64_t now_ns)
{
  uint16_t next, there;
  bool known;

  lose_what_is_gone (fanout, reader);
  known = find_next_seq (fanout, reader, &next);
  weir_reader_leave_stream (reader);
  begin_at (fanout, reader, plan, now_ns);
  if (find_seq (&fanout->window, plan->position, &there) && known)
    reader->seq_delta = (uint16_t) (next - there);
  reader->picture_delta = 0;
  reader->past_extra = false;
}

int
weir_fanout_set_delay (
    WeirFanout *fanout, WeirReader *reader, int64_t delay_ns, int64_t now_ns, WeirPlan *plan)
{
  int64_t paused_ns;

  if (!is_alone (reader))
    return -EINVAL;
  weir_reader_hold (reader);
  pthread_mutex_lock (&fanout->lock);
  paused_ns = reader_paused (reader);
  if (delay_ns != reader_delay (reader) || paused_ns) {
    WeirPlan next = weir_places_plan (fanout, true, delay_ns, now_ns);

    go_to (fanout, reader, &next, now_ns);
    if (paused_ns)
      atomic_store_explicit (&reader->paused_ns, now_ns, memory_order_relaxed);
  }
  say_next (fanout, reader, now_ns, &reader->begun);
  if (plan)
    *plan = reader->begun;
  pthread_mutex_unlock (&fanout->lock);
  release (fanout, reader);
  return 0;
}

void
weir_fanout_await (WeirFanout *fanout, WeirReader *reader, int64_t delay_ns, int64_t now_ns)
{
  const WeirWindow *window = &fanout->window;

  if (!is_alone (reader) || delay_ns == WEIR_DELAY_OLDEST)
    return;
  weir_reader_hold (reader);
  pthread_mutex_lock (&fanout->lock);
  if (window->head == window->tail && !reader_paused (reader)) {
    WeirPlan next = {
      .position = window->head, .delay_ns = delay_ns, .time_ahead = to_ticks (fanout, delay_ns)
    };

    begin_at (fanout, reader, &next, now_ns);
    say_next (fanout, reader, now_ns, &reader->begun);
  }
  pthread_mutex_unlock (&fanout->lock);
  release (fanout, reader);
}

int
weir_fanout_pause (WeirFanout *fanout, WeirReader *reader, int64_t now_ns)
{
  if (!is_alone (reader))
    return -EINVAL;
  weir_reader_hold (reader);
  if (!reader_paused (reader))
    atomic_store_explicit (&reader->paused_ns, now_ns, memory_order_relaxed);
  release (fanout, reader);
  return 0;
}

// Shifts the reader's schedule, as if all packets had come later by the time of the pause.
static void
shift (const WeirFanout *fanout, WeirReader *reader, int64_t by_ns)
{
  atomic_store_explicit (&reader->delay_ns, reader_delay (reader) + by_ns, memory_order_relaxed);
  reader->time_ahead += to_ticks (fanout, by_ns);
  reader->join.begun_ns += by_ns;
  reader->join.from_arrival += by_ns;
  reader->next_ns = reader->blocked_since = reader->well_since = 0;
}

int
weir_fanout_resume (WeirFanout *fanout, WeirReader *reader, int64_t now_ns, WeirPlan *plan)
{
  int64_t paused_ns;

  if (!is_alone (reader))
    return -EINVAL;
  weir_reader_hold (reader);
  pthread_mutex_lock (&fanout->lock);
  paused_ns = reader_paused (reader);
  if (paused_ns) {
    shift (fanout, reader, now_ns - paused_ns);
    atomic_store_explicit (&reader->paused_ns, 0, memory_order_relaxed);
  }
  say_next (fanout, reader, now_ns, &reader->begun);
  if (plan)
    *plan = reader->begun;
  pthread_mutex_unlock (&fanout->lock);
  release (fanout, reader);
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
    say_next (fanout, reader, now_ns, plan);
  pthread_mutex_unlock (&fanout->lock);
  release (fanout, reader);
}

// Plans the return of a paused reader: at its position, or where the window's tail has moved it.
static void
plan_place (const WeirFanout *fanout, const WeirPlan *kept, int64_t now_ns, WeirPlan *plan)
{
  const WeirWindow *window = &fanout->window;
  int64_t paused_for = now_ns - kept->paused_ns;
  const WeirPacket *packet;

  *plan = *kept;
  plan->made_ns = now_ns;
  plan->paused_ns = 0;
  plan->live_time = WEIR_LIVE_UNKNOWN;
  plan->delay_ns += paused_for;
  plan->time_ahead += to_ticks (fanout, paused_for);
  plan->moved = kept->position < window->tail;
  if (plan->moved) {
    plan->position = next_place (fanout, true);
    plan->seq = (uint16_t) (kept->seq + (plan->position - kept->position));
  }
  plan->rtp_time_known = false;
  if (plan->position < window->head) {
    int64_t age_ns = now_ns - weir_window_at (window, plan->position)->arrival_ns;

    if (plan->moved && age_ns < plan->delay_ns)
      plan->delay_ns = age_ns;
  }
  if ((packet = next_rtp (window, plan->position))) {
    plan->rtp_time = (uint32_t) (packet->rtp_time + plan->time_ahead);
    plan->rtp_time_known = true;
  }
}

bool
weir_fanout_plan_again (
    WeirFanout *fanout, const WeirPlan *kept, int64_t delay_ns, int64_t now_ns, WeirPlan *plan)
{
  pthread_mutex_lock (&fanout->lock);
  if (delay_ns < 0) {
    plan_place (fanout, kept, now_ns, plan);
  } else {
    *plan = weir_places_plan (fanout, true, delay_ns, now_ns);
    plan->seq = kept->seq;
  }
  plan->goes_on = plan->known;
  pthread_mutex_unlock (&fanout->lock);
  return plan->known;
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

      reader->time_ahead = to_ticks (fanout, reader_delay (reader));
    }
  }
  pthread_mutex_unlock (&fanout->lock);
}
