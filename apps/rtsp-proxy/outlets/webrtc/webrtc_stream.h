// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A presentation as browsers take it: one video and one audio track, conditioned once for all
// readers (codec/fit.h), each with a fanoutsink in whose window the readers have their positions.
// It runs as long as a reference exists, and begins at the newest keyframe that the presentation's
// relay keeps. What a browser can play passes; other sound becomes Opus by the stage `opus`, which
// all readers share: while it fails, they have no sound. Call from any thread.
//
// Layers are chosen for each reader, by `set-layers` of the sink.

#include "outlets/webrtc/webrtc_track.h"

typedef struct _WebrtcStream WebrtcStream;

// Returns the stream with the tracks that a reader with these codecs gets, and begins it if it does
// not run. `v4` and `v6` are the sockets from which all its sinks send; without any the sinks have
// their own. The caller must use the presentation meanwhile (presentation_use()), and the
// presentation must be READY. Readers that get the same have one stream.
//
// Returns NULL and sets `error` to G_IO_ERROR_NOT_SUPPORTED, with what the presentation has and
// what the reader offers, if no track fits or only sound does though both have video; else to
// another error if its sinks cannot be made. (transfer full)
WebrtcStream *webrtc_stream_get (
    Presentation *presentation, guint32 codecs, GSocket *v4, GSocket *v6, GError **error);
WebrtcStream *webrtc_stream_ref (WebrtcStream *self);
void webrtc_stream_unref (WebrtcStream *self); // the main thread frees it

// The tracks stay the same as long as the stream exists: video first.
guint webrtc_stream_n_tracks (WebrtcStream *self);
const WebrtcTrack *webrtc_stream_get_track (WebrtcStream *self, guint track);

// Reports whether the stream has ended: the presentation's tracks have changed, or its sound cannot
// be encoded any longer. Its readers then get nothing more, and webrtc_stream_get() returns
// another.
gboolean webrtc_stream_has_ended (WebrtcStream *self);

// Reports whether it is a stream of the presentation.
gboolean webrtc_stream_is_of (const WebrtcStream *self, const Presentation *presentation);

// relay_get_ahead() for two tracks.
gboolean webrtc_stream_get_ahead (
    WebrtcStream *self, guint track, WebrtcStream *other, guint other_track, guint32 *ahead);

// Returns text about the tracks that are left out, and why (relay/left_out.h), or NULL. (transfer
// full)
gchar *webrtc_stream_dup_left_out (WebrtcStream *self);

// A reader cannot decode the track, at `now` (ns, clock_now()). Returns when the last picture left
// from which a decoder can start, if that was at most 300 ms ago. Else asks the source for one, at
// most once a second, and returns 0.
gint64 webrtc_stream_ask_key (WebrtcStream *self, guint track, gint64 now);

// Sets the times of a sender report of the track at `now` (ns, clock_now()): the RTP timestamp of
// an instant, and the same instant in NTP format (RFC 5905), on one clock for all tracks. A reader
// whose timestamps the sink moves (catch-up) needs the same shift. Returns FALSE before the first
// packet.
gboolean webrtc_stream_get_clock (
    WebrtcStream *self, guint track, gint64 now, guint32 *rtp, guint64 *ntp);
