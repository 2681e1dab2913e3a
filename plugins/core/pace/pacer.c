// SPDX-License-Identifier: LGPL-2.1-or-later
#include "pace/pacer_private.h"

#include <errno.h>
#include <stdlib.h>

#define SECOND INT64_C (1000000000)
#define TIME_MAX (INT64_MAX / 16) // times beyond this are ignored
#define BYTES_MAX (UINT64_C (1) << 30)
#define COST_MAX_NS (86400 * SECOND) // longest time for one packet
#define CLOCK_BACK_NS SECOND
#define DELAY_WEIGHT 64
#define RATE_WEIGHT 16
#define LAG_NS (2 * SECOND)          // lag at which the rate is doubled
#define FIRST_INTERVAL (SECOND / 60) // until an interval is known

static int64_t
max64 (int64_t a, int64_t b)
{
  return a > b ? a : b;
}

static int64_t
min64 (int64_t a, int64_t b)
{
  return a < b ? a : b;
}

// Rounded up, so that the rate is never exceeded.
static int64_t
bytes_to_ns (uint64_t bytes, uint64_t bitrate)
{
  uint64_t bits_ns = (bytes < BYTES_MAX ? bytes : BYTES_MAX) * 8 * SECOND;
  uint64_t ns = bits_ns / bitrate + (bits_ns % bitrate != 0);

  return ns < (uint64_t) COST_MAX_NS ? (int64_t) ns : COST_MAX_NS;
}

// Advances the pacer's clock. Threads may read the clock in one order and arrive here in another:
// small steps back are ignored.
static int64_t
observe (WeirPacer *self, int64_t now)
{
  now += self->clock_shift;
  if (now <= self->now - CLOCK_BACK_NS)
    self->clock_shift += self->now - now;
  self->now = max64 (self->now, now);
  return self->now;
}

// ---- the input ----

static bool
begins_frame (const WeirPacer *self, const WeirPacePacket *packet)
{
  if (!self->started)
    return true;
  if (packet->is_rtp)
    return packet->rtp_time != self->rtp_time;
  return packet->time_ns != WEIR_PACE_NO_TIME ? packet->time_ns != self->raw_time : !self->timed;
}

static int64_t
change_time (WeirPacer *self, int64_t time, int64_t changed)
{
  self->counts.repaired++;
  self->time_shift += changed - time;
  return changed;
}

// Returns the time of a frame that begins, made monotone. Sets `*joins` if the frame belongs to the
// frame before.
static int64_t
repair (WeirPacer *self, int64_t raw, int64_t now, bool *joins)
{
  int64_t due_now = now - self->upstream_ns - self->delay, time = raw + self->time_shift;
  bool ahead = time > due_now + WEIR_PACE_AHEAD_MAX;
  bool behind = time < now - self->upstream_ns - WEIR_PACE_AHEAD_MAX
                && self->settings.mode == WEIR_PACE_TIMESTAMP;

  if (!self->timed)
    return ahead || time < due_now - WEIR_PACE_AHEAD_MAX ? change_time (self, time, due_now) : time;
  if (time <= self->time - WEIR_PACE_BACK_MAX || behind
      || (ahead && time > self->time + WEIR_PACE_AHEAD_MAX))
    return change_time (self, time, max64 (self->time + self->interval, due_now));
  if (time > self->time)
    return time;
  self->counts.repaired += time < self->time;
  *joins = true;
  return self->time;
}

static void
note_interval (WeirPacer *self, int64_t time, int64_t duration)
{
  int64_t interval = self->timed ? min64 (time - self->time, WEIR_PACE_FRAME_MAX) : 0;

  if (duration > 0) {
    self->interval = min64 (duration, WEIR_PACE_FRAME_MAX);
  } else if (interval > 0) {
    self->interval = self->last_interval > 0 ? min64 (interval, self->last_interval) : interval;
    self->last_interval = interval;
  }
}

