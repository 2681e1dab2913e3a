// SPDX-License-Identifier: LGPL-2.1-or-later
#include "schedule/live.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "run/clock.h"

#define NO_SEAM INT64_MAX
#define APART_MAX (WEIR_LIVE_PACKETS / 2) // further numbers are of another run of the stream
#define REORDER_NS INT64_C (5000000)      // a packet is missing so long after a later one came
// A group that brings nothing for twice its longest gap is not relied upon; between these bounds,
// and after half the slack at the latest, so that what it did not bring can come in time.
#define SILENT_MIN_NS INT64_C (50000000)
#define SILENT_MAX_NS INT64_C (500000000)
#define GAPS_SPAN_NS INT64_C (5000000000)
#define TAIL_MIN_NS INT64_C (10000000) // between requests for the newest packets
#define TAIL_MAX_NS INT64_C (500000000)
#define TAIL_PACKETS 64
#define FOREIGN_NS INT64_C (1000000000) // before another description
#define LEFT_NS INT64_C (1000000000)    // a group that brings nothing for so long has moved
#define UNHEARD_NS INT64_C (5000000000) // the same for a group that has never brought anything
#define STALE_NS INT64_C (3000000000)
#define DRIFT_SPAN_NS INT64_C (5000000000)
#define DRIFT_MIN_NS INT64_C (2000000) // before the clock is followed
#define DRIFT_JUMP_NS INT64_C (200000000)

static WeirLiveEntry *
entry_of (const WeirLiveTrack *track, int64_t number)
{
  return &track->entries[number & (WEIR_LIVE_PACKETS - 1)];
}

static bool
is_there (const WeirLiveTrack *track, int64_t number)
{
  return number >= track->low && number < track->end && entry_of (track, number)->present;
}

static int64_t
number_of (const WeirLiveTrack *track, uint16_t seq)
{
  return track->end - 1 + (int16_t) (uint16_t) (seq - track->seq);
}

static uint16_t
seq_of (const WeirLiveTrack *track, int64_t number)
{
  return (uint16_t) (track->seq + (number - (track->end - 1)));
}

// ---- beginning ----

int
weir_live_init (WeirLive *self, uint32_t n_tracks, const WeirFollowSettings *settings)
{
  int result = 0;

  *self = (WeirLive) { .n_tracks = n_tracks, .slack_ns = settings->slack_ns };
  for (uint32_t i = 0; i < n_tracks && result == 0; i++) {
    WeirLiveTrack *track = &self->tracks[i];

    track->clock_rate = settings->clock_rate[i];
    track->seam = NO_SEAM;
    track->entries = calloc (WEIR_LIVE_PACKETS, sizeof *track->entries);
    result = track->clock_rate == 0 ? -EINVAL : track->entries ? 0 : -ENOMEM;
  }
  if (result < 0)
    weir_live_clear (self, NULL);
  return result;
}

void
weir_live_clear (WeirLive *self, void (*free_item) (void *item))
{
  void *item;

  weir_live_restart (self);
  while (weir_live_drop (self, &item)) {
    if (free_item)
      free_item (item);
  }
  for (uint32_t i = 0; i < self->n_tracks; i++)
    free (self->tracks[i].entries);
  memset (self, 0, sizeof *self);
}

void
weir_live_begin (WeirLive *self, const WeirDescribedTime *times, int64_t now_ns)
{
  for (uint32_t i = 0; i < self->n_tracks; i++) {
    self->times[i] = times[i];
    self->tracks[i].seam = NO_SEAM;
  }
  self->stats.groups = self->stats.groups_max = 1;
  self->answered = self->foreign = false;
  self->begun_ns = now_ns;
  self->heard_ns = 0;
  self->tail_ns = now_ns;
  self->tail_pause_ns = TAIL_MIN_NS;
}

void
weir_live_restart (WeirLive *self)
{
  for (uint32_t i = 0; i < self->n_tracks; i++) {
    WeirLiveTrack *track = &self->tracks[i];

    track->next = track->end; // all that is there is to be dropped
    track->known = track->begun = track->time_known = false;
    track->seam = NO_SEAM;
    track->moved = true;
  }
  self->playing = self->drift.known = false;
  self->drift.since_ns = 0;
}

bool
weir_live_drop (WeirLive *self, void **item)
{
  for (uint32_t i = 0; i < self->n_tracks; i++) {
    WeirLiveTrack *track = &self->tracks[i];

    while (track->low < track->next) {
      WeirLiveEntry *entry = entry_of (track, track->low++);

      if (!entry->present)
        continue;
      entry->present = false;
      *item = entry->item;
      return true;
    }
  }
  return false;
}

// ---- packets ----

