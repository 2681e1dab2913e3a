// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the files of a relay share: relay.c (tracks), relay_sinks.c (who takes them), relay_source.c
// (who brings them), relay_switch.c (from one who brings them to another).

#include <gst/base/gstqueuearray.h>

#include "relay/relay.h"
#include "relay/standby.h"
#include "rtp/rtp.h"
#include "rtp/splice.h"

// At the least this far ahead of the last packet of one life begins the next, so that timestamps
// grow over the splice.
#define RELAY_SPLICE_GAP (20 * GST_MSECOND)
// Times of the same media that differ by no more are the same.
#define RELAY_SAME_INSTANT GST_MSECOND

typedef struct {
  GstBuffer *packet;
  gint64 now;
  gint64 time;
} RelayItem;

// A sink of a relay.
typedef struct {
  gatomicrefcount refs;
  const RelaySink *functions;
  gpointer sink;
  guint32 tracks;
  gint64 start; // the instant that `base` is of
  guint64 base[RELAY_MAX_TRACKS];
} RelayTaker;

// Of a packet. Not the packet itself: that would keep its pool, which has descriptors.
typedef struct {
  gboolean known;
  guint16 seq;
  guint32 timestamp;
} RelayNumbers;

typedef struct {
  GstCaps *caps; // as published
  gint payload;  // the RTP payload type that readers were told; -1: none
  guint32 ssrc;
  WeirSplice splice;
  gboolean mid_frame; // the last packet that went out did not end its frame
  gboolean resumes;   // what comes up to `resume_after` has gone out already
  gint64 resume_after;
  gboolean key_wanted; // somebody waits for a keyframe, and the source has not been asked since
  gint64 key_asked;    // when it last was, ns; 0: never
  GstQueueArray *out;  // of RelayItem: numbered, on its way
  gboolean draining;   // somebody hands on what is in `out`
  RelayNumbers first;  // that those that open have had since the newest was added
  gboolean holding;    // what the first life brings is held until a sink is open
  GQueue held;         // of GstBuffer
  GArray *held_times;  // gint64 of each
  gsize held_bytes;
} RelayTrack;

typedef struct {
  guint32 ssrc;
  gint payload;        // that its caps told; -1: none
  gboolean alive;      // this life has had a packet
  gint64 last_arrival; // now of its last packet
  WeirNtpMap ntp;      // as it said
} SourceTrack;

typedef struct _RelayAsker RelayAsker;

struct _RelaySource {
  gatomicrefcount refs;
  Relay *relay;
  const RelaySourceCallbacks *callbacks; // main thread, NULL once it has ended

  gpointer owner;
  // Under the relay's lock.
  GPtrArray *caps; // NULL: it has not begun
  SourceTrack tracks[RELAY_MAX_TRACKS];
  guint64 origin;      // of the relay that its media come from; 0: none
  gint64 start;        // the instant of this life's bases, in the origin's time
  gboolean life_open;  // this life's place in the relay's time is fixed
  gint64 life_arrival; // now of its first packet
  gint64 life_start;   // ns of the relay's time
  gint64 tolerance_s;  // how far its bases may be off
  gboolean flows;      // that has been told
  Standby *standby;    // while it stands by
  RelayAsker *asker;   // or NULL
};

struct _Relay {
  gatomicrefcount refs;
  guint64 id;  // of no other relay ever, as another one's address may be. Not 0
  GMutex lock; // all below; that of a relay before one behind it
  RelayTrack tracks[RELAY_MAX_TRACKS];
  guint n_tracks;
  gboolean expects_sinks;
  // Of RelayTaker; replaced, never changed, so that it can be walked without the lock.
  GPtrArray *takers;
  GPtrArray *done; // of arrays of those that were; to be freed without the lock. Or NULL
  RelaySource *current, *next;
  gint64 last_arrival; // now of the last packet of any life
  // Where its time comes from: the relay that the media of its current or last source come from.
  guint64 origin;       // its id; 0: itself
  gint64 origin_offset; // its time - the origin's
  gint64 n_missing;     // what comes late is taken off
  RelayStats stats;
};

// ---- relay.c, with the lock held ----

// These caps are what goes out from now on. relay_begin_sinks() then.
void relay_set_tracks (Relay *self, GPtrArray *caps);
gboolean relay_has_tracks (Relay *self, GPtrArray *caps);

// Media time up to which all tracks have come. A sparse track says nothing about it.
gint64 relay_common_time (Relay *self);

// ---- relay.c, without it ----

// An instant t of its time is t - *offset of the time of its origin, which may be itself.
guint64 relay_get_origin (Relay *self, gint64 *offset);

// The sinks are told the track's mapping to NTP.
void relay_pass_ntp (Relay *self, guint track);

// ---- relay_sinks.c, with the lock held ----

RelayNumbers relay_read_numbers (GstBuffer *packet);

// A life of its source begins: what was held of the one before is of no use.
void relay_hold (Relay *self);
void relay_drop_held (Relay *self); // nor is it once its source has ended

// Who takes the tracks as they are gets no others.
void relay_end_takers (Relay *self);

// Queues a numbered packet; takes it. relay_drain() lets go of the lock and takes it again.
void relay_queue (Relay *self, guint track, GstBuffer *packet, gint64 now, gint64 time);
void relay_drain (Relay *self, guint track);

// ---- relay_sinks.c, without it ----

void relay_taker_unref (gpointer taker);

// Tells the sinks what goes out from now on.
void relay_begin_sinks (Relay *self);

// ---- relay_source.c, with the lock held ----

// Where in the relay's time what comes now belongs: as far behind the furthest packet of any track
// as the silence lasted.
gint64 relay_next_start (Relay *self, gint64 now);

// What comes next of a track and belongs before what has gone out of it is left out.
void relay_go_on_after_ends (Relay *self);

// Of a life whose first packet comes at `now`: where it begins in the relay's time; and that it
// does.
gint64 relay_source_find_start (RelaySource *self, gint64 now);
void relay_source_open_life (RelaySource *self, gint64 start, gint64 now, gint64 tolerance_s);

// From `base` to `timestamp`.
gint64 relay_ticks_from (guint64 base, guint32 timestamp);

// Of the current source. Takes the buffer, which must be writable.
void relay_source_send (
    RelaySource *self, guint track, GstBuffer *packet, gint64 now, guint64 base);

// ---- relay_switch.c, with the lock held ----

// Who is next begins to stand by, if readers would go on with its tracks.
void relay_stand_by (Relay *self);

// Is it time for who stands by, as a packet of the current source (`packet`, which begins a frame)
// or of the one that stands by comes at `now`? And it takes over.
gboolean relay_is_switch_time (Relay *self, guint track, GstBuffer *packet, gint64 now);
void relay_switch (Relay *self, gint64 now);

// ---- relay_keys.c ----

// With the lock held. Who is to be asked now for a keyframe that is wanted of the track; or NULL.
RelayAsker *relay_take_key_request (Relay *self, guint track, gint64 now);
// Without it. Takes the asker.
void relay_pass_key_request (RelayAsker *asker, guint track, gint64 now);