static void
note_delay (WeirPacer *self, int64_t time, int64_t now)
{
  int64_t lateness = min64 (max64 (now - time - self->upstream_ns, 0), WEIR_PACE_AHEAD_MAX);

  if (lateness > self->delay)
    self->delay = lateness;
  else
    self->delay -= (self->delay - lateness) / DELAY_WEIGHT;
}

static void
note_rate (WeirPacer *self, int64_t time)
{
  int64_t passed = time - self->period_start;
  unsigned n;

  if (passed < WEIR_PACE_PERIOD_NS)
    return;
  n = ++self->n_periods < RATE_WEIGHT ? self->n_periods : RATE_WEIGHT;
  self->measured +=
      ((double) self->period_bytes * 8 * SECOND / (double) passed - self->measured) / n;
  self->period_bytes = 0;
  self->period_start = time;
}

// Returns the time of a frame that begins with a packet, or of the frame that it joins.
static int64_t
take_time (WeirPacer *self, int64_t raw, int64_t now, bool *joins)
{
  if (raw != WEIR_PACE_NO_TIME)
    return repair (self, raw, now, joins);
  self->counts.repaired += self->timed || self->settings.mode == WEIR_PACE_TIMESTAMP;
  return self->timed ? max64 (self->time, now - self->upstream_ns - self->delay) : now;
}

static void
note_frame (WeirPacer *self, int64_t time, int64_t duration, int64_t now)
{
  if (!self->started)
    self->period_start = time;
  note_interval (self, time, duration);
  note_delay (self, time, now);
  note_rate (self, time);
  self->time = time;
}

int
weir_pacer_push (WeirPacer *self, const WeirPacePacket *given, int64_t now)
{
  WeirPacePacket packet = *given;
  WeirPaceEntry entry = { .time = self->time };
  bool joins;

  if (weir_pacer_make_room (self) < 0)
    return -ENOMEM;
  if (packet.time_ns < -TIME_MAX || packet.time_ns > TIME_MAX)
    packet.time_ns = WEIR_PACE_NO_TIME;
  now = observe (self, now);
  joins = !begins_frame (self, &packet);
  if (!joins)
    entry.time = take_time (self, packet.time_ns, now, &joins);
  else if (packet.time_ns == WEIR_PACE_NO_TIME)
    self->counts.repaired++;
  if (!joins)
    note_frame (self, entry.time, packet.duration_ns, now);
  entry.arrival = now;
  entry.begins_frame = !joins;
  entry.size = (uint32_t) (packet.size < UINT32_MAX ? packet.size : UINT32_MAX);
  self->started = true;
  self->timed |= packet.time_ns != WEIR_PACE_NO_TIME;
  self->raw_time = packet.time_ns;
  self->rtp_time = packet.rtp_time;
  self->period_bytes += entry.size;
  self->round_end = WEIR_PACE_NO_TIME;
  weir_pacer_append (self, &entry);
  self->counts.in++;
  return 0;
}

// ---- by timestamp ----

static int64_t
start_of (const WeirPacer *self, const WeirPaceEntry *entry)
{
  return entry->time + self->upstream_ns + self->delay;
}

static int64_t
frame_end (const WeirPacer *self)
{
  int64_t end = self->frame_start + self->interval;

  if (self->n_frame < self->n)
    end = start_of (self, entry_at (self, self->n_frame));
  return min64 (end, self->frame_start + WEIR_PACE_FRAME_MAX);
}

// The frame's remaining time is divided among the packets that are there. So the spacing is even if
// they came together, and follows the packets if they did not.
static int64_t
timestamp_due (const WeirPacer *self, const WeirPaceEntry *head)
{
  int64_t left;

  if (head->begins_frame)
    return max64 (start_of (self, head), self->group_due);
  if (self->group < self->settings.max_burst)
    return self->group_due;
  left = max64 (frame_end (self) - self->group_due, 0);
  return self->group_due + left * (int64_t) self->group / (int64_t) (self->n_frame + self->group);
}

