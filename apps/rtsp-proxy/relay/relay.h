// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A relay joins sources to sinks at one point of the graph. One source at a time feeds the relay; a
// second one may stand by. For each track the relay sends packets of one SSRC to its sinks
// (relay_sink.h): sequence numbers and timestamps continue across every change of source. The
// tracks stay known while no source is there.
//
// A relay has its own time, in ns, common to all of its tracks (splice.h). If a relay gets its
// media from another relay, directly or through a stage, it knows the offset between their times:
// when a source of the same origin takes over, the media continue at the same instant.
//
// Call from any thread, unless the function says otherwise. The relay holds no lock while it passes
// a packet on. It parses and rewrites each header once and passes the buffer by reference; each
// further sink costs one copy.

#include "relay/relay_sink.h"

typedef struct _RelaySource RelaySource;

#define RELAY_MAX_TRACKS 8 // further tracks of an SDP are ignored
#define RELAY_NO_BASE G_MAXUINT64

typedef enum {
  RELAY_TRACKS_FIRST,   // the relay had no tracks before
  RELAY_TRACKS_SAME,    // the tracks are unchanged: readers continue
  RELAY_TRACKS_CHANGED, // the tracks differ from those in the readers' SDP
} RelayTracks;

Relay *relay_new (void);
Relay *relay_ref (Relay *self);
void relay_unref (Relay *self);

// ---- sources ----

// Called on the main thread, and never after relay_source_end().
typedef struct {
  // The source began with these tracks. If a standby source reports CHANGED, only relay_take()
  // makes it current; the readers must then be closed.
  void (*begun) (gpointer owner, RelayTracks tracks);
  // The first packet since the source began or took over was sent.
  void (*flows) (gpointer owner);
} RelaySourceCallbacks;

// `callbacks` may be NULL. Call from the main thread only.
RelaySource *relay_source_new (Relay *relay, const RelaySourceCallbacks *callbacks, gpointer owner);
RelaySource *relay_source_ref (RelaySource *self);
void relay_source_unref (gpointer self);

// Stops the source: its packets are no longer sent. Call from the main thread only.
void relay_source_end (RelaySource *self);

// Makes `source` stand by, and takes it at its next join point: a video packet from which a decoder
// can start (an audio packet if there is no video). The current source first ends its frame. If
// both sources get their media from the same relay, the current one continues until it reaches the
// same instant, for at most 1 s. If there is no current source, `source` is taken at once. NULL: no
// source stands by any more.
void relay_prefer (Relay *self, RelaySource *source);

// Takes `source` at once, even if its tracks differ. Returns how its tracks compare to the relay's.
RelayTracks relay_take (Relay *self, RelaySource *source);

gboolean relay_is_current (Relay *self, RelaySource *source);

// Begins a new run of the source with these tracks: `caps` holds a GstCaps of application/x-rtp for
// each. Returns how the tracks compare to the relay's; for a source that is not the current one,
// how they would.
RelayTracks relay_source_begin (RelaySource *self, GPtrArray *caps);

// Like relay_source_begin(), for a run whose media come from relay `from`: `base` of its packets
// belongs to the instant `start` of that relay's time.
RelayTracks relay_source_begin_from (RelaySource *self, GPtrArray *caps, Relay *from, gint64 start);

// Passes a packet that arrived at `now` (ns, monotonic). `base` is the RTP timestamp of the start
// of this run (from RTP-Info, or of the instant `start`), or RELAY_NO_BASE. Takes ownership of
// `packet`.
void relay_push (RelaySource *self, guint track, GstBuffer *packet, gint64 now, guint64 base);

// Sets the source's mapping between NTP and RTP time, from its sender report.
void relay_set_ntp_map (RelaySource *self, guint track, const WeirNtpMap *map);

// Sets the function that asks the source's upstream for a keyframe of a track at `now` (ns,
// monotonic). It is called from any thread, with no lock held. NULL: the upstream cannot be asked.
// `free` is called on `data` when the function is replaced or the source is freed.
typedef void (*RelayAskFunc) (gpointer data, guint track, gint64 now);
void relay_source_set_asker (
    RelaySource *self, RelayAskFunc ask, gpointer data, GDestroyNotify free);

// ---- tracks and sinks ----

// Returns the number of tracks; 0 until they are known.
guint relay_n_tracks (Relay *self);

// Returns a track's caps for an SDP: the parts that are safe to publish, and the relay's SSRC of
// the track. Returns NULL if there is no such track. (transfer full)
GstCaps *relay_dup_caps (Relay *self, guint track);

// Sets the numbers for RTP-Info (RFC 2326, 12.33) of a new reader: those of the first packet that
// the sinks have had or that is held for them. If there is no such packet: the next sequence
// number, and the timestamp of the instant up to which all tracks have come. Returns FALSE if this
// run of the source has brought no packet of the track.
gboolean relay_get_rtp_info (Relay *self, guint track, guint16 *seq, guint32 *timestamp);

// Reports whether `ssrc` is the outgoing SSRC of a track.
gboolean relay_has_ssrc (Relay *self, guint32 ssrc);

// Returns the relay's time up to which all tracks have come, in ns; and a track's RTP timestamp at
// a time.
gint64 relay_get_time (Relay *self);
guint32 relay_get_timestamp (Relay *self, guint track, gint64 time);

// Sets the wall-clock time `*ntp` of the instant `*time` of a track, in ns of the relay's time,
// from the sender reports. Returns FALSE while there is none.
gboolean relay_get_ntp (Relay *self, guint track, guint64 *ntp, gint64 *time);

// Writes the source's mapping into the sender report at the start of `packet`; see
// weir_rtcp_rewrite_sr(). Returns the new length in bytes.
gsize relay_rewrite_sr (Relay *self, guint track, guint8 *packet, gsize len);

// Adds a sink for the tracks whose bits are set in `tracks`. `start` is the instant of `base` in
// its packets, in ns of the relay's time.
void relay_add_sink (
    Relay *self, const RelaySink *functions, gpointer sink, guint32 tracks, gint64 start);

// Removes a sink. `ended` is called at once, or after the packet that is on its way.
void relay_remove_sink (Relay *self, gconstpointer sink);

// Announces that sinks will be added that open later: from now on the relay holds the first packets
// of a run until a sink is open.
void relay_expect_sinks (Relay *self);

// Asks the current source for a keyframe of the track, at `now` ns (monotonic). The request is sent
// at most once a second for each track; a request that comes earlier is sent with the first packet
// after that second.
void relay_ask_key (Relay *self, guint track, gint64 now);

typedef struct {
  guint64 n_packets; // taken from sources
  guint64 n_bytes;
  guint64 n_lost;     // missing between the sequence numbers of the packets taken
  guint64 n_stale;    // dropped: from before a splice, or with an SSRC other than the current one
  guint64 n_bad;      // dropped: not RTP
  guint64 n_idle;     // dropped: from a source that is not the current one
  guint64 n_switches; // changes of source
} RelayStats;

void relay_get_stats (Relay *self, RelayStats *stats);
