// SPDX-License-Identifier: LGPL-2.1-or-later
// Finds what a client that already plays can receive from a server that has begun anew.

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/follow.h"

// Finds the last transmission of a send that is not too late for the client. Returns whether there
// is one that has not ended.
static bool
find_transmission (const WeirDescription *d, const WeirDescribedSend *send, int64_t play_ns,
    WeirDescribedReceive *receive)
{
  int64_t due_ns = play_ns + send->from * d->frame_ns;
  int64_t n = due_ns < send->start_ns ? -1 : (due_ns - send->start_ns) / send->period_ns;

  if (send->repeat != WEIR_REPEAT_FOREVER && n >= send->repeat)
    n = (int64_t) send->repeat - 1;
  if (n < 0)
    return false;
  *receive = (WeirDescribedReceive) { .channel = send->channel,
    .from = send->from,
    .to = send->to,
    .join_ns = send->start_ns + n * send->period_ns };
  receive->leave_ns = receive->join_ns + (send->to - send->from) * d->frame_ns;
  memcpy (receive->packets, send->packets, sizeof receive->packets);
  return receive->leave_ns > d->now_ns;
}

// Adds a receive, unless another one has its frames. Of the two, that stays which needs less room.
static void
add (WeirDescription *d, const WeirDescribedReceive *receive)
{
  for (uint32_t i = 0; i < d->n_receives; i++) {
    WeirDescribedReceive *other = &d->receives[i];

    if (other->from > receive->from || other->to < receive->to)
      continue;
    if (other->from == receive->from && other->to == receive->to
        && other->join_ns < receive->join_ns)
      *other = *receive;
    return;
  }
  d->receives[d->n_receives++] = *receive; // there is at most one for each send
}

static uint64_t
count_wanted (const WeirFollow *self, const WeirDescribedReceive *receive)
{
  uint64_t n = 0;

  for (uint32_t track = 0; track < self->n_tracks; track++) {
    const WeirFollowTrack *t = &self->tracks[track];
    uint32_t at = receive->packets[track].from;

    for (at = at > t->next ? at : t->next; at < receive->packets[track].to; at++) {
      const WeirFollowEntry *entry = weir_follow_find (t, at);

      n += !entry || !entry->present;
    }
  }
  return n;
}

// Returns when the title's start would have to play for the title to go on now, if it waits for
// packets; else when it plays.
static int64_t
play_from (const WeirFollow *self, int64_t now_ns)
{
  int64_t played_ns = 0, waits_ns;

  for (uint32_t i = 0; i < self->n_tracks; i++) {
    const WeirFollowTrack *t = &self->tracks[i];
    const WeirFollowEntry *next = t->next < t->n_packets ? weir_follow_find (t, t->next) : NULL;
    int64_t due_ns = weir_follow_ticks_to_ns (t, t->due_ticks);

    if (next && next->present)
      return self->play_ns;
    if (due_ns > played_ns)
      played_ns = due_ns;
  }
  waits_ns = now_ns - self->settings.slack_ns - played_ns - self->play_ns;
  return self->play_ns + (waits_ns > WEIR_FOLLOW_STALL_NS ? waits_ns : 0);
}

int
weir_follow_resume (WeirFollow *self, WeirDescription *next, int64_t now_ns)
{
  int64_t offset_ns = now_ns - next->now_ns, play_ns = play_from (self, now_ns) - offset_ns;
  WeirFollowReceive *receives;
  WeirDescribedReceive receive;

  if (next->n_tracks != self->n_tracks
      || memcmp (next->n_packets, self->description->n_packets, sizeof next->n_packets) != 0)
    return -EINVAL;
  receives = calloc (next->n_sends + 1, sizeof *receives);
  if (!receives)
    return -ENOMEM;
  next->n_receives = 0;
  for (uint32_t i = 0; i < next->n_sends; i++) {
    if (find_transmission (next, &next->sends[i], play_ns, &receive))
      add (next, &receive);
  }
  free (self->receives);
  self->receives = receives;
  self->description = next;
  self->stats.groups = 0;
  for (uint32_t i = 0; i < next->n_receives; i++)
    receives[i] = (WeirFollowReceive) { .join_ns = next->receives[i].join_ns + offset_ns,
      .leave_ns = next->receives[i].leave_ns + offset_ns,
      .n_wanted = count_wanted (self, &next->receives[i]) };
  return 0;
}
