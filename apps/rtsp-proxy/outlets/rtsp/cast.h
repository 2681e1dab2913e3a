// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Answers the requests of an RTSP connection that are about broadcasts (docs/broadcast.md): a
// DESCRIBE that supports schedules, and a GET_PARAMETER that asks for packets. Call from the
// client's thread only.

#include "outlets/rtsp/rtsp_connection.h"

typedef struct _CastReading CastReading;

typedef struct {
  RtspConnection *connection;
  CastReading *reading; // of the request that is put aside until its packets are read, or NULL
} Cast;

// `connection` must outlive the structure.
void cast_init (Cast *self, RtspConnection *connection);
void cast_clear (Cast *self);

// Reports whether a request asks for packets, which not every client may have.
gboolean cast_asks_for_packets (GstRTSPContext *ctx);

// Handles an admitted DESCRIBE or GET_PARAMETER. Returns ANSWERED if it has been answered, OK if it
// is not about broadcasts, else the status to answer. May put the request aside until its packets
// are read.
GstRTSPStatusCode cast_check (Cast *self, RequestTarget *request);
