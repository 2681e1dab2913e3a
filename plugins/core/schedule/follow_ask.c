// SPDX-License-Identifier: LGPL-2.1-or-later
// Finds the packets that no group will bring in time.

#include "run/clock.h"
#include "schedule/follow.h"

#define SILENT_NS INT64_C (500000000) // a group that sends nothing for so long is not relied upon
#define LATE_MIN_NS INT64_C (5000000) // a packet is overdue so long after it should have come
#define LATE_MAX_NS INT64_C (50000000)

typedef struct {
  WeirFollow *self;
  int64_t now_ns;
  WeirFollowRange *ranges;
  size_t n, max;
  uint32_t packets_left;
} Asking;

// Finds the receive that a packet belongs to; the newest, if there are several. Returns its number,
// or -1 for none. The answer is the same for all packets before `*until`.
static int
find_receive (const WeirFollow *self, uint32_t track, uint32_t packet, uint32_t *until)
{
  const WeirDescription *d = self->description;
  int found = -1;

  *until = d->n_packets[track];
  for (uint32_t i = 0; i < d->n_receives; i++) {
    const WeirPacketRange *range = &d->receives[i].packets[track];

    if (packet >= range->from && packet < range->to) {
      found = (int) i;
      if (range->to < *until)
        *until = range->to;
    } else if (packet < range->from && range->from < range->to && range->from < *until)
      *until = range->from;
  }
  return found;
}

static int64_t
tolerance (const WeirFollow *self)
{
  int64_t third = self->settings.slack_ns / 3;

  return third < LATE_MIN_NS ? LATE_MIN_NS : third > LATE_MAX_NS ? LATE_MAX_NS : third;
}

// Returns when a packet should have come, if `last` was the last one that came, at `at_ns`. All
// packets of a frame come at once, and the end of a frame is not known of packets that are missing.
static int64_t
expect (const Asking *a, const WeirFollowTrack *t, uint32_t last, int64_t at_ns, uint32_t packet)
{
  int64_t due = at_ns;

  if (a->now_ns - at_ns > 2 * t->step_ns + tolerance (a->self))
    return at_ns + t->step_ns + (packet - last - 1) * t->interval_ns;
  for (uint32_t i = last; i < packet && due <= a->now_ns; i++) {
    const WeirFollowEntry *entry = i >= t->next ? weir_follow_find (t, i) : NULL;

    if (!entry || !entry->present || entry->marker)
      due += t->step_ns;
  }
  return due;
}

// Reports whether a packet of a joined receive was not sent in time, or was overtaken.
static bool
is_overdue (const Asking *a, uint32_t track, uint32_t packet, uint32_t number)
{
  const WeirFollow *self = a->self;
  const WeirFollowReceive *receive = &self->receives[number];
  const WeirFollowTrack *t = &self->tracks[track];
  uint32_t from = self->description->receives[number].packets[track].from;
  int64_t since = receive->joined_ns > receive->join_ns ? receive->joined_ns : receive->join_ns;
  int64_t due;

  if (a->now_ns - (receive->heard_ns > since ? receive->heard_ns : since) > SILENT_NS)
    return true;
  if (!receive->tracks[track].begun)
    due = since + t->step_ns + (packet - from) * t->interval_ns;
  else if (packet <= receive->tracks[track].last)
    return true;
  else
    due = expect (a, t, receive->tracks[track].last, receive->tracks[track].at_ns, packet);
  return a->now_ns > due + tolerance (self);
}

// Reports whether a group may still bring a packet in time.
static bool
is_coming (const Asking *a, uint32_t track, uint32_t packet, int number)
{
  const WeirFollowReceive *receive;

  if (number < 0)
    return false;
  receive = &a->self->receives[number];
  if (receive->state == WEIR_FOLLOW_LEFT)
    return false;
  if (receive->state == WEIR_FOLLOW_WAITING)
    return a->now_ns < receive->join_ns + tolerance (a->self);
  return !is_overdue (a, track, packet, (uint32_t) number);
}

// Adds a packet to the ranges. Returns false if there is no room.
static bool
add (Asking *a, uint32_t track, uint32_t packet)
{
  WeirFollowTrack *t = &a->self->tracks[track];
  WeirFollowRange *last = a->n > 0 ? &a->ranges[a->n - 1] : NULL;
  WeirFollowEntry *entry;

  if (a->packets_left == 0)
    return false;
  entry = weir_follow_make (t, packet);
  if (!entry)
    return false;
  if (last && last->track == track && last->to == packet)
    last->to++;
  else if (a->n < a->max)
    a->ranges[a->n++] = (WeirFollowRange) { track, packet, packet + 1 };
  else
    return false;
  a->packets_left--;
  entry->asked = a->self->request;
  return true;
}

// Returns the time in the title before which no packet behind a receive is due.
static int64_t
end_of (const WeirFollow *self, int number)
{
  return self->description->receives[number].to * self->description->frame_ns;
}

// Goes through the packets that are due within WEIR_FOLLOW_LEAD_NS, by the times of those that are
// there and the average rate.
static void
ask_of_track (Asking *a, uint32_t track)
{
  const WeirFollow *self = a->self;
  const WeirFollowTrack *t = &self->tracks[track];
  int64_t latest = a->now_ns + WEIR_FOLLOW_LEAD_NS - self->play_ns - self->settings.slack_ns;
  int64_t ticks = t->ticks, time_ns = weir_follow_ticks_to_ns (t, t->due_ticks);
  uint32_t at = t->next, until = t->next;
  int receive = -1;

  while (at < t->n_packets && time_ns <= latest) {
    const WeirFollowEntry *entry = weir_follow_find (t, at);

    if (entry && entry->present) {
      ticks += (int32_t) (entry->timestamp - (uint32_t) ticks);
      time_ns = weir_follow_ticks_to_ns (t, ticks);
      at++;
      continue;
    }
    if (at >= until)
      receive = find_receive (self, track, at, &until);
    if (is_coming (a, track, at, receive)) {
      at = until;
      if (end_of (self, receive) > time_ns)
        time_ns = end_of (self, receive);
      continue;
    }
    if ((!entry || entry->asked != self->request) && !add (a, track, at))
      return;
    time_ns += t->interval_ns;
    at++;
  }
}

size_t
weir_follow_ask (
    WeirFollow *self, int64_t now_ns, WeirFollowRange *ranges, size_t max, uint32_t max_packets)
{
  Asking a = { .self = self, .now_ns = now_ns, .ranges = ranges, .max = max };

  for (uint32_t i = 0; i < self->n_tracks; i++) {
    // So that no track takes the room of the others.
    a.packets_left += max_packets / self->n_tracks;
    a.max = max * (i + 1) / self->n_tracks;
    ask_of_track (&a, i);
  }
  return a.n;
}

void
weir_follow_ask_again (WeirFollow *self)
{
  if (++self->request == 0)
    self->request = 1;
}