static void
timestamp_pop (WeirPacer *self, const WeirPaceEntry *head)
{
  int64_t due = timestamp_due (self, head);

  if (head->begins_frame || due > self->group_due) {
    self->group = 0;
    self->group_due = max64 (due, head->arrival);
  }
  if (head->begins_frame)
    self->frame_start = self->group_due;
  self->group++;
}

// ---- by bitrate ----

// Returns how much later a packet leaves than it would with an empty queue.
static int64_t
lag_of (const WeirPacer *self, const WeirPaceEntry *head, int64_t due)
{
  return self->have_lag_origin ? due - head->time - self->lag_origin : 0;
}

// Returns the rate in bits per second, or 0 if it is not known.
static uint64_t
rate_at (const WeirPacer *self, const WeirPaceEntry *head)
{
  double factor = 1 + (double) lag_of (self, head, self->now) / LAG_NS;

  if (self->settings.bitrate > 0)
    return self->settings.bitrate;
  factor = factor < 0.5 ? 0.5 : factor > 2 ? 2 : factor;
  return (uint64_t) (self->measured * factor);
}

static int64_t
bitrate_due (const WeirPacer *self, const WeirPaceEntry *head)
{
  uint64_t rate = rate_at (self, head);
  int64_t ahead;

  if (!self->bucket_used || rate == 0)
    return head->arrival;
  ahead = bytes_to_ns (self->settings.burst, rate) - bytes_to_ns (head->size, rate);
  return self->full_at - max64 (ahead, 0);
}

// A packet that leaves too late counts as due later: those behind it would follow as a burst.
static void
bitrate_pop (WeirPacer *self, const WeirPaceEntry *head, int64_t now)
{
  uint64_t rate = rate_at (self, head);
  int64_t due = max64 (bitrate_due (self, head), head->arrival);

  due = max64 (due, now - WEIR_PACE_LATE_NS - self->settings.round_ns);
  if (rate == 0)
    return;
  if (!self->have_lag_origin)
    self->lag_origin = due - head->time;
  self->have_lag_origin = true;
  self->full_at =
      (self->bucket_used ? max64 (self->full_at, due) : due) + bytes_to_ns (head->size, rate);
  self->bucket_used = true;
}

// ---- by block ----

// Returns the content sent before the first queued packet, in ns of play.
static int64_t
content_before (const WeirPacer *self, const WeirPaceEntry *head)
{
  return self->settings.bitrate > 0 ? self->content : head->time - self->content_first;
}

// Returns 0 if the packet belongs to the current block; more than 1 if the times skip blocks.
static int64_t
blocks_ahead (const WeirPacer *self, const WeirPaceEntry *head)
{
  int64_t beyond = content_before (self, head) - self->block_end;

  return beyond < 0 ? 0 : 1 + beyond / self->settings.block_ns;
}

// Returns how long after the current block the block of the packet begins. The first block is the
// player's buffer, so the second one follows it at once.
static int64_t
wait_for (const WeirPacer *self, const WeirPaceEntry *head)
{
  return (blocks_ahead (self, head) - !self->playing) * self->settings.block_ns;
}

static int64_t
block_due (const WeirPacer *self, const WeirPaceEntry *head)
{
  int64_t wait;

  if (!self->block_begun || blocks_ahead (self, head) == 0)
    return head->arrival;
  if (!self->playing)
    return self->last_out_ns + wait_for (self, head);
  wait = wait_for (self, head);
  return self->begun_ns + wait - min64 (wait, self->deficit_ns);
}

static void
next_block (WeirPacer *self, const WeirPaceEntry *head, int64_t now)
{
  int64_t planned = wait_for (self, head);
  int64_t since = self->playing ? self->begun_ns : self->last_out_ns;

  self->counts.overruns += self->last_out_ns - self->begun_ns > self->settings.block_ns;
  self->deficit_ns = max64 (0, self->deficit_ns + now - since - planned);
  self->begun_ns = now;
  self->block_end += blocks_ahead (self, head) * self->settings.block_ns;
  if (!self->playing)
    self->play_start_ns = self->last_out_ns;
  self->playing = true;
  self->starved = false;
}

