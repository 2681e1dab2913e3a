// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The transmission schedule of one title: channels, and for each channel the work requests that say
// which frames are sent on it and when (Bradshaw et al., "Periodic broadcast and patching services:
// implementation, measurement and analysis in an internet streaming video testbed", Multimedia
// Systems, section 4.1.1). Frames are sent at the title's own rate. Times are ns of any clock that
// does not step. For one thread at a time.

#include <stddef.h>
#include <stdint.h>

#define WEIR_REPEAT_FOREVER UINT32_MAX
#define WEIR_TITLE_NS_MAX INT64_C (1000000000000000) // the longest title: 10^6 s

typedef enum { WEIR_CHANNEL_MULTICAST, WEIR_CHANNEL_UNICAST } WeirChannelType;

// Frames `from` to `to` - 1 are sent at `start_ns` and in the time of one frame each. This repeats
// `repeat` times, with `pause_ns` between the end of the last frame and the next start.
typedef struct {
  uint32_t from, to;
  uint32_t repeat; // or WEIR_REPEAT_FOREVER
  int64_t start_ns;
  int64_t pause_ns;
} WeirWork;

typedef struct {
  WeirChannelType type;
  uint32_t number; // of the group in the pool; for unicast, of the patch
  WeirWork *works;
  size_t n_works;
} WeirChannel;

typedef struct {
  uint32_t n_frames; // of the title
  int64_t frame_ns;  // time of one frame
  WeirChannel *channels;
  size_t n_channels;
} WeirTransmission;

// Called for frames `from` to `to` - 1 of a channel, the first of which is to be sent at `at_ns`.
typedef void (*WeirDueFunc) (
    void *data, const WeirChannel *channel, uint32_t from, uint32_t to, int64_t at_ns);

// Initialises an empty schedule. Returns 0, or -EINVAL if `n_frames` is 0, `frame_ns` is not
// positive, or the title is longer than WEIR_TITLE_NS_MAX.
int weir_transmission_init (WeirTransmission *self, uint32_t n_frames, int64_t frame_ns);
void weir_transmission_free (WeirTransmission *self);

// Adds work to the channel of this type and number, which is made if it is not there. Returns 0,
// -ENOMEM, or -EINVAL if the frames are not in the title or the pause is negative.
int weir_transmission_add (
    WeirTransmission *self, WeirChannelType type, uint32_t number, const WeirWork *work);

// Limits the work of a multicast channel to the transmission that starts at `last_ns` and those
// before it. Returns the time at which the channel's last frame has been sent, or `now_ns` if the
// channel has nothing left to send.
int64_t weir_transmission_stop (
    WeirTransmission *self, uint32_t number, int64_t last_ns, int64_t now_ns);

// Forgets work that ended at `now_ns` or before, and channels without work.
void weir_transmission_advance (WeirTransmission *self, int64_t now_ns);

// Calls `func` for all frames whose time is in the round from `from_ns` up to `to_ns`. The channel
// that comes first differs from round to round: a queue on the way that overflows at the end of a
// round then loses as much of one channel as of another.
void weir_transmission_due (const WeirTransmission *self, int64_t from_ns, int64_t to_ns,
    uint64_t round, WeirDueFunc func, void *data);

// Returns the first time, at or after `from_ns`, at which a frame is to be sent; INT64_MAX if there
// is none.
int64_t weir_transmission_next (const WeirTransmission *self, int64_t from_ns);

// Returns which of `n` channels is sent first in a round; the others follow in their order. Equal
// over the channels for any regular choice of rounds, such as every second one. `n` is at least 1.
uint32_t weir_round_first (uint64_t round, uint32_t n);

// Returns the time between two starts of a work request, and the time at which its last frame has
// been sent (INT64_MAX if it repeats forever).
int64_t weir_work_cycle_ns (const WeirWork *work, int64_t frame_ns);
int64_t weir_work_end_ns (const WeirWork *work, int64_t frame_ns);
