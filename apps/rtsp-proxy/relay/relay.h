// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A relay joins sources to sinks at one point of the graph. One source at a time feeds the relay; a
// second one may stand by. For each track the relay sends packets of one SSRC to its sinks
// (relay_sink.h): sequence numbers and timestamps continue across every change of source. The
// tracks stay known while the relay has no source.
//
// A relay has its own time, in ns, common to all of its tracks (splice.h). A relay that gets its
// media from another relay, directly or through a stage, knows the offset between their times. The
// first relay of such a chain is the origin. When a source takes over from another source with the
// same origin, the media continue at the same instant.
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

// Makes a source of `relay`. `callbacks` may be NULL. Call from the main thread only. The caller
// owns the reference.
RelaySource *relay_source_new (Relay *relay, const RelaySourceCallbacks *callbacks, gpointer owner);
// The same for a clip, which only relay_insert() makes current.
RelaySource *relay_source_new_clip (
    Relay *relay, const RelaySourceCallbacks *callbacks, gpointer owner);
RelaySource *relay_source_ref (RelaySource *self);
void relay_source_unref (gpointer self);

// Stops the source: its packets are no longer sent. Call from the main thread only.
void relay_source_end (RelaySource *self);

// Makes `source` stand by, and takes it at its next join point: a video packet from which a decoder
// can start (an audio packet if there is no video). The current source first ends its frame. If
// both sources have the same origin, the current one continues until it reaches the same instant,
// for at most 1 s. If the relay has no current source, it takes `source` at once. NULL: no source
// stands by any more.
void relay_prefer (Relay *self, RelaySource *source);

// Makes `source` stand by, with its packets from its newest join point on: at most 8 MiB, 16,384
// packets and 30 s. Takes it only when relay_fail_over() says so. NULL: no source stands by any
// more. For sources without an origin, such as upstreams. Call from the main thread only.
void relay_keep_warm (Relay *self, RelaySource *source);

// Reports whether `source` is the warm one and has a join point, so that it could take over now.
gboolean relay_is_warm (Relay *self, RelaySource *source);

// Takes the warm source at its newest join point at `now` (ns, monotonic): the current source has
// died. Returns FALSE if `source` is not the warm one, or has no join point.
gboolean relay_fail_over (Relay *self, RelaySource *source, gint64 now);

// Takes `source` at once, even if its tracks differ. Returns how its tracks compare to the relay's.
RelayTracks relay_take (Relay *self, RelaySource *source);

// Makes `clip` wait for a keyframe of the current source, which it replaces from there on: the
// clip's run begins at the instant of that keyframe. Its key handler is called then, and has to
// begin the media; nothing of the clip may come before. relay_prefer() and relay_source_end() end
// it, and the source before goes on at its own place in time. NULL: no clip waits any more. Returns
// FALSE if no clip waits now, as its tracks are not the relay's. `now` is in ns, monotonic.
gboolean relay_insert (Relay *self, RelaySource *clip, gint64 now);

// Asks the source that stands by for a keyframe at `now`, so that it need not be waited for.
void relay_ask_next (Relay *self, gint64 now);

gboolean relay_is_current (Relay *self, RelaySource *source);

// Begins a new run of the source with these tracks: `caps` holds a GstCaps of application/x-rtp for
// each, and owns them. The source keeps a reference to `caps`. Returns how the tracks compare to
// the relay's; for a source that is not the current one, how they would.
RelayTracks relay_source_begin (RelaySource *self, GPtrArray *caps);

// Returns the caps of relay_source_begin(), or NULL before that. (transfer full)
GPtrArray *relay_source_dup_caps (RelaySource *self);

// Like relay_source_begin(), for a run whose media come from relay `from`: `base` of its packets
// belongs to the instant `start` of that relay's time.
RelayTracks relay_source_begin_from (RelaySource *self, GPtrArray *caps, Relay *from, gint64 start);

// Passes a packet that arrived at `now` (ns, monotonic). `base` is the RTP timestamp of the start
// of this run (from RTP-Info, or of the instant `start`), or RELAY_NO_BASE. Takes ownership of
// `packet`.
void relay_push (RelaySource *self, guint track, GstBuffer *packet, gint64 now, guint64 base);

// Like relay_push(), but the packet waits for the next relay_push() or relay_settle() of the track,
// so that sinks get packets that came together in one call.
void relay_push_more (RelaySource *self, guint track, GstBuffer *packet, gint64 now, guint64 base);

// Passes the packets of relay_push_more() on.
void relay_settle (RelaySource *self, guint track);

// Counts `n` of something that happened to packets of the source before they came here, here and in
// the relays behind this one.
void relay_count (RelaySource *self, RelayCount what, guint64 n);

// Says that the source plays a stored title that it can seek, and from where. The sinks that are
// there now are told.
void relay_set_place (RelaySource *self, const TitlePlace *place);

// Sets the source's mapping between NTP and RTP time, from its sender report.
void relay_set_ntp_map (RelaySource *self, guint track, const WeirNtpMap *map);

// Passes the current mappings of all tracks to the sinks again, for one that has begun a new run.
void relay_pass_all_ntp (Relay *self);

// Sets the function that asks the source's upstream for a keyframe of a track at `now` (ns,
// monotonic). It is called from any thread, with no lock held. NULL: the upstream cannot be asked.
// `free` is called on `data` when the function is replaced or the source is freed.
typedef void (*RelayAskFunc) (gpointer data, guint track, gint64 now);
void relay_source_set_key_handler (
    RelaySource *self, RelayAskFunc ask, gpointer data, GDestroyNotify free);

