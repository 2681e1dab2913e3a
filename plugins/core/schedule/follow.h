// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Follows the schedule of a description (schedule/description.h) as a client: says when to join and
// leave groups, numbers received packets, says which packets to ask for by unicast, and gives each
// track's packets in order when they are due.
//
// A packet is due when the smallest RTP timestamp of it and those behind it says so: with reordered
// frames, before its own. It is asked for by unicast if no group will bring it: it is in no
// reception; or later packets of its reception came, or none came for a while; or the group should
// have sent it just now, and it is due soon.
//
// Times are ns of the caller's clock, which does not step. For one thread at a time.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rtp/rtp.h"
#include "schedule/description.h"

#define WEIR_FOLLOW_LEAD_NS                                                                        \
  INT64_C (1000000000) // packets are asked for so long before they are due
#define WEIR_FOLLOW_STALL_NS INT64_C (200000000) // a packet later than this moves all that follow
#define WEIR_FOLLOW_GAP_NS INT64_C (500000000)   // a longer gap is not given up
#define WEIR_FOLLOW_JOIN_MIN_NS INT64_C (50000000)
#define WEIR_FOLLOW_JOIN_MAX_NS INT64_C (5000000000)
#define WEIR_FOLLOW_JOINS_KEPT 8
#define WEIR_FOLLOW_CHUNK 256

typedef struct {
  uint32_t clock_rate[WEIR_DESCRIPTION_TRACKS_MAX]; // Hz, at least 1
  int64_t slack_ns;                                 // between a packet's time and its output
  uint32_t max_groups;                              // joined at a time
} WeirFollowSettings;

// Counts of packets. passed = in_time + late + lost.
typedef struct {
  uint64_t passed;
  uint64_t in_time;
  uint64_t late;     // came after they were due
  uint64_t lost;     // not there when a later packet was due
  uint64_t missed;   // of a reception, and not received from its group
  uint64_t repaired; // of these, received by unicast
  uint64_t too_late; // received after they were passed
  uint64_t duplicates;
  uint64_t strays; // of another sender or time
  uint64_t group_bytes, unicast_bytes;
  uint64_t stalls;
  int64_t stalled_ns; // how much later the title plays for stalls
  uint32_t groups, groups_max;
  int64_t join_latency_ns; // the lead of joins
  int64_t first_ns;        // when the first packet was given out; 0: not yet
} WeirFollowStats;

typedef struct {
  void *item;    // the caller's
  int64_t at_ns; // when it came
  uint32_t timestamp;
  bool present, by_group, marker;
  uint8_t asked; // the request in which it was asked for; 0: none
} WeirFollowEntry;

typedef struct {
  uint32_t n_packets, clock_rate, ssrc;
  bool ssrc_known;
  WeirFollowEntry **chunks; // of WEIR_FOLLOW_CHUNK entries; NULL: all missing
  uint32_t next;            // number of the next packet to give out
  int64_t ticks;            // timestamp of the last packet given out, unwrapped
  int64_t due_ticks;        // of the last packet given out
  int64_t interval_ns;      // between packets, on average
  int64_t step_ns;          // between two frames, or two rounds of sending
  bool found;               // `head` and `head_ticks` are valid
  uint32_t head;            // the next packet that is there
  int64_t head_ticks;       // its timestamp, unwrapped
  int64_t head_due_ticks;
} WeirFollowTrack;

typedef enum {
  WEIR_FOLLOW_WAITING,
  WEIR_FOLLOW_JOINED,
  WEIR_FOLLOW_LEFT,
} WeirFollowState;

typedef struct {
  WeirFollowState state;
  int64_t join_ns, leave_ns; // by the caller's clock
  int64_t joined_ns;         // when the caller joined
  int64_t heard_ns;          // when the last packet came; 0: none
  uint64_t n_wanted;         // packets that are neither there nor passed
  struct {
    bool begun, marker;
    uint32_t last; // highest number that came
    int64_t at_ns; // and when
  } tracks[WEIR_DESCRIPTION_TRACKS_MAX];
} WeirFollowReceive;

typedef struct {
  const WeirDescription *description;
  WeirFollowSettings settings;
  WeirFollowStats stats;
  int64_t play_ns;
  uint32_t n_tracks;
  WeirFollowTrack tracks[WEIR_DESCRIPTION_TRACKS_MAX];
  WeirFollowReceive *receives; // one for each of the description
  int64_t latencies_ns[WEIR_FOLLOW_JOINS_KEPT];
  uint32_t n_latencies;
  uint8_t request;  // 1 to 255
  bool unreachable; // the server; set by the caller: no gap is given up
} WeirFollow;

