// SPDX-License-Identifier: LGPL-2.1-or-later
#include "schedule/follow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "run/clock.h"

#define LEAVE_AFTER_NS INT64_C (200000000) // packets may come so long after a receive ends
#define FAR_NS INT64_C (10000000000)       // a packet's time differs from the schedule's by less
#define NEAR_NS INT64_C (100000000)        // and by less than half of the receive, or than this
#define STEP_MAX_NS INT64_C (100000000)    // between two frames, until they are known
#define AHEAD_PACKETS 512                  // how far frames may be reordered
#define AHEAD_FRAMES 17

// ---- the table of packets ----

WeirFollowEntry *
weir_follow_find (const WeirFollowTrack *track, uint32_t number)
{
  WeirFollowEntry *chunk = track->chunks[number / WEIR_FOLLOW_CHUNK];

  return chunk ? &chunk[number % WEIR_FOLLOW_CHUNK] : NULL;
}

WeirFollowEntry *
weir_follow_make (WeirFollowTrack *track, uint32_t number)
{
  WeirFollowEntry **chunk = &track->chunks[number / WEIR_FOLLOW_CHUNK];

  if (!*chunk)
    *chunk = calloc (WEIR_FOLLOW_CHUNK, sizeof **chunk);
  return *chunk ? &(*chunk)[number % WEIR_FOLLOW_CHUNK] : NULL;
}

static int
init_track (WeirFollow *self, uint32_t number)
{
  WeirFollowTrack *track = &self->tracks[number];
  const WeirDescription *d = self->description;
  uint32_t n_chunks;

  if (d->n_packets[number] == 0 || self->settings.clock_rate[number] == 0)
    return -EINVAL;
  track->n_packets = d->n_packets[number];
  track->clock_rate = self->settings.clock_rate[number];
  track->interval_ns = d->n_frames * d->frame_ns / track->n_packets;
  track->step_ns = d->frame_ns > STEP_MAX_NS ? d->frame_ns : STEP_MAX_NS;
  n_chunks = (track->n_packets + WEIR_FOLLOW_CHUNK - 1) / WEIR_FOLLOW_CHUNK;
  track->chunks = calloc (n_chunks, sizeof (WeirFollowEntry *));
  return track->chunks ? 0 : -ENOMEM;
}

static void
init_receive (WeirFollow *self, uint32_t number, int64_t offset_ns)
{
  const WeirDescribedReceive *from = &self->description->receives[number];
  WeirFollowReceive *receive = &self->receives[number];

  receive->join_ns = from->join_ns + offset_ns;
  receive->leave_ns = from->leave_ns + offset_ns;
  for (uint32_t i = 0; i < self->n_tracks; i++)
    receive->n_wanted += from->packets[i].to - from->packets[i].from;
}

int
weir_follow_init (WeirFollow *self, const WeirDescription *description,
    const WeirFollowSettings *settings, int64_t now_ns)
{
  int64_t offset_ns = now_ns - description->now_ns;
  int result = 0;

  *self = (WeirFollow) { .description = description,
    .settings = *settings,
    .play_ns = description->play_ns + offset_ns,
    .n_tracks = description->n_tracks,
    .request = 1 };
  self->receives = calloc (description->n_receives + 1, sizeof *self->receives);
  if (!self->receives)
    return -ENOMEM;
  for (uint32_t i = 0; i < self->n_tracks && result == 0; i++)
    result = init_track (self, i);
  if (result < 0) {
    weir_follow_clear (self, NULL);
    return result;
  }
  for (uint32_t i = 0; i < description->n_receives; i++)
    init_receive (self, i, offset_ns);
  return 0;
}

static void
clear_track (WeirFollowTrack *track, void (*free_item) (void *item))
{
  uint32_t n_chunks = (track->n_packets + WEIR_FOLLOW_CHUNK - 1) / WEIR_FOLLOW_CHUNK;

  for (uint32_t i = 0; track->chunks && i < n_chunks; i++) {
    for (uint32_t j = 0; free_item && track->chunks[i] && j < WEIR_FOLLOW_CHUNK; j++) {
      if (track->chunks[i][j].present)
        free_item (track->chunks[i][j].item);
    }
    free (track->chunks[i]);
  }
  free (track->chunks);
}

void
weir_follow_clear (WeirFollow *self, void (*free_item) (void *item))
{
  for (uint32_t i = 0; i < self->n_tracks; i++)
    clear_track (&self->tracks[i], free_item);
  free (self->receives);
  memset (self, 0, sizeof *self);
}

// ---- joining and leaving ----

