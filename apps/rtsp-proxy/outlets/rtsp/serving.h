// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// How RTSP serves a kind of content: what a reader's requests do to it. All in the client's thread.

#include <gst/rtsp-server/rtsp-server.h>

#include "content/content.h"
#include "readers/readers.h"
#include "svc/layerset.h"

// Whose request it is.
typedef struct {
  GstRTSPContext *ctx;
  Content *content;    // in use, which may be another than that of the request's media; or NULL
  Reader *reader;      // what is counted of it; NULL before its first PLAY
  const gchar *peer;   // its name, for the log
  WeirLayerSet layers; // that its URLs choose
  gint64 delay_ns;     // that its URL asks for, or -1
} Asking;

typedef struct {
  // Adds to the description what there is; may be NULL.
  void (*describe) (const Asking *asking, GstRTSPMedia *media, GstSDPMessage *sdp);
  // Before a PLAY. Then, what it wants of the library; the request may be put aside, and comes here
  // once more. Then in its answer.
  GstRTSPStatusCode (*begin_play) (const Asking *asking);
  GstRTSPStatusCode (*adjust_play) (
      const Asking *asking, GstRTSPTimeRange **range, GstSeekFlags *flags, gdouble *rate);
  void (*answer_play) (const Asking *asking);
  // Before and after a PAUSE.
  GstRTSPStatusCode (*begin_pause) (const Asking *asking);
  void (*end_pause) (const Asking *asking);
} Serving;

extern const Serving serving_live, serving_stored;
