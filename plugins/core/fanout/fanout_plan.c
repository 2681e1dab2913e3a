// SPDX-License-Identifier: LGPL-2.1-or-later
// Plans: where a reader that is added or moved now begins, and with which numbers.
#include "fanout/fanout_private.h"

// The next packets push the oldest ones out of the window, so a reader begins this far after the
// tail.
#define EDGE_NS 1000000000LL

int64_t
weir_fanout_ticks (const WeirFanout *fanout, int64_t ns)
{
  const int64_t second = 1000000000, rate = fanout->clock_rate;

  return ns / second * rate + ns % second * rate / second;
}

// Returns the oldest position at which a reader can safely begin.
static int64_t
oldest_start (const WeirWindow *window)
{
  int64_t position;

  if (window->tail == 0 || window->tail == window->head)
    return window->tail;
  position =
      weir_window_after (window, weir_window_at (window, window->tail)->arrival_ns + EDGE_NS);
  return position < window->head ? position : window->tail;
}

int64_t
weir_overrun_position (const WeirFanout *fanout, bool behind)
{
  const WeirWindow *window = &fanout->window;
  int64_t oldest = behind ? oldest_start (window) : window->tail, join;

  if (fanout->settings.overrun != WEIR_OVERRUN_TO_JOIN)
    return window->tail;
  join = weir_window_next_join (window, oldest);
  if (join == WEIR_NO_POSITION)
    join = weir_window_next_join (window, window->tail);
  if (join != WEIR_NO_POSITION)
    return join;
  return behind ? oldest : weir_window_live (window);
}

typedef struct {
  int64_t position;
  int64_t target;   // position at which the reader has caught up
  int64_t delay_ns; // the delay that the reader gets
  bool join;        // `position` is a join point
} Start;

static Start
live_start (const WeirWindow *window, bool at_keyframe)
{
  bool join = at_keyframe && window->last_join != WEIR_NO_POSITION;

  return (Start) { join ? window->last_join : weir_window_live (window), window->head, 0, join };
}

static Start
delayed_start (const WeirWindow *window, int64_t delay_ns, int64_t now_ns)
{
  int64_t oldest = oldest_start (window);
  int64_t target = weir_window_after (window, now_ns - delay_ns);
  int64_t begin = weir_window_edge (window, target);
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
  return (Start) {
    .position = begin,
    .target = target > begin ? target : begin,
    .delay_ns = delay_ns < age_ns || (begin == target && target > oldest) ? delay_ns : age_ns,
    .join = join != WEIR_NO_POSITION,
  };
}

// Returns the highest RTP time between the start's position and its target.
static int64_t
time_at_target (const WeirWindow *window, const Start *start)
{
  int64_t time = weir_window_at (window, start->position)->rtp_time;

  if (start->delay_ns == 0)
    return window->newest_time > time ? window->newest_time : time;
  for (int64_t position = start->position; position < start->target; position++) {
    const WeirPacket *packet = weir_window_at (window, position);

    if (packet->flags & WEIR_PACKET_RTP && packet->rtp_time > time)
      time = packet->rtp_time;
  }
  return time;
}

// Reports whether a reader that begins there has to catch up.
static bool
is_behind (const WeirWindow *window, const Start *start, int64_t now_ns)
{
  if (start->position == window->head)
    return false;
  if (start->delay_ns == 0)
    return start->position != weir_window_live (window);
  return weir_window_at (window, start->position)->arrival_ns + start->delay_ns < now_ns;
}

// Plans the packets that a reader is not given while it catches up: those of the discardable frames
// between its first frame, whose timestamp is `from_time`, and the frame of its target. `own` is
// the window that has the reader's packets.
static void
plan_skipping (const WeirWindow *window, const WeirWindow *own, const Start *start,
    int64_t from_time, WeirPlan *plan)
{
  int64_t end;

  plan->skip_to = weir_window_edge (window, start->target);
  end = own == window ? plan->skip_to : weir_window_find (own, plan->skip_to);
  for (int64_t i = own == window ? start->position : weir_window_find (own, start->position);
      i < end; i++) {
    const WeirPacket *packet = weir_window_at (own, i);

    if (packet->flags & WEIR_PACKET_DISCARDABLE && packet->rtp_time != from_time) {
      plan->seq_ahead++;
      plan->pictures_ahead += (packet->flags & WEIR_PACKET_START) != 0;
    }
  }
}

