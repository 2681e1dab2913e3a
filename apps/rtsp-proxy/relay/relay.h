// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The tracks that one point of the graph gives out. Sources feed it: one after the other, or one
// while the next stands by; out go, for each track, packets of one SSRC whose numbers and times go
// on over every change of source. Whoever takes them is a sink (relay_sink.h). What a track is
// stays known while no source is there.
//
// A relay has a time, in ns, the same instant for all of its tracks (splice.h). Where one relay is
// linked behind another, or a stage lies between them, both know how their times belong together:
// a source that takes over from another of the same origin goes on where that one was.
//
// Thread safe: any thread may call what does not say otherwise. No lock is held while a packet is
// handed on. What a packet costs: its header is parsed and written, and handed by reference; a
// second taker costs a copy.

#include "relay/relay_sink.h"

typedef struct _RelaySource RelaySource;

#define RELAY_MAX_TRACKS 8 // more in an SDP are ignored
#define RELAY_NO_BASE G_MAXUINT64

typedef enum {
  RELAY_TRACKS_FIRST,   // the first that this relay has heard of
  RELAY_TRACKS_SAME,    // the ones it had: readers go on
  RELAY_TRACKS_CHANGED, // others: what readers were told is, or would be, no longer true
} RelayTracks;

Relay *relay_new (void);
Relay *relay_ref (Relay *self);
void relay_unref (Relay *self);

// ---- who feeds it ----

// Called on the main thread, and not any more after relay_source_end().
typedef struct {
  // It began with these tracks. CHANGED, of a source that only stands by: relay_take() it, if
  // readers may be closed for it.
  void (*begun) (gpointer owner, RelayTracks tracks);
  // Its first packet since it began went out, or since it took over.
  void (*flows) (gpointer owner);
} RelaySourceCallbacks;

// `callbacks` may be NULL. Main thread.
RelaySource *relay_source_new (Relay *relay, const RelaySourceCallbacks *callbacks, gpointer owner);
RelaySource *relay_source_ref (RelaySource *self);
void relay_source_unref (gpointer self);

// Nothing goes out from it any more. Main thread.
void relay_source_end (RelaySource *self);

// The relay takes this source at its next join point: a packet of its video from which a decoder
// can start (of its audio, if there is no video), and not before the current source has ended its
// frame; if both have their media from the same relay, the current one goes on until it comes to
// the same instant, if that is within a second. A source that begins where there is no other is
// taken at once. NULL: the one that stood by does not any more.
void relay_prefer (Relay *self, RelaySource *source);

// Now, whatever it brings; returns what that means to readers.
RelayTracks relay_take (Relay *self, RelaySource *source);

gboolean relay_is_current (Relay *self, RelaySource *source);

// A new life of a source with these tracks: `caps` holds a GstCaps of application/x-rtp for each.
// A source that is not the current one tells what it would mean if it were.
RelayTracks relay_source_begin (RelaySource *self, GPtrArray *caps);

// The same for a life whose media are those of another relay: the bases of its packets are of the
// instant `start` of that relay's time.
RelayTracks relay_source_begin_from (RelaySource *self, GPtrArray *caps, Relay *from, gint64 start);

// A packet, at `now` ns (monotonic). `base` is the RTP timestamp of the start of this life
// (RTP-Info, or of the origin's instant), or RELAY_NO_BASE. Takes the buffer.
void relay_push (RelaySource *self, guint track, GstBuffer *packet, gint64 now, guint64 base);

// The source's mapping between NTP and RTP time, from its sender report.
void relay_set_ntp_map (RelaySource *self, guint track, const WeirNtpMap *map);

// Who can ask what is before the source for a keyframe of a track at `now`, with no lock held, in
// any thread. NULL: nobody can. `free` is called on `data` when there is another, or no source.
typedef void (*RelayAskFunc) (gpointer data, guint track, gint64 now);
void relay_source_set_asker (
    RelaySource *self, RelayAskFunc ask, gpointer data, GDestroyNotify free);

// ---- what it gives ----

// 0 until the tracks are known.
guint relay_n_tracks (Relay *self);

// What readers are told of a track: the parts of its caps that are fit to be published, and the
// SSRC that it has for as long as the relay lives. Returns a new reference.
GstCaps *relay_dup_caps (Relay *self, guint track);

// For RTP-Info (RFC 2326, 12.33), of a reader that begins before the sinks have had anything: the
// first packet that sinks have had, or that is held for them; or the sequence number that comes
// next, and the timestamp of one instant for all tracks, that of the latest packet of the track
// that is furthest behind. FALSE if this life of the source has brought no packet of the track, so
// that nothing can be said.
gboolean relay_get_rtp_info (Relay *self, guint track, guint16 *seq, guint32 *timestamp);

// Does the SSRC belong to one of the tracks that go out?
gboolean relay_has_ssrc (Relay *self, guint32 ssrc);

// The time up to which all tracks have come, and the RTP timestamp that a track has at a time.
gint64 relay_get_time (Relay *self);
guint32 relay_get_timestamp (Relay *self, guint track, gint64 time);

// The wall-clock time of an instant of a track, from the sender reports: *ntp of the relay's time
// *time. FALSE while nothing is known.
gboolean relay_get_ntp (Relay *self, guint track, guint64 *ntp, gint64 *time);

// Gives the sender report at the start of `packet` the source's mapping; see
// weir_rtcp_rewrite_sr().
gsize relay_rewrite_sr (Relay *self, guint track, guint8 *packet, gsize len);

// `sink` takes the tracks of the mask from now on; `start` is the instant of its bases.
void relay_add_sink (
    Relay *self, const RelaySink *functions, gpointer sink, guint32 tracks, gint64 start);

// `ended` is called, at once or when a packet that is on its way has been pushed.
void relay_remove_sink (Relay *self, gconstpointer sink);

// Sinks will be added that are not open at once: from now on what a life begins with is held until
// the first is.
void relay_expect_sinks (Relay *self);

// A reader needs a keyframe of the track, at `now` ns (monotonic): the current source is asked for
// one, at once, or with a packet that comes a second or more after it was last asked. So however
// many ask, it is once a second. Any thread.
void relay_ask_key (Relay *self, guint track, gint64 now);

typedef struct {
  guint64 n_packets; // taken from sources
  guint64 n_bytes;
  guint64 n_lost;     // missing between the sequence numbers of those taken
  guint64 n_stale;    // dropped: reordered over a splice, or of another SSRC than the current
  guint64 n_bad;      // dropped: no RTP
  guint64 n_idle;     // dropped: of a source that is not the current one
  guint64 n_switches; // from one source to another
} RelayStats;

void relay_get_stats (Relay *self, RelayStats *stats);
