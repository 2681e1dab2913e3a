// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The place of a reader in the sink of a track. Call from any thread.

#include <gst/gst.h>

#include "outlets/webrtc/webrtc_stream.h"
#include "readers/readers.h"
#include "svc/layerset.h"

typedef struct {
  guint track; // of the stream
  guint32 ssrc;
  gboolean is_video;
  GstElement *sink;
  gchar *token; // of the WeirSrtp, which names the reader to the sink
  gint port;    // atomic: the other half of the name
  gint64 again; // the keyframe with which it began again; the feedback's

  GMutex lock;         // protects the fields below
  WebrtcStream *other; // of a rendition, of which the reader is or is to be a guest; or NULL
  gboolean is_guest;
} WebrtcPlace;

// Takes ownership of the token. Free it with webrtc_place_free().
WebrtcPlace *webrtc_place_new (
    guint track, guint32 ssrc, gboolean is_video, GstElement *sink, gchar *token);
void webrtc_place_free (gpointer self);

// Begin and end sending. `port` is of UDP, or 0; `layers` are those to begin with.
void webrtc_place_enter (WebrtcPlace *self, guint16 port, WeirLayerSet layers);
void webrtc_place_leave (WebrtcPlace *self);

// Sets which layers are sent. Returns FALSE if the reader is not in the sink.
gboolean webrtc_place_set_layers (WebrtcPlace *self, WeirLayerSet layers);

// Restricts what is sent to a state, an index in reader_state_names. Returns FALSE if the reader is
// not in the sink.
gboolean webrtc_place_restrict (WebrtcPlace *self, guint state);

// Returns the sink's statistics of the reader: an empty structure if it is not in the sink.
// (transfer full)
GstStructure *webrtc_place_dup_stats (WebrtcPlace *self);

// Fills the line for `duration` ms so that it carries `bits` bit/s. Returns FALSE if the reader is
// not in the sink, or gets no retransmissions of their own.
gboolean webrtc_place_probe (WebrtcPlace *self, guint64 bits, guint duration);

// Sends packets again that the reader has not got. `seqs` are `n` sequence numbers of the reader,
// which answers after `round_trip`, ns.
void webrtc_place_resend (WebrtcPlace *self, const guint16 *seqs, gsize n, gint64 round_trip);

// Lets the reader begin again at the newest keyframe.
void webrtc_place_rejoin (WebrtcPlace *self);

// Lets the reader, whose stream is `own`, have the packets of this video track from the stream of
// `rendition` (reader_splice()).
ReaderSplice webrtc_place_splice (
    WebrtcPlace *self, WebrtcStream *own, Presentation *rendition, gint64 now);

// Returns the stream of the rendition from which the reader has its packets (transfer full), or
// NULL. Its track is the first.
WebrtcStream *webrtc_place_dup_guest_of (WebrtcPlace *self);
