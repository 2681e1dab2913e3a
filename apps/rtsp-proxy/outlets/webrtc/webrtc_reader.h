// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A reader over WebRTC: one session of a browser, and its place in the sinks of a stream. It plays
// from when the browser is connected until it ends: the browser closes it or is silent, the API or
// the mount closes it, or webrtc_client_end() does. Call from any thread.

#include "mounts/mount.h"
#include "outlets/webrtc/webrtc_client.h"
#include "outlets/webrtc/webrtc_stream.h"

// What a reader is made of.
typedef struct {
  Presentation *presentation; // in use: the reader takes over the use and a reference
  WebrtcStream *stream;
  SdpOffer *offer;     // the reader takes it over
  WeirLayerSet layers; // that the client has chosen
  const gchar *mount;  // on which it has a place, which it takes over (reader_limit_take())
  const gchar *peer;
  Mount *varies; // whose renditions it may get by its line; NULL: it has asked for a certain form
} WebrtcReaderParts;

// Makes a reader for an offer. Returns NULL and sets `error` to G_IO_ERROR_NOT_SUPPORTED if
// nothing of the stream fits; then it has taken nothing over. (transfer full)
WebrtcClient *webrtc_reader_new (
    const WebrtcContext *context, const WebrtcReaderParts *parts, GError **error);