static bool
is_new (WeirLive *self, const WeirLiveTrack *track, uint16_t seq)
{
  int64_t number;

  if (!track->known)
    return true;
  number = number_of (track, seq);
  if (track->begun && number < track->next) {
    self->stats.too_late++;
    return false;
  }
  if (is_there (track, number))
    self->stats.duplicates++;
  return !is_there (track, number);
}

// Notes the time between two packets of the group.
static void
note_gap (WeirLive *self, int64_t now_ns)
{
  int64_t gap = self->heard_ns > 0 ? now_ns - self->heard_ns : 0;

  if (now_ns - self->gaps.since_ns > GAPS_SPAN_NS) {
    self->gaps.since_ns = now_ns;
    self->gaps.before_ns = self->gaps.longest_ns;
    self->gaps.longest_ns = 0;
  }
  if (gap > self->gaps.longest_ns)
    self->gaps.longest_ns = gap;
}

bool
weir_live_heard (WeirLive *self, uint32_t number, const WeirRtp *rtp, size_t len, int64_t now_ns)
{
  WeirLiveTrack *track = &self->tracks[number];
  int64_t at;

  self->stats.group_bytes += len;
  if (track->known && rtp->ssrc != track->ssrc) {
    self->stats.strays++;
    self->foreign = true;
    return false;
  }
  if (self->heard_ns == 0)
    self->stats.join_latency_ns = now_ns - self->begun_ns;
  note_gap (self, now_ns);
  self->came_ns = self->heard_ns = now_ns;
  if (track->known) {
    at = number_of (track, rtp->seq);
    if (track->seam == NO_SEAM)
      track->seam = at;
    if (is_there (track, at))
      entry_of (track, at)->by_group = true;
  }
  return is_new (self, track, rtp->seq);
}

// Reports whether a packet of the newest ones does not go on with what is known of its track.
static bool
is_anew (const WeirLiveTrack *track, const WeirRtp *rtp)
{
  int64_t near = track->begun ? track->next : track->end;

  return track->known
         && (rtp->ssrc != track->ssrc || llabs (number_of (track, rtp->seq) - near) > APART_MAX);
}

bool
weir_live_answered (WeirLive *self, uint32_t number, const WeirRtp *rtp, size_t len, int64_t now_ns)
{
  WeirLiveTrack *track = &self->tracks[number];

  self->stats.unicast_bytes += len;
  if (!self->answered && is_anew (track, rtp))
    weir_live_restart (self);
  if (track->known && rtp->ssrc != track->ssrc) {
    self->stats.strays++;
    return false;
  }
  self->came_ns = now_ns;
  return is_new (self, track, rtp->seq);
}

// Unwraps a timestamp, as ticks from the instant that all tracks have in common. Without that
// instant, the first packet is of the time at which it comes.
static int64_t
ticks_of (WeirLive *self, uint32_t number, uint32_t timestamp, int64_t now_ns)
{
  WeirLiveTrack *track = &self->tracks[number];
  const WeirDescribedTime *time = &self->times[number];

  if (track->time_known)
    return track->ticks + (int32_t) (timestamp - track->timestamp);
  if (time->known)
    return (int32_t) (timestamp - time->timestamp);
  return (int64_t) ((__int128) (now_ns - self->begun_ns) * track->clock_rate / 1000000000);
}

static int64_t
to_ns (const WeirLiveTrack *track, int64_t ticks)
{
  return (int64_t) ((__int128) ticks * 1000000000 / track->clock_rate);
}

// Follows the difference of the sender's clock and the caller's, by the packets of the group's
// first track that waited least on the way.
static void
note_arrival (WeirLive *self, uint32_t number, int64_t time_ns, int64_t now_ns)
{
  int64_t offset = now_ns - time_ns, by_ns;

  if (number > 0 || !self->playing)
    return;
  if (self->drift.since_ns == 0 || offset < self->drift.least_ns)
    self->drift.least_ns = offset;
  if (self->drift.since_ns == 0)
    self->drift.since_ns = now_ns;
  if (now_ns - self->drift.since_ns < DRIFT_SPAN_NS)
    return;
  by_ns = self->drift.least_ns - self->drift.first_ns;
  if (!self->drift.known)
    self->drift.first_ns = self->drift.least_ns;
  else if (llabs (by_ns) > DRIFT_MIN_NS) {
    self->drift.first_ns = self->drift.least_ns;
    self->play_ns += by_ns;
    self->tracks[0].moved = self->tracks[0].moved || llabs (by_ns) > DRIFT_JUMP_NS;
  }
  self->drift.known = true;
  self->drift.since_ns = 0;
}

// Numbers the first packet of a track, with room for packets before it that come later.
static void
begin_numbers (WeirLiveTrack *track, const WeirRtp *rtp)
{
  track->end += WEIR_LIVE_PACKETS;
  track->low = track->next = track->end;
  track->seq = (uint16_t) (rtp->seq - 1);
  track->ssrc = rtp->ssrc;
  track->known = true;
}