static int64_t
join_lead (const WeirFollow *self)
{
  int64_t lead = WEIR_FOLLOW_JOIN_MIN_NS;

  for (uint32_t i = 0; i < WEIR_FOLLOW_JOINS_KEPT; i++) {
    if (self->latencies_ns[i] > lead)
      lead = self->latencies_ns[i];
  }
  return lead < WEIR_FOLLOW_JOIN_MAX_NS ? lead : WEIR_FOLLOW_JOIN_MAX_NS;
}

bool
weir_follow_join (WeirFollow *self, int64_t now_ns, uint32_t *number)
{
  int64_t lead = join_lead (self);

  self->stats.join_latency_ns = lead;
  for (uint32_t i = 0; i < self->description->n_receives; i++) {
    WeirFollowReceive *receive = &self->receives[i];

    if (receive->state != WEIR_FOLLOW_WAITING || now_ns < receive->join_ns - lead)
      continue;
    if (now_ns >= receive->leave_ns || receive->n_wanted == 0)
      receive->state = WEIR_FOLLOW_LEFT;
    else if (self->stats.groups < self->settings.max_groups) {
      receive->state = WEIR_FOLLOW_JOINED;
      receive->joined_ns = now_ns;
      self->stats.groups++;
      if (self->stats.groups > self->stats.groups_max)
        self->stats.groups_max = self->stats.groups;
      *number = i;
      return true;
    }
  }
  return false;
}

void
weir_follow_leave_now (WeirFollow *self, uint32_t number)
{
  self->receives[number].state = WEIR_FOLLOW_LEFT;
  self->stats.groups--;
}

bool
weir_follow_leave (WeirFollow *self, int64_t now_ns, uint32_t *number)
{
  for (uint32_t i = 0; i < self->description->n_receives; i++) {
    WeirFollowReceive *receive = &self->receives[i];

    if (receive->state != WEIR_FOLLOW_JOINED
        || (receive->n_wanted > 0 && now_ns < receive->leave_ns + LEAVE_AFTER_NS))
      continue;
    weir_follow_leave_now (self, i);
    *number = i;
    return true;
  }
  return false;
}

int64_t
weir_follow_next (const WeirFollow *self)
{
  int64_t next = WEIR_NEVER, lead = join_lead (self);

  for (uint32_t i = 0; i < self->description->n_receives; i++) {
    const WeirFollowReceive *receive = &self->receives[i];
    int64_t due = WEIR_NEVER;

    if (receive->state == WEIR_FOLLOW_JOINED)
      due = receive->n_wanted > 0 ? receive->leave_ns + LEAVE_AFTER_NS : 0;
    else if (receive->state == WEIR_FOLLOW_WAITING
             && self->stats.groups < self->settings.max_groups)
      due = receive->join_ns - lead;
    if (due < next)
      next = due;
  }
  return next;
}

// ---- packets ----

static bool
is_of_sender (WeirFollow *self, WeirFollowTrack *track, uint32_t ssrc)
{
  if (track->ssrc_known && track->ssrc != ssrc) {
    self->stats.strays++;
    return false;
  }
  return true;
}

static bool
is_new (WeirFollow *self, const WeirFollowTrack *track, uint32_t number)
{
  const WeirFollowEntry *entry;

  if (number < track->next) {
    self->stats.too_late++;
    return false;
  }
  entry = weir_follow_find (track, number);
  if (entry && entry->present)
    self->stats.duplicates++;
  return !entry || !entry->present;
}

// Measures the latency of the join with the first packet of a receive.
static void
note_join (WeirFollow *self, const WeirFollowReceive *receive, bool complete, int64_t now_ns)
{
  int64_t latency = now_ns - receive->joined_ns;

  // The group was silent until the receive began: the join was early enough.
  if (complete && latency > self->stats.join_latency_ns)
    latency = self->stats.join_latency_ns;
  self->latencies_ns[self->n_latencies++ % WEIR_FOLLOW_JOINS_KEPT] = latency;
}

// Computes the number of a packet from its 16 bits and the schedule. Returns false if its time or
// number is none of the receive's, such as the end of the transmission before.
static bool
number_of (const WeirFollow *self, uint32_t at, uint32_t track, const WeirRtp *rtp, int64_t now_ns,
    uint32_t *number)
{
  const WeirDescribedReceive *range = &self->description->receives[at];
  const WeirFollowReceive *receive = &self->receives[at];
  const WeirPacketRange *packets = &range->packets[track];
  int64_t frame_ns = self->description->frame_ns, length = (range->to - range->from) * frame_ns;
  int64_t elapsed = now_ns - receive->join_ns, far = length / 2;
  double rate = self->tracks[track].clock_rate / 1e9, expected;
  int64_t ticks = (int64_t) ((double) (range->from * frame_ns + elapsed) * rate), difference;
  int64_t last;

  far = far > FAR_NS ? FAR_NS : far < NEAR_NS ? NEAR_NS : far;
  difference = (int32_t) (rtp->timestamp - (uint32_t) ticks);
  if ((double) llabs (difference) > (double) far * rate)
    return false;
  expected =
      packets->from + (double) (packets->to - packets->from) * (double) elapsed / (double) length;
  last = receive->tracks[track].begun ? receive->tracks[track].last : (int64_t) expected;
  weir_unwrap16 (&last, rtp->seq);
  *number = (uint32_t) last;
  return last >= packets->from && last < packets->to;
}

