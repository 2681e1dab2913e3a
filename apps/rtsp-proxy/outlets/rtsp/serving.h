// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Handles PLAY and PAUSE requests for each kind of content. All functions run in the client's
// thread.

#include <gst/rtsp-server/rtsp-server.h>

#include "outlets/rtsp/rtsp_connection.h"
#include "readers/readers.h"
#include "svc/layerset.h"

// A request, and the client that sent it.
typedef struct {
  GstRTSPContext *ctx; // NULL for describe()
  Content *content;    // in use, or NULL; may differ from the content of the request's media
  Reader *reader;      // NULL before the first PLAY
  const gchar *peer;   // for the log
  WeirLayerSet layers; // chosen by the URL
  gint64 delay_ns;     // requested by the URL, or -1
  Mounts *mounts;
} RtspRequest;

// All but `adjust_play` and `begin_pause` may be NULL.
typedef struct {
  // Adds the playable range to a description.
  void (*describe) (const RtspRequest *request, GstRTSPMedia *media, GstSDPMessage *sdp);
  // Called before gst-rtsp-server handles a PLAY, before it seeks, before it answers, and when it
  // has answered. The first two may put the request aside; all is then called once more.
  GstRTSPStatusCode (*begin_play) (const RtspRequest *request);
  GstRTSPStatusCode (*adjust_play) (
      const RtspRequest *request, GstRTSPTimeRange **range, GstSeekFlags *flags, gdouble *rate);
  void (*answer_play) (const RtspRequest *request);
  void (*end_play) (const RtspRequest *request);
  // Called before and after gst-rtsp-server handles a PAUSE. The first may put the request aside.
  GstRTSPStatusCode (*begin_pause) (const RtspRequest *request);
  void (*end_pause) (const RtspRequest *request);
} Serving;

extern const Serving serving_live, serving_session, serving_stored;

// Parts of `adjust_play` and `describe` that serve presentations of one reader as well.
GstRTSPStatusCode serving_live_adjust (
    const RtspRequest *request, GstRTSPTimeRange **range, GstSeekFlags *flags, gdouble *rate);
void serving_live_describe_sets (Presentation *presentation, GstSDPMessage *sdp);
