// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What PLAY and PAUSE requests do to each kind of content. All functions run in the client's
// thread.

#include <gst/rtsp-server/rtsp-server.h>

#include "content/content.h"
#include "readers/readers.h"
#include "svc/layerset.h"

// A request, and the client that sent it.
typedef struct {
  GstRTSPContext *ctx; // NULL for describe()
  Content *content;    // in use, or NULL; may be other content than the request's media
  Reader *reader;      // NULL before the first PLAY
  const gchar *peer;   // for the log
  WeirLayerSet layers; // that the URL chooses
  gint64 delay_ns;     // that the URL asks for, or -1
} Asking;

typedef struct {
  // Adds the range that can be played to the description. May be NULL.
  void (*describe) (const Asking *asking, GstRTSPMedia *media, GstSDPMessage *sdp);
  // Run before gst-rtsp-server handles a PLAY, before it seeks, and before it answers.
  // adjust_play() may put the request aside; it then runs once more.
  GstRTSPStatusCode (*begin_play) (const Asking *asking);
  GstRTSPStatusCode (*adjust_play) (
      const Asking *asking, GstRTSPTimeRange **range, GstSeekFlags *flags, gdouble *rate);
  void (*answer_play) (const Asking *asking);
  // Run before and after gst-rtsp-server handles a PAUSE.
  GstRTSPStatusCode (*begin_pause) (const Asking *asking);
  void (*end_pause) (const Asking *asking);
} Serving;

extern const Serving serving_live, serving_stored;