// Gives the reader the numbers of its layers' stream, if other readers have made that already.
// Returns the window that has the reader's packets.
static const WeirWindow *
plan_layers (const WeirFanout *fanout, WeirLayerSet set, WeirPlan *plan)
{
  const Layers *layers = &fanout->layers;
  const LayerStream *stream = NULL;
  int64_t frame = -1;
  LeftOut left_out;

  if (layers->on && plan->position < layers->covered)
    frame = weir_layer_streams_frame_at (layers, plan->position);
  if (frame >= 0)
    stream = weir_layer_streams_find (layers, weir_layer_streams_normal (layers, set), frame);
  if (!stream)
    return &fanout->window;
  left_out = layer_stream_left_out (stream, frame);
  plan->seq_ahead = (uint16_t) (plan->seq_ahead - left_out.packets);
  plan->pictures_ahead = (uint16_t) (plan->pictures_ahead - left_out.pictures);
  return &stream->window;
}

WeirPlan
weir_plan_start (const WeirFanout *fanout, WeirLayerSet layers, bool at_keyframe, int64_t delay_ns,
    int64_t now_ns)
{
  const WeirWindow *window = &fanout->window, *own;
  Start start =
      delay_ns > 0 ? delayed_start (window, delay_ns, now_ns) : live_start (window, at_keyframe);
  WeirPlan plan = { .position = start.position,
    .made_ns = now_ns,
    .delay_ns = start.delay_ns,
    .time_ahead = weir_fanout_ticks (fanout, start.delay_ns),
    .live_time = WEIR_LIVE_UNKNOWN };
  const WeirPacket *packet = weir_window_next_rtp (window, plan.position);

  if (packet) {
    plan.live_time = packet->rtp_time;
    if (start.join && fanout->settings.catch_up_live)
      plan.live_time = time_at_target (window, &start);
    plan.rtp_time = (uint32_t) (plan.live_time + plan.time_ahead);
    plan.rtp_time_known = true;
  }
  own = plan_layers (fanout, layers, &plan);
  if (packet && !has_stacked_layers (fanout) && is_behind (window, &start, now_ns))
    plan_skipping (window, own, &start, packet->rtp_time, &plan);
  plan.known = weir_window_seq_at (window, plan.position, &plan.seq);
  plan.seq = (uint16_t) (plan.seq + plan.seq_ahead);
  return plan;
}

bool
weir_fanout_plan (
    WeirFanout *fanout, WeirLayerSet layers, int64_t delay_ns, int64_t now_ns, WeirPlan *plan)
{
  pthread_mutex_lock (&fanout->lock);
  *plan = weir_plan_start (fanout, layers, fanout->settings.join_at_keyframe, delay_ns, now_ns);
  fanout->planned_until_ns = now_ns + PLAN_NS;
  pthread_mutex_unlock (&fanout->lock);
  return plan->known;
}

// Plans the return of a paused reader: at its position, or at a later one if the window has dropped
// its packets.
static void
plan_return (const WeirFanout *fanout, const WeirPlan *kept, int64_t now_ns, WeirPlan *plan)
{
  const WeirWindow *window = &fanout->window;
  int64_t paused_for = now_ns - kept->paused_ns;
  const WeirPacket *packet;

  *plan = *kept;
  plan->made_ns = now_ns;
  plan->paused_ns = 0;
  plan->live_time = WEIR_LIVE_UNKNOWN;
  plan->delay_ns += paused_for;
  plan->time_ahead += weir_fanout_ticks (fanout, paused_for);
  plan->moved = kept->position < window->tail;
  if (plan->moved) {
    plan->position = weir_overrun_position (fanout, true);
    plan->seq = (uint16_t) (kept->seq + (plan->position - kept->position));
  }
  plan->rtp_time_known = false;
  if (plan->position < window->head) {
    int64_t age_ns = now_ns - weir_window_at (window, plan->position)->arrival_ns;

    if (plan->moved && age_ns < plan->delay_ns)
      plan->delay_ns = age_ns;
  }
  if ((packet = weir_window_next_rtp (window, plan->position))) {
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
    plan_return (fanout, kept, now_ns, plan);
  } else {
    *plan = weir_plan_start (fanout, WEIR_LAYER_SET_ALL, true, delay_ns, now_ns);
    plan->seq = kept->seq;
  }
  plan->continues = plan->known;
  fanout->planned_until_ns = now_ns + PLAN_NS;
  pthread_mutex_unlock (&fanout->lock);
  return plan->known;
}