bool
weir_follow_heard (WeirFollow *self, uint32_t at, uint32_t number, const WeirRtp *rtp, size_t len,
    int64_t now_ns, uint32_t *packet)
{
  WeirFollowReceive *receive = &self->receives[at];
  WeirFollowTrack *track = &self->tracks[number];
  WeirFollowEntry *entry;

  self->stats.group_bytes += len;
  if (receive->state != WEIR_FOLLOW_JOINED || !is_of_sender (self, track, rtp->ssrc))
    return false;
  if (!number_of (self, at, number, rtp, now_ns, packet)) {
    self->stats.strays++;
    return false;
  }
  if (receive->heard_ns == 0)
    note_join (
        self, receive, *packet == self->description->receives[at].packets[number].from, now_ns);
  receive->heard_ns = now_ns;
  if (!receive->tracks[number].begun || *packet > receive->tracks[number].last) {
    receive->tracks[number].begun = true;
    receive->tracks[number].last = *packet;
    receive->tracks[number].at_ns = now_ns;
    receive->tracks[number].marker = rtp->marker;
  }
  entry = weir_follow_find (track, *packet);
  if (entry && entry->present)
    entry->by_group = true;
  return is_new (self, track, *packet);
}

bool
weir_follow_answered (
    WeirFollow *self, uint32_t number, uint32_t packet, const WeirRtp *rtp, size_t len)
{
  WeirFollowTrack *track = &self->tracks[number];

  self->stats.unicast_bytes += len;
  return packet < track->n_packets && (uint16_t) packet == rtp->seq
         && is_of_sender (self, track, rtp->ssrc) && is_new (self, track, packet);
}

// Counts a packet as there or passed in the receives that it belongs to.
static void
settle (WeirFollow *self, uint32_t track, uint32_t number)
{
  for (uint32_t i = 0; i < self->description->n_receives; i++) {
    const WeirPacketRange *range = &self->description->receives[i].packets[track];

    if (number >= range->from && number < range->to)
      self->receives[i].n_wanted--;
  }
}

int64_t
weir_follow_ticks_to_ns (const WeirFollowTrack *track, int64_t ticks)
{
  return (int64_t) ((__int128) ticks * 1000000000 / track->clock_rate);
}

// Notes the time between two packets of different frames.
static void
note_step (const WeirFollow *self, WeirFollowTrack *track, int64_t ticks)
{
  int64_t step_ns = weir_follow_ticks_to_ns (track, ticks);

  if (step_ns < self->description->frame_ns)
    step_ns = self->description->frame_ns;
  if (ticks > 0 && step_ns < track->step_ns)
    track->step_ns = step_ns;
}

int
weir_follow_put (WeirFollow *self, uint32_t number, uint32_t packet, const WeirRtp *rtp,
    bool by_group, int64_t now_ns, void *item)
{
  WeirFollowTrack *track = &self->tracks[number];
  const WeirFollowEntry *before;
  WeirFollowEntry *entry;
  int64_t step;

  if (packet < track->next)
    return -EEXIST;
  entry = weir_follow_make (track, packet);
  if (!entry)
    return -ENOMEM;
  if (entry->present)
    return -EEXIST;
  *entry = (WeirFollowEntry) { .item = item,
    .at_ns = now_ns,
    .timestamp = rtp->timestamp,
    .present = true,
    .by_group = by_group,
    .marker = rtp->marker };
  track->ssrc = rtp->ssrc;
  track->ssrc_known = true;
  if (packet < track->head + AHEAD_PACKETS)
    track->found = false;
  settle (self, number, packet);
  before = packet > 0 ? weir_follow_find (track, packet - 1) : NULL;
  step = before && before->present ? (int32_t) (rtp->timestamp - before->timestamp) : 0;
  note_step (self, track, step);
  return 0;
}

// ---- giving out ----

// Unwraps a timestamp to the value nearest to `near`.
static int64_t
unwrap (int64_t near, uint32_t timestamp)
{
  return near + (int32_t) (timestamp - (uint32_t) near);
}