// Sets a function that asks relay `from`, on which it keeps a reference.
void relay_source_ask_from (RelaySource *self, Relay *from);

// ---- tracks and sinks ----

// Returns the number of tracks; 0 until they are known.
guint relay_n_tracks (Relay *self);

// Returns a track's caps for an SDP: the parts that are safe to publish, the parameter sets that
// came last, and the relay's SSRC of the track. Returns NULL if there is no such track. (transfer
// full)
GstCaps *relay_dup_caps (Relay *self, guint track);

// Sets the numbers for RTP-Info (RFC 2326, 12.33) of a new reader: sequence number and timestamp of
// the first packet that the sinks have got or that is held for them. Without such a packet, sets
// the next sequence number, and the timestamp of relay_get_time(). Returns FALSE if the track has
// had no packet in this run of the source.
gboolean relay_get_rtp_info (Relay *self, guint track, guint16 *seq, guint32 *timestamp);

// Sets the numbers for RTP-Info of the first packet of a run that waits in relay_push_more(). For a
// track without such a packet, sets the next sequence number, and the timestamp of the instant of
// the other tracks' first packet. Returns FALSE if they are not known.
gboolean relay_get_waiting (Relay *self, guint track, guint16 *seq, guint32 *timestamp);

// Returns the relay's time, in ns, up to which all tracks have had packets. A track that is more
// than 1 s behind the others is sparse and does not count.
gint64 relay_get_time (Relay *self);

// Returns a track's RTP timestamp at `time`, in ns of the relay's time.
guint32 relay_get_timestamp (Relay *self, guint track, gint64 time);

// Sets the wall-clock time `*ntp` of the instant `*time` of a track, in ns of the relay's time,
// from the sender reports. Returns FALSE if there was no report.
gboolean relay_get_ntp (Relay *self, guint track, guint64 *ntp, gint64 *time);

// Sets the wall-clock time `*ntp` of an outgoing RTP timestamp of a track. Returns FALSE if there
// was no sender report.
gboolean relay_get_ntp_at (Relay *self, guint track, guint32 timestamp, guint64 *ntp);

typedef struct {
  guint run;     // of the current source; differs from that of the last run
  gint64 opened; // arrival of the first packet of the run, ns, monotonic
  gboolean known;
  gint64 offsets[RELAY_MAX_TRACKS]; // ns to add to the times of a track's packets
  gboolean has_clock;
  gint64 clock; // Unix time of the source's clock minus those times, ns
} RelaySync;

// Tells how the times of tracks of audio and video relate to each other. The relay passes packets
// at once, so a track's place in a run is that of RTP-Info, or else of the arrival of its first
// packet; sender reports that come later say better (RFC 3550, section 6.4.1). `known` if all
// tracks had packets, and all had a report or a stated place. The first track of video, or else the
// first track, keeps its times; offsets of more than 3 s are not believed, and are 0.
void relay_get_sync (Relay *self, RelaySync *sync);

// Converts an instant of this relay's time to that of relay `other`. Returns FALSE if their media
// do not come from one origin.
gboolean relay_convert_time (Relay *self, Relay *other, gint64 *time);

// Sets by how many ticks, modulo 2^32, the RTP timestamp of an instant of a track is ahead of that
// of the same instant in a track of `other`, which has the same clock rate. Returns FALSE if their
// media do not come from one origin.
gboolean relay_get_ahead (
    Relay *self, guint index, Relay *other, guint other_index, guint32 *ahead);

// Adds a sink for the tracks whose bits are set in `tracks`. `start` is the instant, in ns of the
// relay's time, whose RTP timestamp the sink's packets get as `base`.
void relay_add_sink (
    Relay *self, const RelaySink *functions, gpointer sink, guint32 tracks, gint64 start);

// Removes a sink. `ended` is called at once, or after the packet that is on its way.
void relay_remove_sink (Relay *self, gconstpointer sink);

// Announces sinks with is_open(), or that none is to come: if so, the relay holds the first packets
// of a run until such a sink is open.
void relay_expect_sinks (Relay *self, gboolean expects);

// Reports whether the relay holds the first packets of a run, or has none yet: sinks with is_open()
// that are added now get the beginning.
gboolean relay_holds_beginning (Relay *self);

// Reports whether the relay holds packets of the track that a sink with is_open() which is added
// now gets, if it has `from_start` or not.
gboolean relay_holds_for (Relay *self, guint track, gboolean from_start);

// Announces a sink that has `from_start`, or that there is none any longer. There is one at most.
void relay_await_sink (Relay *self, gboolean awaits);

// Keeps the packets since the newest join point from now on, for sinks with `from_join`: of the
// track whose join points count, and at most 8 MiB, 16,384 packets and 30 s. Of a longer group it
// keeps nothing until the next join point.
void relay_keep_group (Relay *self);

// Asks the current source for a keyframe of the track, at `now` ns (monotonic). The request is sent
// at most once a second for each track; a request that comes earlier is sent with the first packet
// after that second.
void relay_ask_key (Relay *self, guint track, gint64 now);

typedef struct {
  guint64 n_packets; // from the current source
  guint64 n_bytes;
  guint64 n_lost;     // missing, by the sequence numbers
  guint64 n_stale;    // dropped: from before a splice, or with an SSRC other than the current one
  guint64 n_bad;      // dropped: not RTP
  guint64 n_idle;     // dropped: from a source that is not the current one
  guint64 n_switches; // changes of source
  guint64 counts[RELAY_N_COUNTS];
} RelayStats;

void relay_get_stats (Relay *self, RelayStats *stats);
