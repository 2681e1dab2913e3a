// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Shared by the files of a relay: relay.c (tracks), relay_sinks.c (sinks), relay_source.c
// (sources), relay_switch.c (changes of source), relay_warm.c (a source that replaces a dead one at
// once), relay_insert.c (a clip between two keyframes of a source), relay_keys.c (keyframe
// requests), relay_group.c (the packets since the newest join point), relay_sync.c (times of tracks
// to each other).

#include <gst/base/gstqueuearray.h>

#include "fanout/join.h"
#include "relay/relay.h"
#include "relay/relay_sets.h"
#include "relay/standby.h"
#include "rtp/rtp.h"
#include "rtp/splice.h"

// Smallest gap between the last timestamp of one run and the first of the next, so that timestamps
// always grow across a splice.
#define RELAY_SPLICE_GAP (20 * GST_MSECOND)
// Times of the same media that differ by at most this are equal.
#define RELAY_SAME_INSTANT GST_MSECOND

typedef struct {
  GstBuffer *packet;
  gint64 now;
  gint64 time;
} RelayItem;

// What a sink gets of a track: nothing now, a packet, or the held packets and this one.
typedef enum { RELAY_GETS_NOTHING, RELAY_GETS_PACKET, RELAY_GETS_ALL } RelayGets;

// A sink in the list of a relay.
typedef struct {
  gatomicrefcount refs;
  const RelaySink *functions;
  gpointer sink;
  guint32 tracks;
  gint64 start; // the instant of `base`
  guint64 base[RELAY_MAX_TRACKS];
  RelayGets gets[RELAY_MAX_TRACKS];
  guint32 started; // tracks of which a sink with from_start or from_join got its first packets
} RelaySinkEntry;

static inline gboolean
relay_sink_takes (const RelaySinkEntry *entry, guint track)
{
  return entry->tracks & 1u << track;
}

// The numbers of a packet. The packet itself is not kept: it would keep its buffer pool alive,
// which has file descriptors.
typedef struct {
  gboolean known;
  guint16 seq;
  guint32 timestamp;
} RelayNumbers;

typedef struct {
  GstCaps *caps;   // as published
  RelaySets *sets; // of the packets, or NULL
  gint payload;    // the RTP payload type in the SDP of readers; -1: none
  guint32 ssrc;
  WeirSplice splice;
  gboolean mid_frame; // the last packet sent did not end its frame
  gboolean resumes;   // packets up to `resume_after` were sent before and are dropped
  gint64 resume_after;
  gint64 sent_until;   // latest time of a packet that was sent before or while a source caught up
  gboolean key_wanted; // a keyframe request waits to be sent
  gint64 key_asked;    // when the source was last asked, ns; 0: never
  GstQueueArray *out;  // of RelayItem: packets to push to the sinks
  gboolean draining;   // a thread pushes the packets of `out`
  RelayNumbers first;  // first packet pushed to sinks with is_open() since the newest was added
  gboolean holding;    // packets are held until a sink is open, or the awaited one
  gboolean released;   // the held packets have gone to the sinks that were open
  GQueue held;         // of GstBuffer
  GArray *held_times;  // gint64 of each
  gsize held_bytes;
} RelayTrack;

typedef struct {
  guint32 ssrc;
  gint payload;        // from its caps; -1: none
  gboolean alive;      // this run has had a packet
  gint64 last_arrival; // arrival of its last packet
  WeirNtpMap ntp;      // from its sender reports
  guint64 base;        // replaces the base of its packets, or RELAY_NO_BASE
  gboolean stated;     // its place in the run was not guessed from an arrival
} SourceTrack;

// Where a source was in the relay's time when a clip replaced it.
typedef struct {
  gboolean known; // for the present run of the source
  gint64 time;
  guint32 bases[RELAY_MAX_TRACKS]; // the source's RTP timestamps of that instant
  gboolean placed[RELAY_MAX_TRACKS];
  gboolean stated[RELAY_MAX_TRACKS]; // as SourceTrack
} RelayPlace;

typedef struct _RelayKeyHandler RelayKeyHandler;

struct _RelaySource {
  gatomicrefcount refs;
  Relay *relay;
  const RelaySourceCallbacks *callbacks; // main thread only; NULL once the source has ended