typedef struct {
  void *item;
  uint32_t number;
  uint32_t lost;    // packets before it that are given up
  int64_t title_ns; // the packet's time in the title
  int64_t play_ns;  // time at which the title's start plays, or would play
  bool stalled;     // `play_ns` has moved since the packet before, of any track
} WeirFollowOut;

typedef struct {
  uint32_t track, from, to; // packets `from` to `to` - 1
} WeirFollowRange;

// Starts to follow a stored title's description, which must stay as it is and outlive `self`, and
// which was received at `now_ns`. Returns 0 or -ENOMEM.
int weir_follow_init (WeirFollow *self, const WeirDescription *description,
    const WeirFollowSettings *settings, int64_t now_ns);

// The server has begun anew, and described the same title at `now_ns`, for a client that comes now.
// Has this client go on with the groups of that: replaces the receives of `next`, which must stay
// as it is and outlive `self`. Groups that are joined are to be left before. Returns 0; -EINVAL if
// the numbers of packets differ; or -ENOMEM. After an error nothing has changed.
int weir_follow_resume (WeirFollow *self, WeirDescription *next, int64_t now_ns);

// Frees all; `free_item` is called for each packet that is still there, unless it is NULL.
void weir_follow_clear (WeirFollow *self, void (*free_item) (void *item));

// Stores the number of a receive of the description that is to be joined now. Call until it returns
// false. The caller says weir_follow_leave_now() if it cannot join.
bool weir_follow_join (WeirFollow *self, int64_t now_ns, uint32_t *receive);

// The same for a receive whose group is to be left now.
bool weir_follow_leave (WeirFollow *self, int64_t now_ns, uint32_t *receive);

// Ends a receive that is joined: all it lacks is asked for by unicast.
void weir_follow_leave_now (WeirFollow *self, uint32_t receive);

// Returns when weir_follow_join() or weir_follow_leave() is to be called next, or WEIR_NEVER.
int64_t weir_follow_next (const WeirFollow *self);

// Takes a packet of `len` bytes that came on the group of a receive. Returns true and stores its
// number if it is new: the caller then calls weir_follow_put().
bool weir_follow_heard (WeirFollow *self, uint32_t receive, uint32_t track, const WeirRtp *rtp,
    size_t len, int64_t now_ns, uint32_t *number);

// The same for a packet that came by unicast, with its number.
bool weir_follow_answered (
    WeirFollow *self, uint32_t track, uint32_t number, const WeirRtp *rtp, size_t len);

// Keeps a new packet. Returns 0; the item is then owned until weir_follow_take(). Returns -EEXIST
// if it came twice or is passed, or -ENOMEM.
int weir_follow_put (WeirFollow *self, uint32_t track, uint32_t number, const WeirRtp *rtp,
    bool by_group, int64_t now_ns, void *item);

// Gives out the next packet of a track, if it is due. Gives up packets before it that are not
// there, unless they are more than WEIR_FOLLOW_GAP_NS of the title, or the server is `unreachable`:
// the title waits for these. Returns false if none is due; then `*due_ns` is when one will be, or
// WEIR_NEVER if it waits for a packet.
bool weir_follow_take (
    WeirFollow *self, uint32_t track, int64_t now_ns, WeirFollowOut *out, int64_t *due_ns);

// Returns whether all packets of a track are passed.
bool weir_follow_ended (const WeirFollow *self, uint32_t track);

// Stores up to `max` ranges, of up to `max_packets` packets together, that are to be asked for by
// unicast now, and returns how many. They are not given again before weir_follow_ask_again().
size_t weir_follow_ask (
    WeirFollow *self, int64_t now_ns, WeirFollowRange *ranges, size_t max, uint32_t max_packets);

// Says that the last request has been answered or has failed: what it did not bring is asked for
// again.
void weir_follow_ask_again (WeirFollow *self);

// For the files of this module: returns the entry of a packet that is not passed; if nothing is
// known of it, NULL, or a new entry (NULL if there is no memory).
WeirFollowEntry *weir_follow_find (const WeirFollowTrack *track, uint32_t number);
WeirFollowEntry *weir_follow_make (WeirFollowTrack *track, uint32_t number);
int64_t weir_follow_ticks_to_ns (const WeirFollowTrack *track, int64_t ticks);
