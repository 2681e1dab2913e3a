// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Receives the RTP of all upstreams on a few threads. A track has its own sockets, or its packets
// are put in by a call (interleaved over TCP); either way it gets the treatment of ingest/track.h.
//
// The cost of receiving is mostly the cost of waking a thread. So a thread that a packet wakes
// drains all sockets that have packets, and then sleeps until the tick is over. A socket gives at
// most `budget` packets a tick; the others wait in its buffer, and the kernel drops packets that
// find it full. So a flood to one socket delays the others by its budget only.
//
// A track's callbacks never run in two threads at once. They run on its engine thread; those of
// packets put in run on the caller's thread, except for packets that waited behind a gap for too
// long. No lock is held meanwhile. A slow callback delays the other tracks of the thread.
//
// Call all functions from any thread. The caller makes sure that no call for a track runs when, or
// comes after, it is removed.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ingest/track.h"

#define WEIR_INGEST_TICK_NS INT64_C (2000000)
#define WEIR_INGEST_TICK_MAX_NS INT64_C (100000000)

typedef struct weir_ingest WeirIngest;
typedef struct weir_ingest_track WeirIngestTrack;

typedef struct {
  unsigned threads; // at most 64; 0: one for each two processors, at least one
  int64_t tick_ns;  // 0 to WEIR_INGEST_TICK_MAX_NS; 0: each packet wakes a thread
  unsigned budget;  // packets from a socket in a tick; 0: 256
} WeirIngestSettings;

typedef struct {
  WeirTrackOps track;
  // Follows the last packet of a batch, so that the owner can handle the batch as a whole. May be
  // NULL.
  void (*settled) (void *data);
  // Sends RTCP of a track without sockets. May be NULL.
  void (*send) (void *data, const uint8_t *rtcp, size_t len);
  // Says that the kernel dropped `n` datagrams, as a receive buffer was full. It says so with the
  // next datagram that it keeps. May be NULL.
  void (*overflowed) (void *data, uint32_t n);
} WeirIngestOps;

// The sockets of a track, from weir_udp_open(). -1 for no socket. Without `rtcp`, RTCP comes and
// goes through `rtp`; without `rtp`, packets are put in.
typedef struct {
  int rtp, rtcp;
} WeirIngestSockets;

#define WEIR_INGEST_NO_SOCKETS ((WeirIngestSockets) { -1, -1 })

// Creates an engine. `settings` may be NULL: a tick of WEIR_INGEST_TICK_NS. Threads start with the
// first tracks. Returns NULL if there is no memory. Free it with weir_ingest_free().
WeirIngest *weir_ingest_new (const WeirIngestSettings *settings);

// Stops and joins the threads. All tracks must have been removed. Not from within a callback.
void weir_ingest_free (WeirIngest *self);

// Adds a track, to the thread with the fewest. Takes the sockets, which are closed with the track,
// or at once on error. Sockets become larger as needed for a second of the stream. `ops` and `data`
// must stay valid until the track is removed. Returns 0 or a negative errno.
int weir_ingest_add (WeirIngest *self, const WeirTrackSettings *settings, WeirIngestSockets sockets,
    const WeirIngestOps *ops, void *data, WeirIngestTrack **out);

// Removes a track: no callback runs when this returns, nor comes later. It waits for a callback
// that runs, and for no more. Within a callback of the track itself it does not wait: then no
// further one comes. `last` gets the last counts; NULL if they are not wanted, or within a
// callback.
void weir_ingest_remove (WeirIngestTrack *track, WeirIngestStats *last);

// Puts a datagram into a track without sockets; `rtcp` says of which channel it is. Its bytes may
// be changed. `now_ns` is weir_now_ns(). Returns 0; -EINVAL for a track with sockets; -EDEADLK
// within a callback of the track.
int weir_ingest_push (WeirIngestTrack *track, bool rtcp, uint8_t *data, size_t len, int64_t now_ns);

// Asks the sender for a keyframe as the track's settings say, within a tick. Requests that come
// before the last one is sent are one.
void weir_ingest_ask_key (WeirIngestTrack *track);

// Copies the counts as they were after the last batch.
void weir_ingest_stats (WeirIngestTrack *track, WeirIngestStats *out);