  gpointer owner;
  // Under the relay's lock.
  GPtrArray *caps; // NULL until it begins
  SourceTrack tracks[RELAY_MAX_TRACKS];
  guint64 origin;     // id of the relay that its media come from; 0: none
  Relay *from;        // the relay that was named when it began, or NULL
  gint64 start;       // the instant of this run's bases, in the origin's time
  gboolean run_open;  // run_start is known
  gint64 run_arrival; // arrival of its first packet
  gint64 run_start;   // where the run begins, ns of the relay's time
  gint64 tolerance_s; // greatest distance from a base to the first packet, s
  gboolean flows;     // the owner was notified of the first packet
  gint64 born;        // arrival of the first packet since it began, ns; 0: none
  // Not NULL while the source stands by; and, after it replaced a dead one, while packets from its
  // join point on are still to be sent, at the speed of `catch_up`.
  Standby *standby;
  WeirJoin catch_up; // in ns of the relay's time; its rate is 0 if the source does not catch up
  guint key_track;   // the track that catches up
  RelayPlace place;
  gboolean is_clip; // it takes over by relay_insert() only
  gboolean pinned;  // then its run begins at `pin`, in ns of the relay's time
  gint64 pin;
  gint64 offsets[RELAY_MAX_TRACKS];  // of a clip: RelaySync's of the source that it replaced
  WeirNtpMap maps[RELAY_MAX_TRACKS]; // of a clip: that source's, in outgoing timestamps
  RelayKeyHandler *handler;          // or NULL
};

struct _Relay {
  gatomicrefcount refs;
  guint64 id;  // unique in the process, unlike an address; not 0
  GMutex lock; // guards all below; take the lock of a relay further upstream first
  RelayTrack tracks[RELAY_MAX_TRACKS];
  guint n_tracks;
  gboolean expects_sinks, awaits_sink, keeps_group;
  Standby *group;  // the packets that were sent since the newest join point; or NULL
  guint32 joining; // tracks for which a sink with from_join waits
  // Of RelaySinkEntry. The array is replaced, never changed, so it can be walked without the lock.
  GPtrArray *sinks;
  GPtrArray *done; // of old arrays, to be freed without the lock; or NULL
  RelaySource *current, *next;
  gboolean next_is_warm; // `next` takes over only by relay_fail_over()
  RelaySource *insert;   // the clip that waits for a keyframe of `current`, or NULL
  Standby *scout;        // then: the frame of `current` that may be one
  gint64 last_arrival;   // arrival of the last packet of any run
  guint n_runs;
  // The relay that the media of the current or last source come from; its time defines this one's.
  guint64 origin;       // its id; 0: itself
  gint64 origin_offset; // its time - the origin's
  gint64 n_missing;     // gaps in sequence numbers, less the packets that arrived late
  RelayStats stats;
};

// ---- relay.c; call with the lock held ----

// Replaces the tracks. Call relay_begin_sinks() afterwards.
void relay_set_tracks (Relay *self, GPtrArray *caps);
gboolean relay_has_tracks (Relay *self, GPtrArray *caps);

// Does the work of relay_get_time().
gint64 relay_common_time (Relay *self);

// ---- relay.c; call without the lock ----

// Returns the id of the relay that this relay's time comes from, which may be itself. An instant t
// of this relay is t - *offset in the origin's time.
guint64 relay_get_origin (Relay *self, gint64 *offset);

// Passes the track's mapping to NTP time to the sinks.
void relay_pass_ntp (Relay *self, guint track);

// ---- relay_sinks.c; call with the lock held ----

RelayNumbers relay_read_numbers (GstBuffer *packet);

// Begins to hold packets, if sinks are expected; drops the packets held before.
void relay_hold (Relay *self);
void relay_drop_held (Relay *self);

// Removes the sinks that cannot handle a change of tracks.
void relay_end_fixed_sinks (Relay *self);

// relay_queue() takes ownership of a packet with outgoing numbers. relay_drain() pushes the queued
// packets to the sinks; it releases the lock and takes it again.
void relay_queue (Relay *self, guint track, GstBuffer *packet, gint64 now, gint64 time);
void relay_drain (Relay *self, guint track);
void relay_drain_all (Relay *self);

// ---- relay_sinks.c; call without the lock ----

void relay_sink_entry_unref (gpointer entry);

// Passes the current tracks to the sinks.
void relay_begin_sinks (Relay *self);

// Pushes a packet to the sinks that get at least this. Takes ownership of the item's packet.
void relay_push_to (
    GPtrArray *sinks, guint track, const RelayItem *item, RelayGets least, gboolean more);

// ---- relay_group.c; call with the lock held ----

// Forgets the group; the next one begins at the next join point of the tracks.
void relay_group_clear (Relay *self);

// Keeps a packet that is being sent, if it belongs to the group.
void relay_group_keep (Relay *self, guint track, const RelayItem *item);

// Passes the group of the track to the sinks that wait for it. Call from the thread that pushes the
// track's packets. Releases the lock and takes it again.
void relay_group_pass (Relay *self, guint track);

// ---- relay_source.c; call with the lock held ----

