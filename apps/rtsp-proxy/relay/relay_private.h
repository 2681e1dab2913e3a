// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the files of a relay share: relay.c (tracks and who takes them), relay_source.c (who brings
// them).

#include <gst/base/gstqueuearray.h>

#include "relay/relay.h"
#include "relay/standby.h"
#include "rtp/rtp.h"
#include "rtp/splice.h"

typedef struct {
  GstBuffer *packet;
  gint64 now;
  gint64 time;
} RelayItem;

// A relay behind this one.
typedef struct {
  gatomicrefcount refs;
  RelaySource *to;
  guint32 tracks;
  gboolean begins;
  gint64 start; // the instant that `base` is of
  guint64 base[RELAY_MAX_TRACKS];
} RelayLink;

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
  GPtrArray *feeds;   // of Feed; replaced, never changed, so that it can be walked without the lock
  GstQueueArray *out; // of RelayItem: numbered, on its way
  gboolean draining;  // somebody hands on what is in `out`
  RelayNumbers first; // that feeds have had since the newest was attached
  gboolean holding;   // what the first life brings is held until a feed is open
  GQueue held;        // of GstBuffer
  GArray *held_times; // gint64 of each
  gsize held_bytes;
} RelayTrack;

typedef struct {
  guint32 ssrc;
  gint payload;        // that its caps told; -1: none
  gboolean alive;      // this life has had a packet
  gint64 last_arrival; // now of its last packet
  WeirNtpMap ntp;      // as it said
} SourceTrack;

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
};

struct _Relay {
  gatomicrefcount refs;
  guint64 id;  // of no other relay ever, as another one's address may be. Not 0
  GMutex lock; // all below; that of a relay before one behind it
  RelayTrack tracks[RELAY_MAX_TRACKS];
  guint n_tracks;
  gboolean expects_feeds;
  GPtrArray *links; // of RelayLink; replaced, never changed
  RelaySource *current, *next;
  gint64 last_arrival; // now of the last packet of any life
  // Where its time comes from: the relay that the media of its current or last source come from.
  guint64 origin;       // its id; 0: itself
  gint64 origin_offset; // its time - the origin's
  gint64 n_missing;     // what comes late is taken off
  RelayStats stats;
};

// ---- relay.c, with the lock held ----

// These caps are what goes out from now on.
void relay_set_tracks (Relay *self, GPtrArray *caps);
gboolean relay_has_tracks (Relay *self, GPtrArray *caps);

// A life of its source begins: what was held of the one before is of no use.
void relay_hold (Relay *self);
void relay_drop_held (Relay *self); // nor is it once its source has ended

// Queues a numbered packet; takes it. relay_drain() lets go of the lock and takes it again.
void relay_queue (Relay *self, guint track, GstBuffer *packet, gint64 now, gint64 time);
void relay_drain (Relay *self, guint track);

// ---- relay.c, without it ----

// An instant t of its time is t - *offset of the time of its origin, which may be itself.
guint64 relay_get_origin (Relay *self, gint64 *offset);

// Tells the relays behind this one what goes out.
void relay_begin_links (Relay *self);
void relay_pass_ntp (Relay *self, guint track);
