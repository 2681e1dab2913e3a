// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Follows a live stream that is sent on a multicast group, as a client: the packets since the
// newest keyframe come by unicast, so that a picture is there at once, and the group brings the
// next ones (the idea of RFC 6285). Puts both in one order, each packet once, says which packets to
// ask for by unicast, and gives each track's packets in order as soon as they are there.
//
// The order of use: weir_live_begin(), and join the group. Ask for the newest packets; give those
// of the answer to weir_live_put() and say weir_live_answer_ends(). From then on ask for what
// weir_live_ask() says: what is between the answer and the group, and what the group lost.
//
// Times are ns of the caller's clock, which does not step. For one thread at a time.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rtp/rtp.h"
#include "schedule/description.h"
#include "schedule/follow.h"

#define WEIR_LIVE_PACKETS 8192 // kept of a track; half of what RTP numbers can tell apart, or less

// A packet behind a gap waits so long, or for the slack if that is longer, where the group takes
// over from unicast.
#define WEIR_LIVE_SEAM_NS INT64_C (500000000)

typedef struct {
  void *item;    // the caller's
  int64_t at_ns; // when it came
  uint32_t timestamp;
  bool present, by_group;
} WeirLiveEntry;

// Packets have numbers that go on beyond 65535, and do not begin anew with another SSRC.
typedef struct {
  uint32_t clock_rate;
  bool known; // a packet was put: `seq` and `ssrc` are valid
  bool begun; // `next` is valid
  uint32_t ssrc;
  uint16_t seq;       // of the packet `end` - 1
  int64_t next, end;  // the next packet to give out; behind the last one that came
  int64_t low;        // at most `next`; packets between are to be dropped
  int64_t tail_end;   // `end` when the newest packets were asked for last
  int64_t seam;       // the group's first packet, or INT64_MAX
  int64_t ticks;      // of the newest packet's timestamp, unwrapped, from the common instant
  uint32_t timestamp; // of the newest packet
  bool time_known;    // `ticks` and `timestamp` are valid
  bool moved;         // the next packet given out plays at another time than the ones before say
  WeirLiveEntry *entries; // WEIR_LIVE_PACKETS
} WeirLiveTrack;

typedef struct {
  uint32_t n_tracks;
  int64_t slack_ns; // for which a packet behind a gap waits
  WeirFollowStats stats;
  WeirDescribedTime times[WEIR_DESCRIPTION_TRACKS_MAX];
  WeirLiveTrack tracks[WEIR_DESCRIPTION_TRACKS_MAX];
  bool answered;             // the newest packets have come
  int64_t begun_ns;          // of weir_live_begin()
  int64_t came_ns, heard_ns; // the last packet, and the last one of the group
  bool foreign;              // the group has another stream since weir_live_begin()
  bool playing;              // `play_ns` and `first_ns` are valid
  int64_t first_ns;          // time in the stream of the first packet that was given out
  int64_t play_ns;           // when it plays
  // How much later than at first the group's packets come, from the least of each span of time.
  struct {
    bool known;
    int64_t since_ns, least_ns, first_ns;
  } drift;
  // The longest times between two packets of the group, in this span of time and in the one before.
  struct {
    int64_t since_ns, longest_ns, before_ns;
  } gaps;
  int64_t tail_ns, tail_pause_ns; // when to ask for the newest packets by unicast next
} WeirLive;

// Of the settings, `clock_rate` and `slack_ns` count. Returns 0; -EINVAL if a clock rate is 0; or
// -ENOMEM.
int weir_live_init (WeirLive *self, uint32_t n_tracks, const WeirFollowSettings *settings);

// Frees all; `free_item` is called for each packet that is still there, unless it is NULL.
void weir_live_clear (WeirLive *self, void (*free_item) (void *item));

// The stream was described at `now_ns`, for the first time or again, with these times; the newest
// packets are to be asked for, and the group is to be joined. The stream goes on without a gap or a
// repetition if its numbers do.
void weir_live_begin (WeirLive *self, const WeirDescribedTime *times, int64_t now_ns);

// Begins anew with what comes, and drops all that is there: for a client that has paused. Say
// weir_live_begin() then.
void weir_live_restart (WeirLive *self);

// Ends keeping a packet that is not to be given out, and stores it. Call until it returns false
// after weir_live_restart(), and each time before weir_live_put().
bool weir_live_drop (WeirLive *self, void **item);

// Takes a packet of `len` bytes that came on the group. Returns whether it is new: the caller then
// calls weir_live_put().
bool weir_live_heard (
    WeirLive *self, uint32_t track, const WeirRtp *rtp, size_t len, int64_t now_ns);

// The same for a packet that came by unicast.
bool weir_live_answered (
    WeirLive *self, uint32_t track, const WeirRtp *rtp, size_t len, int64_t now_ns);

// Keeps a new packet. Returns 0; the item is then owned until weir_live_take(). Returns -EEXIST if
// it came twice or is passed, or -ENOSPC if too many are kept.
int weir_live_put (
    WeirLive *self, uint32_t track, const WeirRtp *rtp, bool by_group, int64_t now_ns, void *item);

// The answer with the newest packets has come.
void weir_live_answer_ends (WeirLive *self);

// Gives out the next packet of a track. Gives up packets before it that are not there in time.
// Returns false if none is there; then `*due_ns` is when one will be without further ones coming,
// or WEIR_NEVER. `out->title_ns` counts from the first packet given out, which plays at
// `out->play_ns`.
bool weir_live_take (
    WeirLive *self, uint32_t track, int64_t now_ns, WeirFollowOut *out, int64_t *due_ns);

// Stores up to `max` ranges of RTP sequence numbers, of up to `max_packets` packets together, that
// are to be asked for by unicast now, and returns how many. They do not go beyond 65535. Call it
// again when they have been answered.
size_t weir_live_ask (
    WeirLive *self, int64_t now_ns, WeirFollowRange *ranges, size_t max, uint32_t max_packets);

// Reports whether the stream is to be described again: its group has another one, it has left the
// group, or nothing comes.
bool weir_live_is_stale (const WeirLive *self, int64_t now_ns);
