// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One received RTP stream: refuses strays and duplicates, restores the order, counts, reads sender
// reports and writes receiver reports. It has no socket, no thread and no clock: ingest/engine.h
// gives it the datagrams.
//
// Senders. The first address that sends valid RTP is locked in. Another address on the same host
// may take over after 50 ms of silence, any other address after `silence_ns`.
//
// Another SSRC takes over at once over a connection; from the locked address, if its numbers go on,
// or with the second of two numbers in a row, nothing of the former SSRC between them. It needs 100
// ms of silence, or BYE, if it comes from another address, has another payload type, or was heard
// in the last 500 ms: two senders at once must not alternate.
//
// A sequence number that is 512 or more behind is a restart if it comes after 100 ms of silence, or
// if the next number follows it. A connection keeps the order: each number that does not go ahead
// is a restart.
//
// For one thread at a time, but for weir_track_stop().

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ingest/counts.h"
#include "ingest/packet.h"
#include "ingest/reorder.h"
#include "net/address.h"
#include "rtp/rtp_stats.h"
#include "rtp/steady.h"

#define WEIR_TRACK_RTCP_MAX 160 // bytes of the longest compound packet that a track writes

typedef enum {
  WEIR_KEY_NONE, // the sender takes no requests
  WEIR_KEY_PLI,  // RFC 4585
  WEIR_KEY_FIR,  // RFC 5104
} WeirKeyRequest;

typedef struct {
  uint32_t clock_rate;       // Hz; 0 means 90000
  uint64_t payload_types[2]; // bit `pt % 64` of number `pt / 64`; without any bit, all are accepted
  WeirReorderLimits reorder; // all zeros: packets are delivered as they come
  int64_t silence_ns;        // 0 means 1 s
  bool host_known;           // accept datagrams of the host of `host` only; its port is ignored
  WeirAddress host;
  bool rtcp_to_known; // send RTCP to `rtcp_to`; otherwise to the address that RTCP comes from
  WeirAddress rtcp_to;
  bool interleaved; // datagrams come over a connection, and RTCP needs no address
  bool unordered;   // these have come by UDP before, so they may be out of order
  bool rtcp_mux;    // RTCP goes where the media comes from, until RTCP comes
  bool steady;      // packets and reports leave with the numbers of rtp/steady.h
  WeirKeyRequest key;
  int64_t report_interval_ns; // between receiver reports, on average; 0 sends none
  uint32_t ssrc;              // under which reports are sent; also seeds their times
  char cname[64];
} WeirTrackSettings;

// Callbacks. None runs within another one of the same track. All but `packet` may be NULL.
typedef struct {
  // Takes a packet. Its bytes are valid until the return and may be changed.
  void (*packet) (void *data, const WeirIngestPacket *packet);
  // Takes the sender's mapping between RTP and NTP time, after the first packet of its SSRC.
  void (*report) (void *data, const WeirNtpMap *map);
  // Says that the sender said BYE.
  void (*bye) (void *data);
  // Says that a datagram was dropped.
  void (*dropped) (void *data, WeirIngestDrop reason);
  // Says what was put right in the packet that follows.
  void (*repaired) (void *data, WeirIngestRepair what);
} WeirTrackOps;

typedef struct {
  WeirTrackSettings settings;
  const WeirTrackOps *ops;
  void *data;
  atomic_bool stopped;
  WeirIngestStats stats;
  WeirRtpStats rtp_stats;
  WeirReorder reorder;
  // The sender.
  bool locked; // `sender` is set
  WeirAddress sender;
  bool begun;           // a packet was accepted
  int64_t max_seq;      // highest number of the run, unwrapped
  int64_t first_seq;    // first number of the run
  int32_t probe_seq;    // the number that confirms a restart; -1: none
  uint8_t pt;           // of the last packet
  uint32_t beside;      // SSRC that was replaced or refused last
  int64_t beside_ns;    // when it was heard; 0: never
  int32_t beside_probe; // the number with which it takes over; -1: none
  bool goes_on;         // the run goes on with the numbers of the one before
  WeirSteady steady;
  // RTCP.
  bool peer_known; // `peer` sends RTCP
  WeirAddress peer;
  WeirNtpMap waiting;  // a report whose SSRC has sent no packet yet
  int64_t reported_ns; // when the last sender report came
  int64_t report_due_ns;
  uint64_t packets_reported; // accepted packets at the last report
  uint64_t packets_accepted;
  uint32_t random;
  bool key_asked;
  uint8_t fir_seq;
} WeirTrack;

// Initialises a track. `ops` and `data` must stay valid. Free it with weir_track_clear().
void weir_track_init (
    WeirTrack *self, const WeirTrackSettings *settings, const WeirTrackOps *ops, void *data);

// Frees the memory. Held packets count as flushed.
void weir_track_clear (WeirTrack *self);

// From now on no callback begins: packets count as flushed. Call from any thread.
void weir_track_stop (WeirTrack *self);

// Takes a datagram of the media's socket, which may be RTCP. `from` is normalised; NULL for one
// that came over the connection to the sender, and is always admitted. `arrival_ns` is when it
// arrived, `now_ns` the time now, both CLOCK_MONOTONIC. Calls `packet` for it and for packets that
// waited for it.
void weir_track_take (WeirTrack *self, const WeirAddress *from, uint8_t *data, size_t len,
    int64_t arrival_ns, int64_t now_ns);

// Takes a datagram of the RTCP socket, in the same way.
void weir_track_take_rtcp (
    WeirTrack *self, const WeirAddress *from, const uint8_t *data, size_t len, int64_t now_ns);

// Has the next weir_track_write_rtcp() ask the sender for a keyframe.
void weir_track_ask_key (WeirTrack *self);

// Returns when weir_track_expire() and weir_track_write_rtcp() must be called next, or WEIR_NEVER.
int64_t weir_track_due (const WeirTrack *self);

// Delivers the packets whose wait for others is over.
void weir_track_expire (WeirTrack *self, int64_t now_ns);

// Writes the RTCP that is due: a receiver report, a keyframe request, or both. Returns its length;
// 0 if none is due, or if no address is known: a keyframe request is forgotten then.
// `out` has room for WEIR_TRACK_RTCP_MAX bytes.
size_t weir_track_write_rtcp (WeirTrack *self, int64_t now_ns, uint8_t *out);

// Returns the address to which RTCP goes, or NULL if it is not known.
const WeirAddress *weir_track_rtcp_to (const WeirTrack *self);

// Copies the counts. `kernel_drops` and `buffer` are the engine's.
void weir_track_stats (const WeirTrack *self, WeirIngestStats *out);
