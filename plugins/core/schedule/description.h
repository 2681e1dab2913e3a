// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The schedule of a title as attributes of a session description (RFC 8866), which programs that do
// not know them ignore. Times are ms of the server's clock, with up to six decimals; ranges of
// frames and packets include both ends.
//
//   t=NOW END                      NTP seconds; the description is valid until END
//   a=x-weir-schedule:1 id=HEX scheme=gdb now=MS play=MS frames=N frame=NS
//   a=source-filter: incl IN IP4 239.1.2.3 10.0.0.1     for each channel with a source (RFC 4570)
//   a=x-weir-channel:K group=239.1.2.3 port=5004 ttl=2  track m is sent to port + 2 m
//   a=x-weir-send:K start=MS period=MS repeat=N frames=A-B packets=F-T,F-T
//   a=x-weir-receive:K join=MS leave=MS frames=A-B packets=F-T,-
//   a=x-weir-packets:N             of each media: its number of packets
//   a=x-weir-rtptime:N             of a live mount's media: its RTP timestamp at one instant
//
// `repeat=*` is forever. `packets` has a range for each media, or "-" for none. A live mount has
// `scheme=live`, frames=0, one channel, and neither sends nor receives nor numbers of packets.
//
// The client receives the packets of its x-weir-receive lines from the groups, and asks for all
// others by unicast.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/address.h"
#include "schedule/work.h"

#define WEIR_DESCRIPTION_BYTES_MAX (256u << 10) // of a session description
#define WEIR_DESCRIPTION_CHANNELS_MAX 256
#define WEIR_DESCRIPTION_SENDS_MAX 256
#define WEIR_DESCRIPTION_RECEIVES_MAX 256
#define WEIR_DESCRIPTION_TRACKS_MAX 8
#define WEIR_DESCRIPTION_PACKETS_MAX (1u << 28) // of a track
#define WEIR_DESCRIPTION_ID_MAX 64              // hexadecimal digits
#define WEIR_DESCRIPTION_SCHEME_MAX 15          // letters
#define WEIR_DESCRIPTION_WHY 192                // bytes of an error text

// Packets `from` to `to` - 1 of a track; none if the numbers are equal.
typedef struct {
  uint32_t from, to;
} WeirPacketRange;

typedef struct {
  uint32_t number;    // of the group in the server's pool, less than 65536
  WeirAddress group;  // with the port of track 0, which is even and at least 1024
  WeirAddress source; // the only sender, with any port; family AF_UNSPEC: not known
  uint8_t ttl;
} WeirDescribedChannel;

// The RTP timestamp of a track at an instant that is the same for all tracks of a live mount.
typedef struct {
  bool known;
  uint32_t timestamp;
} WeirDescribedTime;

// Frames `from` to `to` - 1 are sent on the channel from `start_ns` on, and again each `period_ns`,
// `repeat` times.
typedef struct {
  uint32_t channel; // number
  uint32_t from, to;
  uint32_t repeat; // or WEIR_REPEAT_FOREVER
  int64_t start_ns, period_ns;
  WeirPacketRange packets[WEIR_DESCRIPTION_TRACKS_MAX];
} WeirDescribedSend;

// The client receives frames `from` to `to` - 1 on the channel between two times. They are part of
// what one send of the channel sends.
typedef struct {
  uint32_t channel; // number
  uint32_t from, to;
  int64_t join_ns, leave_ns;
  WeirPacketRange packets[WEIR_DESCRIPTION_TRACKS_MAX];
} WeirDescribedReceive;

// About 60 KiB.
typedef struct {
  uint64_t ntp_now, ntp_end; // validity, s since 1900; both 0: not limited
  char id[WEIR_DESCRIPTION_ID_MAX + 1];
  char scheme[WEIR_DESCRIPTION_SCHEME_MAX + 1];
  int64_t now_ns;    // when the description was made
  int64_t play_ns;   // when the client plays frame 0
  uint32_t n_frames; // 0: a live mount
  int64_t frame_ns;
  uint32_t n_tracks;
  uint32_t n_packets[WEIR_DESCRIPTION_TRACKS_MAX];
  WeirDescribedTime times[WEIR_DESCRIPTION_TRACKS_MAX]; // of a live mount
  uint32_t n_channels, n_sends, n_receives;
  WeirDescribedChannel channels[WEIR_DESCRIPTION_CHANNELS_MAX];
  WeirDescribedSend sends[WEIR_DESCRIPTION_SENDS_MAX];
  WeirDescribedReceive receives[WEIR_DESCRIPTION_RECEIVES_MAX];
} WeirDescription;

// Adds a schedule to the `length` bytes of a session description, which has as many media as the
// schedule has tracks, and no attributes of a schedule. Its first line "t=" is replaced. `*text`
// gets the new description, which the caller frees with free(). Returns 0, -EINVAL if the number of
// media differs, or -ENOMEM.
int weir_description_write (
    const WeirDescription *self, const char *sdp, size_t length, char **text);

// Reads the schedule of a session description, which may come from a stranger: all numbers are
// within the title and the bounds above, groups are multicast addresses, and every receive is part
// of a send and at most the title's length and the send's period away. Returns 0; -ENOENT if there
// is no schedule; or -EINVAL, and `why` says the line and what is wrong with it. After an error
// `self` is not to be used.
int weir_description_read (
    WeirDescription *self, const char *sdp, size_t length, char why[WEIR_DESCRIPTION_WHY]);

// Returns the channel with this number, or NULL.
const WeirDescribedChannel *weir_description_find_channel (
    const WeirDescription *self, uint32_t number);
