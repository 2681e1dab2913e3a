// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Answers the requests of an RTSP connection that publishes: ANNOUNCE, and the SETUP, RECORD, PAUSE
// and TEARDOWN that follow it. The packets go to the upstream `publish` of the mount as they are,
// over UDP or interleaved. Call from the client's thread only, unless a comment says otherwise.

#include "outlets/rtsp/rtsp_connection.h"

typedef struct _Publisher Publisher;

typedef struct {
  RtspConnection *connection;
  void (*close) (GstRTSPClient *client, const gchar *reason);
  Publisher *publisher; // NULL: the connection does not publish
} Publishing;

// `connection` must outlive the structure. `close` closes the connection, from any thread.
void publishing_init (Publishing *self, RtspConnection *connection,
    void (*close) (GstRTSPClient *client, const gchar *reason));

// Ends the publishing, if there is any, and logs the reason. Call it before the structure is freed.
void publishing_end (Publishing *self, const gchar *reason);

// Answer a request of a connection that publishes or would: a RECORD for `url`, or after an
// ANNOUNCE a SETUP, PAUSE or TEARDOWN; and an admitted ANNOUNCE. They return ANSWERED.
GstRTSPStatusCode publishing_answer (Publishing *self, GstRTSPContext *ctx, const GstRTSPUrl *url);
GstRTSPStatusCode publishing_announce (
    Publishing *self, GstRTSPContext *ctx, const GstRTSPUrl *url);

// Reports whether a client publishes on an interleaved channel, and takes a frame of such a
// channel, whose bytes it may change.
gboolean publishing_has_channel (GstRTSPClient *client, guint8 channel);
void publishing_take_frame (GstRTSPClient *client, guint8 channel, guint8 *bytes, gsize len);