// Makes room for a packet that is not there. Returns 0, -EEXIST if it is passed, or -ENOSPC.
static int
reach (WeirLiveTrack *track, int64_t at)
{
  int64_t from = track->begun || at > track->next ? track->next : at;

  if (at < from)
    return -EEXIST;
  if ((at >= track->end ? at + 1 : track->end) - from > WEIR_LIVE_PACKETS)
    return -ENOSPC;
  for (; track->next > from; track->next--)
    *entry_of (track, track->next - 1) = (WeirLiveEntry) { 0 };
  if (track->low > track->next)
    track->low = track->next;
  for (; track->end <= at; track->end++, track->seq++)
    *entry_of (track, track->end) = (WeirLiveEntry) { 0 };
  return 0;
}

int
weir_live_put (
    WeirLive *self, uint32_t number, const WeirRtp *rtp, bool by_group, int64_t now_ns, void *item)
{
  WeirLiveTrack *track = &self->tracks[number];
  int64_t at;
  int result;

  if (!track->known)
    begin_numbers (track, rtp);
  at = number_of (track, rtp->seq);
  if (is_there (track, at))
    return -EEXIST;
  result = reach (track, at);
  if (result < 0)
    return result;
  // The first packet by unicast is a join point; what the group brought before is not needed.
  if (!track->begun && (!by_group || self->answered)) {
    track->begun = true;
    track->next = at;
  }
  if (by_group && track->seam == NO_SEAM)
    track->seam = at;
  track->ticks = ticks_of (self, number, rtp->timestamp, now_ns);
  track->timestamp = rtp->timestamp;
  track->time_known = true;
  *entry_of (track, at) = (WeirLiveEntry) { .item = item,
    .at_ns = now_ns,
    .timestamp = rtp->timestamp,
    .present = true,
    .by_group = by_group };
  if (by_group)
    note_arrival (self, number, to_ns (track, track->ticks), now_ns);
  return 0;
}

void
weir_live_answer_ends (WeirLive *self)
{
  self->answered = true;
  for (uint32_t i = 0; i < self->n_tracks; i++)
    self->tracks[i].begun = self->tracks[i].begun || self->tracks[i].known;
}

// ---- giving out ----

// Returns the number of the next packet that is there, or `end`.
static int64_t
find_head (const WeirLiveTrack *track)
{
  int64_t at = track->next;

  while (at < track->end && !entry_of (track, at)->present)
    at++;
  return at;
}

static int64_t
time_of (const WeirLiveTrack *track, int64_t number)
{
  uint32_t timestamp = entry_of (track, number)->timestamp;

  return to_ns (track, track->ticks + (int32_t) (timestamp - track->timestamp));
}

// The earliest of the tracks' first packets plays now.
static void
begin_to_play (WeirLive *self, int64_t now_ns)
{
  self->first_ns = INT64_MAX;
  for (uint32_t i = 0; i < self->n_tracks; i++) {
    const WeirLiveTrack *track = &self->tracks[i];
    int64_t head = track->begun ? find_head (track) : track->end;

    if (head < track->end && time_of (track, head) < self->first_ns)
      self->first_ns = time_of (track, head);
  }
  self->play_ns = now_ns;
  self->playing = true;
  if (self->stats.first_ns == 0)
    self->stats.first_ns = now_ns;
}

// Returns how long a packet behind a gap waits.
static int64_t
patience (const WeirLive *self, const WeirLiveTrack *track)
{
  bool seam = track->next < track->seam && self->slack_ns < WEIR_LIVE_SEAM_NS;

  return seam ? WEIR_LIVE_SEAM_NS : self->slack_ns;
}

static void
count (WeirFollowStats *stats, const WeirLiveTrack *track, int64_t number, bool present)
{
  bool of_group = number >= track->seam;
  bool missed = of_group && !(present && entry_of (track, number)->by_group);

  stats->passed++;
  stats->lost += !present;
  stats->missed += missed;
  stats->repaired += missed && present;
}

bool
weir_live_take (
    WeirLive *self, uint32_t number, int64_t now_ns, WeirFollowOut *out, int64_t *due_ns)
{
  WeirLiveTrack *track = &self->tracks[number];
  int64_t head = track->begun ? find_head (track) : track->end;
  WeirLiveEntry *entry;
  bool in_time;

  *due_ns = WEIR_NEVER;
  if (head == track->end)
    return false;
  entry = entry_of (track, head);
  if (head > track->next)
    *due_ns = entry->at_ns + patience (self, track);
  if (head > track->next && *due_ns > now_ns)
    return false;
  if (!self->playing)
    begin_to_play (self, now_ns);
  *out = (WeirFollowOut) { .item = entry->item,
    .number = (uint32_t) head,
    .lost = (uint32_t) (head - track->next),
    .title_ns = time_of (track, head) - self->first_ns,
    .play_ns = self->play_ns,
    .stalled = track->moved };
  in_time = entry->at_ns <= self->play_ns + out->title_ns + self->slack_ns;
  self->stats.in_time += in_time;
  self->stats.late += !in_time;
  for (; track->next <= head; track->next++)
    count (&self->stats, track, track->next, track->next == head);
  track->low = track->next;
  track->moved = entry->present = false;
  return true;
}

