// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The tracks of one mount, between its upstream and its readers. Packets of one upstream life after
// the other come in; one RTP stream a track, with one SSRC and numbers that go on, goes out to the
// feeds that are attached. What a track is stays known while the upstream is away.
//
// Thread safe: any thread may call. The lock is not held while a feed is pushed to.

#include <gst/gst.h>

#include "rtcp.h"

typedef struct _Relay Relay;
typedef struct _Feed Feed;

#define RELAY_MAX_TRACKS 8 // more in an SDP are ignored
#define RELAY_NO_BASE G_MAXUINT64

typedef enum {
  RELAY_TRACKS_FIRST,   // the first that this relay has heard of
  RELAY_TRACKS_SAME,    // the ones it had: readers go on
  RELAY_TRACKS_CHANGED, // others: what readers were told is no longer true
} RelayTracks;

Relay *relay_new (void);
Relay *relay_ref (Relay *self);
void relay_unref (Relay *self);

// A new upstream life with these tracks: `caps` holds a GstCaps of application/x-rtp for each.
RelayTracks relay_begin (Relay *self, GPtrArray *caps);

// 0 until the tracks are known.
guint relay_n_tracks (Relay *self);

// What readers are told of a track: the parts of its caps that are fit to be published, and the
// SSRC that it has for as long as the relay lives. Returns a new reference.
GstCaps *relay_dup_caps (Relay *self, guint track);

// For RTP-Info (RFC 2326, 12.33): the sequence number that comes next, and the timestamp of one
// instant for all tracks, that of the latest packet of the track that is furthest behind. FALSE if
// this life of the upstream has brought no packet of the track, so that nothing can be said.
gboolean relay_get_rtp_info (Relay *self, guint track, guint16 *seq, guint32 *timestamp);

// Does the SSRC belong to one of the tracks that go out?
gboolean relay_has_ssrc (Relay *self, guint32 ssrc);

// A packet of the upstream, at `now` ns (monotonic). `base` is the RTP timestamp that the upstream
// gave for the start of play (RTP-Info), or RELAY_NO_BASE. Takes the buffer.
void relay_push (Relay *self, guint track, GstBuffer *packet, gint64 now, guint64 base);

// The upstream's mapping between NTP and RTP time, from its sender report.
void relay_set_ntp_map (Relay *self, guint track, const WeirNtpMap *map);

// Gives the sender report at the start of `packet` the upstream's mapping; see
// weir_rtcp_rewrite_sr().
gsize relay_rewrite_sr (Relay *self, guint track, guint8 *packet, gsize len);

void relay_attach (Relay *self, guint track, Feed *feed);
void relay_detach (Relay *self, guint track, Feed *feed);

typedef struct {
  guint64 n_packets; // taken from the upstream
  guint64 n_stale;   // dropped: reordered over a splice, or of another SSRC than the current
  guint64 n_bad;     // dropped: no RTP
} RelayStats;

void relay_get_stats (Relay *self, RelayStats *stats);
