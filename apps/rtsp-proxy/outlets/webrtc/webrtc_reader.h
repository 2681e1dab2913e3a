// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A reader over WebRTC: one session of a browser, and its place in the sinks of a stream. It plays
// from when the browser is connected until it ends: the browser closes it or is silent, the API or
// the mount closes it, or webrtc_reader_end() does. Reference counted. Call from any thread.

#include "mounts/presentation.h"
#include "outlets/webrtc/sdp_answer.h"
#include "outlets/webrtc/webrtc_port.h"
#include "outlets/webrtc/webrtc_stream.h"

typedef struct _WebrtcReader WebrtcReader;

// What all readers share.
typedef struct {
  WebrtcPort *port;
  Loop *loop; // sends the reports, and does what must not delay the port's thread
  // The reader has ended. Called once, in the thread of `loop`.
  void (*ended) (WebrtcReader *reader, gpointer data);
  gpointer data;
} WebrtcReaders;

// What a reader is made of.
typedef struct {
  Presentation *presentation; // in use: the reader takes over the use and a reference
  WebrtcStream *stream;
  SdpOffer *offer;     // the reader takes it over
  WeirLayerSet layers; // that the client has chosen
  const gchar *mount;  // on which it has a place, which it takes over (reader_limit_take())
  const gchar *peer;
} WebrtcReaderParts;

// Makes a session for an offer. Returns NULL and sets `error` to G_IO_ERROR_NOT_SUPPORTED if
// nothing of the stream fits; then it has taken nothing over. `readers` must outlive it. (transfer
// full)
WebrtcReader *webrtc_reader_new (
    const WebrtcReaders *readers, const WebrtcReaderParts *parts, GError **error);
WebrtcReader *webrtc_reader_ref (WebrtcReader *self);
void webrtc_reader_unref (WebrtcReader *self);

Presentation *webrtc_reader_get_presentation (WebrtcReader *self); // (transfer none)

// Returns the SDP answer, or NULL if the reader has ended. (transfer full)
gchar *webrtc_reader_write_answer (WebrtcReader *self);

// Reads a part of a description that the client sends later (sdp_offer_read_fragment()).
gboolean webrtc_reader_read_fragment (
    WebrtcReader *self, GBytes *body, gchar **ufrag, GError **error);

// Reports whether the client has this user name for ICE now.
gboolean webrtc_reader_is_same (WebrtcReader *self, const gchar *ufrag);

// Restarts ICE for a client with another user name. Returns the lines for it, or NULL if the reader
// has ended. (transfer full)
gchar *webrtc_reader_restart (WebrtcReader *self, const gchar *ufrag);

// Ends the reader soon. `reason` is logged.
void webrtc_reader_end (WebrtcReader *self, const gchar *reason);
