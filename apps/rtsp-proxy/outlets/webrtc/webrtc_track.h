// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One track of a stream for browsers: a relay's packets are made fit (codec/fit.h) and go into the
// window of a fanoutsink, once for all readers.

#include <gio/gio.h>

#include "codec/fit.h"
#include "mounts/presentation.h"
#include "outlets/webrtc/webrtc_codecs.h"

// A track of a stream.
typedef struct {
  gboolean is_video;
  WebrtcCodecs codec;
  const gchar *encoding; // in capitals: "H264", "OPUS"
  // What the source says of itself, for the answer: "profile-level-id=64001f", "profile-id=0";
  // NULL: nothing.
  const gchar *fmtp;
  GstElement *sink; // its readers get packets of this track, with a 12-byte header
} WebrtcTrack;

typedef struct _WebrtcStreamTrack WebrtcStreamTrack;

// Makes track `number` of a relay, of which the main thread may ask keyframes. `caps` are those of
// its packets. Returns NULL and sets `error` on failure.
WebrtcStreamTrack *webrtc_stream_track_new (Presentation *presentation, Relay *relay, guint number,
    GstCaps *caps, GSocket *v4, GSocket *v6, GError **error);
void webrtc_stream_track_free (WebrtcStreamTrack *self); // when the relay has ended its sink

const WebrtcTrack *webrtc_stream_track_get (const WebrtcStreamTrack *self);

// Takes a packet, and its buffer. Call from one thread at a time.
void webrtc_stream_track_push (WebrtcStreamTrack *self, const RelayPacket *packet);

// See webrtc_stream.h. Call from any thread. `*time` is in ns of the relay's time, at `now`.
gboolean webrtc_stream_track_get_time (WebrtcStreamTrack *self, gint64 now, gint64 *time);
gint64 webrtc_stream_track_ask_key (WebrtcStreamTrack *self, gint64 now);

// Returns how many packets, since the program began, were left out for a reason of codec/fit.h, and
// the reason's name for the metrics, such as "late"; NULL if it is none. Call from any thread.
guint64 webrtc_track_get_left_out (WeirFitResult reason);
const gchar *webrtc_track_get_reason (WeirFitResult reason);
