// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Receives the media of one publisher over WebRTC: it takes the decrypted packets of all its
// streams from one transport (RFC 8843), and writes the feedback that the publisher needs. It has
// no socket, no clock and no cipher.
//
// Packets leave in the order in which they come. Behind it stands a track of ingest/track.h for
// each track here: that restores the order, and waits for a lost packet as long as its window says.
// The tracks behind get no RTCP to send: the reports and requests of this file are the only ones.
//
// - A retransmission (RFC 4588) leaves as the packet that it repeats.
// - A stream is known by its SSRC. A new SSRC belongs to the track that its MID names (RFC 9143),
//   or else to the only one that has its payload type. Of tracks that are layers of one line
//   (simulcast, RFC 8853) it is the one that its RID, or repaired RID, names (RFC 8852).
// - Header extensions are taken off: their ids hold between the publisher and this end only.
// - Feedback: receiver reports each second (RFC 3550); generic NACKs, and PLI each 500 ms until a
//   keyframe comes (RFC 4585); transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-
//   extensions-01), or else REMB each second (draft-alvestrand-rmcat-remb-03).
// - A keyframe is also asked for when a missing packet of a track with PLI is given up: browsers
//   send one only when they are asked.
//
// Cost: a packet in order is looked up among at most WEIR_RECEIVE_SOURCES SSRCs, and its header is
// moved by the length of its extension; the first bytes of the payload are looked at for keyframes.
// A gap costs a walk over at most WEIR_NACKS_MAX entries. With its share of the feedback, and
// without that look, a packet takes about 40 ns, and 70 ns where 2 % are lost. The object takes
// about 150 KB, and allocates nothing after it is made.
//
// For one thread at a time. Times are CLOCK_MONOTONIC. That of a packet is when it arrived, as
// exactly as that is known: the publisher's estimate of its line is made of these. It may be
// earlier than the time of a call before.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/layers.h"
#include "run/clock.h"

#define WEIR_RECEIVE_TRACKS 5 // each layer is one
#define WEIR_RECEIVE_PAYLOADS 8
#define WEIR_RECEIVE_SOURCES 12    // SSRCs known at a time, those of retransmissions included
#define WEIR_RECEIVE_RTCP_MAX 1188 // bytes of the longest compound packet that is written
#define WEIR_RECEIVE_MID_MAX 16
#define WEIR_RECEIVE_RID_MAX 16

// A payload type of a track, as the answer gives it.
typedef struct {
  uint8_t pt;
  uint8_t rtx_pt; // of its retransmissions; 0: there are none
  WeirCodec codec;
  uint32_t clock_rate; // Hz
} WeirReceivePayload;

typedef struct {
  char mid[WEIR_RECEIVE_MID_MAX + 1]; // empty: it is known by its payload types only
  WeirReceivePayload payloads[WEIR_RECEIVE_PAYLOADS];
  size_t n_payloads;
  bool nack, pli; // the answer has this feedback for all of its payload types
  // Of a layer: another RID is not its. Empty: RIDs do not count.
  char rid[WEIR_RECEIVE_RID_MAX + 1];
} WeirReceiveTrack;

typedef struct {
  WeirReceiveTrack tracks[WEIR_RECEIVE_TRACKS];
  size_t n_tracks;
  uint8_t mid_id; // id of the header extension with the MID; 0: there is none
  // Of those with the RID, and with the RID of the stream that a retransmission repairs; likewise.
  uint8_t rid_id, repaired_rid_id;
  uint8_t twcc_id; // of the one with transport-wide numbers; 0: transport-cc was not negotiated
  // Bits a second that REMB allows, where REMB was negotiated and transport-cc was not; 0: no REMB.
  // Within this limit the publisher adapts by the losses reported. A browser goes up to it at once
  // in its first 2 seconds.
  uint64_t remb_bps;
  int64_t
      window_ns; // how long a lost packet is asked for: as long as the track behind waits for it
  bool reduced_size; // a feedback packet needs no report before it (RFC 5506)
  uint32_t ssrc;     // under which feedback is sent
  char cname[64];
} WeirReceiveSettings;

typedef enum {
  WEIR_RECEIVE_MEDIA,     // a packet that has not come before
  WEIR_RECEIVE_PADDING,   // a retransmission that repeats nothing: a probe for bandwidth
  WEIR_RECEIVE_DUPLICATE, // the same number came before, also as a retransmission
  WEIR_RECEIVE_LATE,      // too far behind to tell whether it came before
  WEIR_RECEIVE_STRAY,     // of no track, or a retransmission far ahead of its track's media
  WEIR_RECEIVE_CROWDED,   // of a new SSRC while WEIR_RECEIVE_SOURCES others send
  WEIR_RECEIVE_MALFORMED, // not RTP
  WEIR_RECEIVE_KINDS
} WeirReceiveKind;

typedef struct {
  WeirReceiveKind kind;
  // Of media only:
  size_t track;  // index in the settings
  uint8_t *data; // the RTP packet, in the bytes that were given
  size_t len;
  bool begins_key;   // a keyframe begins with it; of sound, each packet counts as one
  bool is_recovered; // it was missing, and is a retransmission or was overtaken
} WeirReceived;

typedef struct {
  uint64_t packets[WEIR_RECEIVE_KINDS];
  uint64_t retransmitted; // packets of media that came as retransmissions (RFC 4588)
  uint64_t recovered;     // packets that came while they were missing
  uint64_t given_up;      // missing packets that were asked for no longer, or never
  uint64_t nacked;        // numbers asked for, each time counted
  uint64_t keys_asked;    // PLI sent
  uint64_t feedback;      // transport-wide feedback packets sent
  int64_t round_trip_ns;  // from a request to the packet, smoothed; 0: not known
} WeirReceiveStats;

typedef struct weir_receive WeirReceive;

// Makes a receiver. Returns 0; -EINVAL if the settings have too many tracks or payload types, a
// payload type above 127 or twice in a track, a clock rate of 0, or an extension id above 14;
// -ENOMEM. Free it with weir_receive_free().
int weir_receive_new (const WeirReceiveSettings *settings, WeirReceive **out);
void weir_receive_free (WeirReceive *self);

// Takes a decrypted RTP packet of `len` bytes. Its bytes may be changed.
void weir_receive_take (
    WeirReceive *self, uint8_t *data, size_t len, int64_t arrival_ns, WeirReceived *out);

// Takes a decrypted RTCP packet: sender reports, for the times in receiver reports, and BYE, which
// ends an SSRC. Returns 0, or -EBADMSG if it is not valid; then it changes nothing.
int weir_receive_take_rtcp (WeirReceive *self, const uint8_t *data, size_t len, int64_t arrival_ns);

// Asks for a keyframe of a track until one comes, at most 20 times. Requests that come meanwhile
// are one with it. A track without PLI is not asked.
void weir_receive_ask_key (WeirReceive *self, size_t track);

// Returns when weir_receive_write_rtcp() must be called next, or WEIR_NEVER. It may be in the past.
// Any of the functions above may change it.
int64_t weir_receive_due (const WeirReceive *self);

// Writes feedback that is due to `out`, which has room for WEIR_RECEIVE_RTCP_MAX bytes, as one
// compound packet. Returns its length, or 0 if nothing is due. There may be more than fits: call it
// until it returns 0.
size_t weir_receive_write_rtcp (WeirReceive *self, int64_t now_ns, uint8_t *out);

// Copies the counts.
void weir_receive_stats (const WeirReceive *self, WeirReceiveStats *out);
