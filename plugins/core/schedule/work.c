// SPDX-License-Identifier: LGPL-2.1-or-later
#include "schedule/work.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int
weir_transmission_init (WeirTransmission *self, uint32_t n_frames, int64_t frame_ns)
{
  if (n_frames == 0 || frame_ns <= 0 || frame_ns > WEIR_TITLE_NS_MAX / n_frames)
    return -EINVAL;
  *self = (WeirTransmission) { .n_frames = n_frames, .frame_ns = frame_ns };
  return 0;
}

void
weir_transmission_free (WeirTransmission *self)
{
  for (size_t i = 0; i < self->n_channels; i++)
    free (self->channels[i].works);
  free (self->channels);
  self->channels = NULL;
  self->n_channels = 0;
}

int64_t
weir_work_cycle_ns (const WeirWork *work, int64_t frame_ns)
{
  return (int64_t) (work->to - work->from) * frame_ns + work->pause_ns;
}

int64_t
weir_work_end_ns (const WeirWork *work, int64_t frame_ns)
{
  int64_t end;

  if (work->repeat == WEIR_REPEAT_FOREVER
      || __builtin_mul_overflow ((int64_t) work->repeat, weir_work_cycle_ns (work, frame_ns), &end)
      || __builtin_add_overflow (end, work->start_ns, &end)
      || __builtin_add_overflow (end, (int64_t) (work->to - work->from) * frame_ns, &end))
    return INT64_MAX;
  return end;
}

// ---- channels ----

static WeirChannel *
find (const WeirTransmission *self, WeirChannelType type, uint32_t number)
{
  for (size_t i = 0; i < self->n_channels; i++) {
    if (self->channels[i].type == type && self->channels[i].number == number)
      return &self->channels[i];
  }
  return NULL;
}

// Makes room for one more item where the number is 0 or a power of two.
static void *
grow (void *items, size_t n, size_t size)
{
  return n & (n - 1) ? items : realloc (items, (n > 0 ? 2 * n : 1) * size);
}

static WeirChannel *
append (WeirTransmission *self, WeirChannelType type, uint32_t number)
{
  WeirChannel *channels = grow (self->channels, self->n_channels, sizeof *channels);

  if (!channels)
    return NULL;
  self->channels = channels;
  channels[self->n_channels] = (WeirChannel) { .type = type, .number = number };
  return &channels[self->n_channels++];
}

static void
remove_channel (WeirTransmission *self, WeirChannel *channel)
{
  const size_t at = (size_t) (channel - self->channels);

  free (channel->works);
  memmove (channel, channel + 1, (--self->n_channels - at) * sizeof *channel);
}

int
weir_transmission_add (
    WeirTransmission *self, WeirChannelType type, uint32_t number, const WeirWork *work)
{
  WeirChannel *channel;
  WeirWork *works;

  if (work->from >= work->to || work->to > self->n_frames || work->pause_ns < 0
      || work->pause_ns > WEIR_TITLE_NS_MAX)
    return -EINVAL;
  channel = find (self, type, number);
  if (!channel)
    channel = append (self, type, number);
  if (!channel)
    return -ENOMEM;
  works = grow (channel->works, channel->n_works, sizeof *works);
  if (!works) {
    if (channel->n_works == 0)
      remove_channel (self, channel);
    return -ENOMEM;
  }
  channel->works = works;
  works[channel->n_works++] = *work;
  return 0;
}

int64_t
weir_transmission_stop (WeirTransmission *self, uint32_t number, int64_t last_ns, int64_t now_ns)
{
  WeirChannel *channel = find (self, WEIR_CHANNEL_MULTICAST, number);
  int64_t end_ns = now_ns;
  size_t left = 0;

  if (!channel)
    return now_ns;
  for (size_t i = 0; i < channel->n_works; i++) {
    WeirWork work = channel->works[i];
    const int64_t cycle = weir_work_cycle_ns (&work, self->frame_ns);
    if (work.start_ns > last_ns)
      continue;
    if ((last_ns - work.start_ns) / cycle < work.repeat)
      work.repeat = (uint32_t) ((last_ns - work.start_ns) / cycle);
    if (weir_work_end_ns (&work, self->frame_ns) > end_ns)
      end_ns = weir_work_end_ns (&work, self->frame_ns);
    channel->works[left++] = work;
  }
  channel->n_works = left;
  if (left == 0)
    remove_channel (self, channel);
  return end_ns;
}

