// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Answers the requests of an RTSP connection that are about broadcasts (docs/broadcast.md): a
// DESCRIBE that supports schedules, and a GET_PARAMETER that asks for packets. Call from the
// client's thread only.

#include "outlets/rtsp/rtsp_connection.h"

typedef struct _BroadcastReading BroadcastReading;

typedef struct {
  RtspConnection *connection;
  BroadcastReading *reading; // of the request that is put aside until its packets are read, or NULL
} BroadcastRequests;

// `connection` must outlive the structure.
void broadcast_requests_init (BroadcastRequests *self, RtspConnection *connection);
void broadcast_requests_clear (BroadcastRequests *self);

// Reports whether a request asks for packets, which not every client may have.
gboolean broadcast_requests_asks_for_packets (GstRTSPContext *ctx);

// Handles an admitted DESCRIBE or GET_PARAMETER. Returns ANSWERED if it has been answered, OK if it
// is not about broadcasts, else the status to answer. May put the request aside until its packets
// are read.
GstRTSPStatusCode broadcast_requests_check (BroadcastRequests *self, RequestTarget *request);