static void
first_block (WeirPacer *self, const WeirPaceEntry *head, int64_t now)
{
  self->block_begun = true;
  self->begun_ns = now;
  self->content_first = head->time;
  self->block_end = self->settings.block_ns;
}

// Notes that the content from `content` on leaves. A reader that starves plays on from there.
static void
note_content (WeirPacer *self, int64_t content, int64_t now)
{
  int64_t short_of = now - self->play_start_ns - content;

  self->last_out_ns = now;
  if (!self->playing || short_of <= 0)
    return;
  self->counts.starvations += !self->starved;
  self->starved = true;
  self->play_start_ns += short_of;
}

static void
block_pop (WeirPacer *self, const WeirPaceEntry *head, int64_t now)
{
  if (!self->block_begun)
    first_block (self, head, now);
  else if (blocks_ahead (self, head) > 0)
    next_block (self, head, now);
  note_content (self, content_before (self, head), now);
  if (self->settings.bitrate > 0)
    self->content += bytes_to_ns (head->size, self->settings.bitrate);
}

void
weir_pacer_go_on (WeirPacer *self, size_t rest, int64_t now)
{
  now = observe (self, now);
  if (self->settings.mode == WEIR_PACE_BLOCK && self->settings.bitrate > 0)
    note_content (self, self->content - bytes_to_ns (rest, self->settings.bitrate), now);
}

// ---- all of them ----

static int64_t
own_due (const WeirPacer *self, const WeirPaceEntry *head)
{
  switch (self->settings.mode) {
    case WEIR_PACE_TIMESTAMP:
      return timestamp_due (self, head);
    case WEIR_PACE_BITRATE:
      return bitrate_due (self, head);
    default:
      return block_due (self, head);
  }
}

// Returns when the first packet would leave without rounds.
static int64_t
unrounded_due (const WeirPacer *self)
{
  const WeirPaceEntry *head = entry_at (self, 0);

  return max64 (own_due (self, head), head->arrival);
}

static void
leave (WeirPacer *self, int64_t now)
{
  const WeirPaceEntry *head = entry_at (self, 0);

  if (self->settings.mode == WEIR_PACE_TIMESTAMP)
    timestamp_pop (self, head);
  else if (self->settings.mode == WEIR_PACE_BITRATE)
    bitrate_pop (self, head, now);
  else
    block_pop (self, head, now);
  weir_pacer_remove_first (self);
}

// Returns the first time of a round that is not before `due`.
static int64_t
next_round (const WeirPaceSettings *settings, int64_t due)
{
  int64_t round = settings->round_ns, into;

  if (round <= 0)
    return due;
  into = (due - settings->phase_ns) % round;
  into += into < 0 ? round : 0;
  return into == 0 ? due : due + round - into;
}

// Reports whether more than `round_bytes` of the queue are due by the time `end`.
static bool
has_too_many_bytes (const WeirPacer *self, int64_t end)
{
  WeirPacer ahead = *self; // shares the entries, which do not change
  uint64_t bytes = 0;

  while (ahead.n > 0 && bytes <= self->settings.round_bytes && unrounded_due (&ahead) <= end) {
    bytes += entry_at (&ahead, 0)->size;
    leave (&ahead, end);
  }
  return bytes > self->settings.round_bytes;
}

// Returns the end of the round, or of its part, in which a packet leaves that is due at `due`. Both
// are times on the clock outside, which rounds follow.
static int64_t
end_of_round (WeirPacer *self, int64_t due)
{
  const WeirPaceSettings *settings = &self->settings;
  int64_t end = next_round (settings, due);
  int64_t part = (settings->round_ns + WEIR_PACE_PARTS - 1) / WEIR_PACE_PARTS;

  if (settings->round_bytes == 0 || end == due)
    return end;
  if (self->round_end != end)
    self->is_divided = has_too_many_bytes (self, end + self->clock_shift);
  self->round_end = end;
  return self->is_divided ? end - (end - due) / part * part : end;
}

