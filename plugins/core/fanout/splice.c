// SPDX-License-Identifier: LGPL-2.1-or-later
// Moves a reader from one engine to another that has the same pictures, coded otherwise.
#include <errno.h>

#include "fanout/fanout_private.h"

#define FRESH_NS 300000000LL // a join point is not used later after it came
#define SECOND 1000000000LL
#define APART_NS 10000000LL // between the timestamps of two pictures, at least
#define AHEAD_S 10          // s; a longer jump comes from an offset that is wrong

// Where the reader goes on in the other engine's stream.
typedef struct {
  int64_t position, rtp_time;
} Join;

// What the reader has got.
typedef struct {
  bool known;
  uint32_t next_time; // the least RTP timestamp that its next picture can have
  uint32_t ssrc;
  uint8_t payload_type;
} Got;

// Finds the newest join point, which stays in the window until the plan is too old.
static bool
find_join (WeirFanout *to, int64_t now_ns, Join *join)
{
  const WeirWindow *window = &to->window;
  const WeirPacket *packet;
  bool found;

  pthread_mutex_lock (&to->lock);
  found = to->running && window->last_join != WEIR_NO_POSITION;
  packet = found ? weir_window_at (window, window->last_join) : NULL;
  found = packet && packet->flags & WEIR_PACKET_RTP && now_ns - packet->arrival_ns <= FRESH_NS;
  if (found) {
    *join = (Join) { window->last_join, packet->rtp_time };
    to->planned_until_ns = now_ns + PLAN_NS;
  }
  pthread_mutex_unlock (&to->lock);
  return found;
}

// Reports whether the reader has got whole frames only. Under the lock, while the reader is held.
static bool
is_between_frames (const WeirFanout *from, const WeirReader *reader)
{
  const WeirWindow *window = &from->window;
  int64_t cursor = atomic_load_explicit (&reader->cursor, memory_order_relaxed);

  if (cursor < window->tail || window->tail == window->head)
    return true;
  if (cursor < window->head)
    return weir_window_at (window, cursor)->flags & WEIR_PACKET_START;
  return weir_window_at (window, window->head - 1)->flags & WEIR_PACKET_MARKER;
}

// Returns the least RTP timestamp of the next picture. `newest` is the position of the newest RTP
// packet. Under the lock, while the reader is held.
static uint32_t
find_next_time (const WeirFanout *from, const WeirReader *reader, int64_t newest, int64_t now_ns)
{
  const WeirWindow *window = &from->window;
  int64_t cursor = atomic_load_explicit (&reader->cursor, memory_order_relaxed);
  const WeirPacket *next = cursor < window->tail ? NULL : weir_window_next_rtp (window, cursor);
  int64_t age_ns = now_ns - weir_window_at (window, newest)->arrival_ns;

  if (next)
    return (uint32_t) (next->rtp_time + reader_ahead (reader, next->rtp_time));
  age_ns = age_ns < APART_NS ? APART_NS : age_ns < SECOND ? age_ns : SECOND;
  return (uint32_t) (window->newest_time + weir_fanout_ticks (from, age_ns)
                     + reader_ahead (reader, window->newest_time));
}

// Reports whether the reader can leave, and what it has got. Call while the reader is held.
static bool
can_leave (WeirFanout *from, const WeirReader *reader, int64_t now_ns, Got *got)
{
  const WeirWindow *window = &from->window;
  const uint8_t *data;
  int64_t newest;
  bool can;

  *got = (Got) { .known = false };
  pthread_mutex_lock (&from->lock);
  can = !reader_paused (reader) && !reader_joining (reader) && is_between_frames (from, reader);
  newest = weir_window_rtp_before (window, window->head);
  if (newest < window->head) {
    data = weir_packet_data (weir_window_at (window, newest));
    *got = (Got) { .known = true,
      .next_time = find_next_time (from, reader, newest, now_ns),
      .ssrc = weir_rtp_get_ssrc (data),
      .payload_type = data[1] & 0x7f };
  }
  pthread_mutex_unlock (&from->lock);
  return can;
}

// Lets the new reader have the SSRC and the payload type of the old one.
static void
take_guise (WeirReader *fresh, const WeirReader *old, const Got *got)
{
  fresh->has_guise = old->has_guise || got->known;
  fresh->ssrc = old->has_guise ? old->ssrc : got->ssrc;
  fresh->payload_type = old->has_guise ? old->payload_type : got->payload_type;
}

// Sets by how much the reader's timestamps are ahead of the other stream's.
static void
set_ahead (WeirReader *fresh, const Join *join, uint32_t ahead, const Got *got, uint32_t clock_rate)
{
  int32_t missing = (int32_t) (got->next_time - (uint32_t) join->rtp_time - ahead);

  if (got->known && missing < -(int64_t) clock_rate * AHEAD_S) {
    ahead += (uint32_t) missing;
    missing = 0;
  }
  fresh->splice_ahead = ahead;
  fresh->late_by = got->known && missing > 0 ? (uint32_t) missing : 0;
  fresh->late_from = join->rtp_time;
}

static void
copy (_Atomic uint64_t *to, const _Atomic uint64_t *from)
{
  atomic_fetch_add_explicit (to, get_count (from), memory_order_relaxed);
}

static void
take_counters (WeirReader *fresh, const WeirReader *old)
{
  copy (&fresh->due, &old->due);
  copy (&fresh->packets, &old->packets);
  copy (&fresh->bytes, &old->bytes);
  copy (&fresh->moved, &old->moved);
  copy (&fresh->resent, &old->resent);
  copy (&fresh->resend_refused, &old->resend_refused);
  copy (&fresh->probed, &old->probed);
  for (size_t i = 0; i < WEIR_N_DROPS; i++)
    copy (&fresh->dropped[i], &old->dropped[i]);
}

static bool
has_picture_ids (const WeirFanout *fanout)
{
  WeirCodec codec = fanout->layers.codec;

  return codec == WEIR_CODEC_VP8 || codec == WEIR_CODEC_VP9 || codec == WEIR_CODEC_AV1;
}

int
weir_fanout_splice (WeirFanout *from, WeirReader *old, WeirFanout *to, WeirReader *fresh,
    uint32_t time_ahead, int64_t now_ns)
{
  Join join;
  Got got;
  WeirPlan plan;
  int r;

  if (!old->is_protected || !fresh->is_protected || has_picture_ids (from) || has_picture_ids (to))
    return -ENOTSUP;
  if (from == to || reader_delay (old) > 0)
    return -EINVAL;
  if (!find_join (to, now_ns, &join))
    return -EAGAIN;
  weir_reader_hold (old);
  if (!can_leave (from, old, now_ns, &got)) {
    reader_release (old);
    return -EAGAIN;
  }
  set_ahead (fresh, &join, time_ahead, &got, to->clock_rate);
  take_guise (fresh, old, &got);
  plan = (WeirPlan) {
    .position = join.position, .made_ns = now_ns, .live_time = join.rtp_time, .spliced = true
  };
  weir_reader_set_layers (fresh, weir_reader_get_layers (old));
  weir_reader_hold (fresh); // until the old one has left, because both have the same numbers
  r = weir_fanout_add (to, fresh, atomic_load (&old->shard)->priority, &plan, now_ns);
  if (r == 0)
    atomic_store (&old->removed, true);
  reader_release (old);
  if (r == 0) {
    weir_fanout_remove (from, old);
    take_counters (fresh, old);
  }
  reader_release (fresh);
  if (r == 0 && to->workers)
    weir_task_wake (&atomic_load (&fresh->shard)->task);
  return r;
}