void
weir_transmission_advance (WeirTransmission *self, int64_t now_ns)
{
  size_t left = 0;

  for (size_t i = 0; i < self->n_channels; i++) {
    WeirChannel channel = self->channels[i];
    size_t works = 0;
    for (size_t k = 0; k < channel.n_works; k++) {
      if (weir_work_end_ns (&channel.works[k], self->frame_ns) > now_ns)
        channel.works[works++] = channel.works[k];
    }
    channel.n_works = works;
    if (works > 0)
      self->channels[left++] = channel;
    else
      free (channel.works);
  }
  self->n_channels = left;
}

// ---- a round ----

// Successive multiples of the golden ratio are evenly spread over the circle, and so are those of
// any regular choice of them.
uint32_t
weir_round_first (uint64_t round, uint32_t n)
{
  const uint64_t turn = (round * UINT64_C (0x9e3779b97f4a7c15)) >> 32;

  return (uint32_t) (turn * n >> 32);
}

// Returns how many frames of a transmission that starts at `start_ns` come before `at_ns`.
static int64_t
frames_before (const WeirTransmission *self, int64_t start_ns, int64_t at_ns)
{
  return at_ns > start_ns ? (at_ns - start_ns - 1) / self->frame_ns + 1 : 0;
}

static void
do_work (const WeirTransmission *self, const WeirChannel *channel, const WeirWork *work,
    int64_t from_ns, int64_t to_ns, WeirDueFunc func, void *data)
{
  const int64_t cycle = weir_work_cycle_ns (work, self->frame_ns);
  const int64_t len = work->to - work->from;
  int64_t n = from_ns > work->start_ns ? (from_ns - work->start_ns) / cycle : 0;

  for (; n <= work->repeat || work->repeat == WEIR_REPEAT_FOREVER; n++) {
    const int64_t start = work->start_ns + n * cycle;
    int64_t first, end;
    if (start >= to_ns)
      break;
    first = frames_before (self, start, from_ns);
    end = frames_before (self, start, to_ns);
    if (end > len)
      end = len;
    if (first < end)
      func (data, channel, work->from + (uint32_t) first, work->from + (uint32_t) end,
          start + first * self->frame_ns);
  }
}

void
weir_transmission_due (const WeirTransmission *self, int64_t from_ns, int64_t to_ns, uint64_t round,
    WeirDueFunc func, void *data)
{
  const uint32_t n = (uint32_t) self->n_channels;
  const uint32_t first = n > 0 ? weir_round_first (round, n) : 0;

  for (uint32_t i = 0; i < n; i++) {
    const WeirChannel *channel = &self->channels[(first + i) % n];
    for (size_t k = 0; k < channel->n_works; k++)
      do_work (self, channel, &channel->works[k], from_ns, to_ns, func, data);
  }
}

static int64_t
next_of_work (const WeirTransmission *self, const WeirWork *work, int64_t from_ns)
{
  const int64_t cycle = weir_work_cycle_ns (work, self->frame_ns);
  const int64_t n = from_ns > work->start_ns ? (from_ns - work->start_ns) / cycle : 0;
  const bool forever = work->repeat == WEIR_REPEAT_FOREVER;
  const int64_t start = work->start_ns + n * cycle;
  const int64_t frame = frames_before (self, start, from_ns);

  if ((forever || n <= work->repeat) && frame < work->to - work->from)
    return start + frame * self->frame_ns;
  return forever || n < work->repeat ? start + cycle : INT64_MAX;
}

int64_t
weir_transmission_next (const WeirTransmission *self, int64_t from_ns)
{
  int64_t next = INT64_MAX;

  for (size_t i = 0; i < self->n_channels; i++) {
    for (size_t k = 0; k < self->channels[i].n_works; k++) {
      const int64_t at = next_of_work (self, &self->channels[i].works[k], from_ns);
      if (at < next)
        next = at;
    }
  }
  return next;
}