// Returns the time on the pacer's clock.
static int64_t
head_due (WeirPacer *self)
{
  return end_of_round (self, unrounded_due (self) - self->clock_shift) + self->clock_shift;
}

int64_t
weir_pacer_due (WeirPacer *self, int64_t now)
{
  observe (self, now);
  return self->n > 0 ? head_due (self) - self->clock_shift : WEIR_PACE_NEVER;
}

// The packets of a block leave one after the other, so only the first can be late.
static void
note_lateness (WeirPacer *self, int64_t now)
{
  int64_t due = head_due (self), lateness;

  if (self->settings.mode == WEIR_PACE_BLOCK && self->block_begun)
    due = max64 (due, self->last_out_ns);
  lateness = now - due;
  self->counts.late += lateness > WEIR_PACE_LATE_NS;
  self->counts.latest_ns = max64 (self->counts.latest_ns, lateness);
}

void
weir_pacer_pop (WeirPacer *self, int64_t now)
{
  now = observe (self, now);
  note_lateness (self, now);
  self->counts.out++;
  self->counts.bytes_out += entry_at (self, 0)->size;
  leave (self, now);
}

// ---- creating, changing and flushing ----

static void
reset_rules (WeirPacer *self)
{
  self->round_end = WEIR_PACE_NO_TIME;
  self->group_due = INT64_MIN / 4;
  self->group = 0;
  self->bucket_used = self->have_lag_origin = false;
  self->block_begun = self->playing = self->starved = false;
  self->deficit_ns = self->content = 0;
}

int64_t
weir_pace_phase (int64_t round_ns, unsigned parts, unsigned i, uint64_t base_ns)
{
  if (round_ns <= 0)
    return 0;
  return i % parts * (round_ns / parts) - (int64_t) (base_ns % (uint64_t) round_ns);
}

void
weir_pacer_init (WeirPacer *self, const WeirPaceSettings *settings)
{
  *self = (WeirPacer) { .settings = *settings, .interval = FIRST_INTERVAL, .now = INT64_MIN / 4 };
  reset_rules (self);
}

void
weir_pacer_free (WeirPacer *self)
{
  free (self->entries);
  self->entries = NULL;
  self->capacity = 0;
}

void
weir_pacer_set (WeirPacer *self, const WeirPaceSettings *settings)
{
  bool restart = settings->mode != self->settings.mode
                 || (settings->bitrate > 0) != (self->settings.bitrate > 0);

  self->settings = *settings;
  self->round_end = WEIR_PACE_NO_TIME;
  if (restart)
    reset_rules (self);
}

void
weir_pacer_flush (WeirPacer *self)
{
  self->counts.flushed += self->n;
  self->n = self->n_frame = 0;
  self->bytes = 0;
  self->now = INT64_MIN / 4;
  self->clock_shift = self->time_shift = self->delay = 0;
  self->started = self->timed = false;
  self->period_bytes = 0;
  reset_rules (self);
}

// Reports whether the queue holds one `part`th of its limits, or more.
static bool
holds (const WeirPacer *self, int part)
{
  const uint64_t bitrate = self->settings.bitrate;

  if (self->n >= (size_t) (WEIR_PACE_HELD_PACKETS / part)
      || self->bytes >= (uint64_t) (WEIR_PACE_HELD_BYTES / part))
    return true;
  if (self->settings.mode != WEIR_PACE_TIMESTAMP && bitrate > 0)
    return bytes_to_ns (self->bytes, bitrate) >= WEIR_PACE_HELD_NS / part;
  return self->n > 0 && self->time - entry_at (self, 0)->time >= WEIR_PACE_HELD_NS / part;
}

bool
weir_pacer_full (const WeirPacer *self)
{
  return holds (self, 1);
}

bool
weir_pacer_half_full (const WeirPacer *self)
{
  return holds (self, 2);
}

int64_t
weir_pacer_latency (const WeirPacer *self)
{
  int64_t spread = self->settings.mode == WEIR_PACE_TIMESTAMP ? self->delay + self->interval : 0;

  return spread + self->settings.round_ns;
}
