// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the files of a receiver share.

#include "rtp/rtp.h"
#include "rtp/rtp_stats.h"
#include "webrtc/nacks.h"
#include "webrtc/receive.h"
#include "webrtc/twcc.h"

#define WEIR_RECEIVE_WINDOW WEIR_RTP_STATS_WINDOW
#define WEIR_RECEIVE_REPORT_NS INT64_C (1000000000)

// An SSRC. Those of retransmissions have a track and nothing else.
typedef struct {
  bool used;
  uint32_t ssrc;
  size_t track;
  int64_t heard_ns;
  // Of media.
  bool begun;
  uint8_t pt;
  int64_t newest; // highest number, unwrapped; numbers that retransmissions brought count
  int32_t probe;  // the number that confirms a restart; -1: none
  uint64_t seen[WEIR_RECEIVE_WINDOW / 64];
  WeirRtpStats stats;
  uint64_t packets_reported;
  uint32_t last_sr; // the middle of its last sender report's NTP time; 0: none came
  int64_t sr_ns;    // when that came
  WeirNacks nacks;
} WeirReceiveSource;

typedef struct {
  WeirReceiveSource *current; // whose media came last; NULL: none
  bool key_wanted;
  unsigned key_tries;
  int64_t key_asked_ns;
  WeirLayers layers;
} WeirReceiveMedia;

struct weir_receive {
  WeirReceiveSettings settings;
  WeirReceiveSource sources[WEIR_RECEIVE_SOURCES];
  WeirReceiveMedia tracks[WEIR_RECEIVE_TRACKS];
  WeirTwcc twcc;
  int64_t report_due_ns;
  uint32_t media_ssrc; // of the last packet
  WeirReceiveStats stats;
};

WeirReceiveSource *weir_receive_find_source (WeirReceive *self, uint32_t ssrc);

// Gives up the place of an SSRC.
void weir_receive_forget (WeirReceive *self, WeirReceiveSource *source);

// Counts `n` packets as given up, which is a reason to ask for a keyframe.
void weir_receive_note_given_up (WeirReceive *self, size_t track, uint64_t n);
