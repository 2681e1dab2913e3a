// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A reader over WebRTC, as the API and the metrics show it. Call from any thread.

#include "outlets/webrtc/webrtc_feedback.h"

// Adds the reader, whose places in sinks are `places`, of WebrtcPlace. `left_out` is what of the
// stream it does not get, or NULL. `close` gets a reason; it must not block, and may come until the
// reader has been removed and nobody uses it: `owner` is referenced by `ref` until then, and
// released by `unref`.
typedef struct {
  void (*close) (gpointer owner, const gchar *reason);
  gpointer (*ref) (gpointer owner);
  void (*unref) (gpointer owner);
} WebrtcServedOwner;

Reader *webrtc_served_new (WebrtcStream *stream, GPtrArray *places, WebrtcFeedback *feedback,
    const gchar *mount, const gchar *peer, const gchar *left_out,
    const WebrtcServedOwner *functions, gpointer owner);

// Removes it, before its places leave the sinks.
void webrtc_served_end (Reader *reader);