// Finds the next packet that is there, and when it is due.
static bool
find_head (WeirFollowTrack *track)
{
  uint32_t at = track->next, frames = 0;
  int64_t last;

  while (at < track->n_packets) {
    const WeirFollowEntry *entry = weir_follow_find (track, at);

    if (entry && entry->present)
      break;
    at += entry ? 1 : WEIR_FOLLOW_CHUNK - at % WEIR_FOLLOW_CHUNK;
  }
  track->found = at < track->n_packets;
  if (!track->found)
    return false;
  track->head = at;
  track->head_ticks = last = unwrap (track->ticks, weir_follow_find (track, at)->timestamp);
  track->head_due_ticks = track->head_ticks;
  for (uint32_t n = 1; n < AHEAD_PACKETS && at + n < track->n_packets; n++) {
    const WeirFollowEntry *entry = weir_follow_find (track, at + n);
    int64_t ticks;

    if (!entry || !entry->present)
      continue;
    ticks = unwrap (track->head_ticks, entry->timestamp);
    frames += ticks != last;
    if (frames == AHEAD_FRAMES)
      break;
    last = ticks;
    if (ticks < track->head_due_ticks)
      track->head_due_ticks = ticks;
  }
  if (track->head_due_ticks < track->due_ticks)
    track->head_due_ticks = track->due_ticks;
  return true;
}

// Passes the packet `track->next`, which is there or lost.
static void
pass (WeirFollow *self, uint32_t number)
{
  WeirFollowTrack *track = &self->tracks[number];
  WeirFollowEntry *entry = weir_follow_find (track, track->next);
  bool present = entry && entry->present;

  if (present)
    entry->present = false; // the caller has its item
  else
    settle (self, number, track->next);
  for (uint32_t i = 0; i < self->description->n_receives && !(present && entry->by_group); i++) {
    const WeirPacketRange *range = &self->description->receives[i].packets[number];

    if (track->next >= range->from && track->next < range->to) {
      self->stats.missed++;
      self->stats.repaired += present;
      break;
    }
  }
  self->stats.passed++;
  self->stats.lost += !present;
  if (++track->next % WEIR_FOLLOW_CHUNK == 0) {
    free (track->chunks[track->next / WEIR_FOLLOW_CHUNK - 1]);
    track->chunks[track->next / WEIR_FOLLOW_CHUNK - 1] = NULL;
  }
}

// Passes the packet `track->head`. The next one, if it is of the same frame, is due at once.
static void
pass_head (WeirFollow *self, uint32_t number)
{
  WeirFollowTrack *track = &self->tracks[number];
  const WeirFollowEntry *next = NULL;

  pass (self, number);
  if (track->next < track->n_packets)
    next = weir_follow_find (track, track->next);
  track->head = track->next;
  track->found = next && next->present && next->timestamp == (uint32_t) track->head_ticks;
}

// Moves the title for a packet that is given out much too late, or for the first one that came too
// late. Returns whether it did.
static bool
move_title (WeirFollow *self, int64_t due_ns, int64_t now_ns, bool first_late)
{
  int64_t by_ns = now_ns - due_ns;

  if (by_ns < WEIR_FOLLOW_STALL_NS && !first_late)
    return false;
  self->play_ns += by_ns;
  if (self->stats.first_ns > 0) {
    self->stats.stalls++;
    self->stats.stalled_ns += by_ns;
  }
  return true;
}

bool
weir_follow_take (
    WeirFollow *self, uint32_t number, int64_t now_ns, WeirFollowOut *out, int64_t *due_ns)
{
  WeirFollowTrack *track = &self->tracks[number];
  bool first = self->stats.first_ns == 0;
  const WeirFollowEntry *entry;

  *due_ns = WEIR_NEVER;
  if (!track->found && !find_head (track))
    return false;
  *due_ns = self->play_ns + weir_follow_ticks_to_ns (track, track->head_due_ticks)
            + self->settings.slack_ns;
  if (track->head > track->next
      && (self->unreachable
          || weir_follow_ticks_to_ns (track, track->head_due_ticks - track->due_ticks)
                 > WEIR_FOLLOW_GAP_NS))
    *due_ns = WEIR_NEVER;
  if (*due_ns > now_ns)
    return false;
  *out = (WeirFollowOut) { .number = track->head, .lost = track->head - track->next };
  while (track->next < track->head)
    pass (self, number);
  entry = weir_follow_find (track, track->head);
  out->item = entry->item;
  self->stats.late += entry->at_ns > *due_ns;
  self->stats.in_time += entry->at_ns <= *due_ns;
  out->stalled = move_title (self, *due_ns, now_ns, first && entry->at_ns > *due_ns);
  out->title_ns = weir_follow_ticks_to_ns (track, track->head_ticks);
  out->play_ns = self->play_ns;
  track->ticks = track->head_ticks;
  track->due_ticks = track->head_due_ticks;
  pass_head (self, number);
  if (first)
    self->stats.first_ns = now_ns;
  return true;
}

bool
weir_follow_ended (const WeirFollow *self, uint32_t track)
{
  return self->tracks[track].next == self->tracks[track].n_packets;
}