// ---- asking ----

typedef struct {
  WeirFollowRange *ranges;
  size_t n, max;
  uint32_t packets_left;
} Asking;

// Adds a packet to the ranges. Returns false if there is no room.
static bool
add (Asking *a, uint32_t track, uint16_t seq)
{
  WeirFollowRange *last = a->n > 0 ? &a->ranges[a->n - 1] : NULL;

  if (a->packets_left == 0)
    return false;
  if (last && last->track == track && last->to == seq)
    last->to++;
  else if (a->n < a->max)
    a->ranges[a->n++] = (WeirFollowRange) { track, seq, seq + 1u };
  else
    return false;
  a->packets_left--;
  return true;
}

// Returns the number before which all packets should have come: of the newest packet that came some
// time ago, or of the group's first one.
static int64_t
overdue_until (const WeirLiveTrack *track, int64_t now_ns)
{
  int64_t at = track->end, low = track->next;

  if (track->seam != NO_SEAM && track->seam > low)
    low = track->seam < track->end ? track->seam : track->end;
  while (at > low
         && !(entry_of (track, at - 1)->present
              && now_ns - entry_of (track, at - 1)->at_ns >= REORDER_NS))
    at--;
  return at;
}

static void
ask_for_gaps (Asking *a, const WeirLive *self, uint32_t number, int64_t now_ns)
{
  const WeirLiveTrack *track = &self->tracks[number];
  int64_t until = overdue_until (track, now_ns);

  for (int64_t at = track->next; at < until; at++) {
    if (!entry_of (track, at)->present && !add (a, number, seq_of (track, at)))
      return;
  }
}

static int64_t
least (int64_t a, int64_t b)
{
  return a < b ? a : b;
}

static bool
is_silent (const WeirLive *self, int64_t now_ns)
{
  bool before = self->gaps.before_ns > self->gaps.longest_ns;
  int64_t gap = before ? self->gaps.before_ns : self->gaps.longest_ns;
  int64_t wait = least (2 * gap, least (self->slack_ns / 2, SILENT_MAX_NS));

  return now_ns - self->heard_ns > (wait > SILENT_MIN_NS ? wait : SILENT_MIN_NS);
}

// Asks for what comes next of the tracks whose group is silent.
static void
ask_for_tails (Asking *a, WeirLive *self, int64_t now_ns)
{
  bool silent = is_silent (self, now_ns), brought = false;

  if (now_ns < self->tail_ns)
    return;
  for (uint32_t i = 0; i < self->n_tracks; i++) {
    WeirLiveTrack *track = &self->tracks[i];

    brought = brought || track->end > track->tail_end;
    track->tail_end = track->end;
    if (!track->begun || (track->seam != NO_SEAM && !silent))
      continue;
    for (uint16_t n = 0; n < TAIL_PACKETS && add (a, i, (uint16_t) (track->seq + 1 + n)); n++)
      ;
  }
  self->tail_pause_ns = brought ? TAIL_MIN_NS : 2 * self->tail_pause_ns;
  if (self->tail_pause_ns > TAIL_MAX_NS)
    self->tail_pause_ns = TAIL_MAX_NS;
  self->tail_ns = now_ns + self->tail_pause_ns;
}

size_t
weir_live_ask (
    WeirLive *self, int64_t now_ns, WeirFollowRange *ranges, size_t max, uint32_t max_packets)
{
  Asking a = { .ranges = ranges, .max = max, .packets_left = max_packets };

  for (uint32_t i = 0; i < self->n_tracks; i++) {
    if (self->tracks[i].begun)
      ask_for_gaps (&a, self, i, now_ns);
  }
  if (self->answered)
    ask_for_tails (&a, self, now_ns);
  return a.n;
}

bool
weir_live_is_stale (const WeirLive *self, int64_t now_ns)
{
  int64_t since = self->came_ns > self->begun_ns ? self->came_ns : self->begun_ns;
  bool left = self->heard_ns > 0 ? self->came_ns - self->heard_ns > LEFT_NS
                                 : self->came_ns - self->begun_ns > UNHEARD_NS;

  return left || (self->foreign && now_ns - self->begun_ns > FOREIGN_NS)
         || now_ns - since > STALE_NS;
}