// Returns the time up to which a track's packets were sent.
static inline gint64
relay_track_end (const RelayTrack *track)
{
  return MAX (weir_splice_end (&track->splice), track->sent_until);
}

// Returns the relay's time at which a packet of a new run belongs: after the furthest packet of any
// track, by the duration of the silence.
gint64 relay_next_start (Relay *self, gint64 now);

// From now on packets whose time is not after the present end of their track are dropped, so that
// no track's time goes back.
void relay_drop_overlap (Relay *self);

// relay_source_find_start() returns where in the relay's time a run begins whose first packet
// arrives at `now`. relay_source_open_run() begins the run there.
gint64 relay_source_find_start (RelaySource *self, gint64 now);
void relay_source_open_run (RelaySource *self, gint64 start, gint64 now, gint64 tolerance_s);

// Returns the signed distance from `base` to `timestamp`, in ticks.
gint64 relay_ticks_from (guint64 base, guint32 timestamp);

// Renumbers and queues at `now` a packet of the current source that arrived at `arrival`. Takes
// ownership of `packet`, which must be writable.
void relay_source_send (
    RelaySource *self, guint track, GstBuffer *packet, gint64 arrival, gint64 now, guint64 base);

// ---- relay_switch.c; call with the lock held ----

// Makes the preferred source stand by, if its tracks are the relay's.
void relay_stand_by (Relay *self);

// Reports whether `source` stands by and has a join point.
gboolean relay_has_join (Relay *self, const RelaySource *source);

// Reports whether the standby source takes over at `now`. `packet` is the packet of the current
// source that arrives now; NULL for a packet of the standby source. relay_switch() makes the
// standby source the current one.
gboolean relay_is_switch_time (Relay *self, guint track, GstBuffer *packet, gint64 now);
void relay_switch (Relay *self, gint64 now);

// Sends a packet that was kept. Takes ownership of its buffer.
void relay_send_kept (RelaySource *self, StandbyPacket *packet, gint64 now);

// ---- relay_warm.c; call with the lock held ----

// Prepares the switch to the warm source, whose join point has a place in the past: the source
// catches up from there. Returns where its run begins, in ns of the relay's time.
gint64 relay_begin_catch_up (RelaySource *self, gint64 now);

// Sends the packets that are due at `now`. Call relay_drain_all() afterwards.
void relay_catch_up (RelaySource *self, gint64 now);

// Returns the compressed time of a packet of the track that catches up; else `time`.
gint64 relay_compress (const RelaySource *self, guint track, gint64 time);

// Prepares a source for a new place in the relay's time. Its run may have had one before.
void relay_source_reset_run (RelaySource *self);

// Reads the timestamp of a packet. Returns FALSE if it is no RTP.
gboolean relay_read_timestamp (GstBuffer *packet, guint32 *timestamp);

// ---- relay_insert.c; call with the lock held ----

// Takes a packet of the current source while a clip waits, and its ownership. Sends it, or keeps it
// until its frame is known to be no keyframe; these packets of the track are then sent. At a
// keyframe, the clip becomes the current source, and the result is its handler, to be called with
// the track `*key`; else NULL. Releases the lock and takes it again.
RelayKeyHandler *relay_insert_pass (
    RelaySource *self, guint track, GstBuffer *packet, gint64 now, guint64 base, guint *key);

// Sets where the run of a source goes on that a clip has replaced. Returns FALSE if that is not
// known, or not true any more.
gboolean relay_find_place (RelaySource *self, const StandbyPacket *join, gint64 now, gint64 *start);

// Drops what is kept of the current source, which another one replaces. The clip waits for a
// keyframe of that one, if its tracks are still the relay's.
void relay_insert_rearm (Relay *self);
void relay_insert_forget (Relay *self); // the clip waits no longer

// Lets a track of a clip, whose run has begun, keep the wall-clock time of the source before.
void relay_insert_keep_clock (RelaySource *self, guint track);

// ---- relay_sync.c; call with the lock held ----

// Sets the offsets of all tracks by the reports of the current source. Returns FALSE if one is
// missing.
gboolean relay_compare_reports (const Relay *self, RelaySync *sync);

// ---- relay_keys.c ----

// Returns the handler of a source, or NULL. Call with the lock held. (transfer full)
RelayKeyHandler *relay_source_dup_key_handler (RelaySource *self);

// Returns the handler of the current source if a keyframe request of the track is due at `now`, or
// NULL. Call with the lock held. (transfer full)
RelayKeyHandler *relay_take_key_request (Relay *self, guint track, gint64 now);
// Calls the handler, which may be NULL, and releases it. Call without the lock.
void relay_pass_key_request (RelayKeyHandler *handler, guint track, gint64 now);
