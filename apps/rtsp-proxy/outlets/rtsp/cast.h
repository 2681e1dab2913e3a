// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Answers the requests of an RTSP connection that are about broadcasts (docs/broadcast.md): a
// DESCRIBE that supports schedules, and a GET_PARAMETER that asks for packets. Opens the media for
// a SETUP that follows such a DESCRIBE. Call from the client's thread only.

#include "outlets/rtsp/asker.h"

typedef struct _CastReading CastReading;

typedef struct {
  Asker *asker;
  CastReading *reading; // of the request that is put aside until its packets are read, or NULL
  gboolean described;   // a description was given without opening media
} Cast;

// `asker` must outlive the structure.
void cast_init (Cast *self, Asker *asker);
void cast_clear (Cast *self);

// Reports whether a request asks for packets. The door is asked about such a request.
gboolean cast_asks_for_packets (GstRTSPContext *ctx);

// Handles an admitted request for `url`. Returns PLAY_GUARD_ANSWERED if it has been answered, OK if
// it is not about broadcasts, else the status to answer. May put the request aside until its
// packets are read.
GstRTSPStatusCode cast_check (Cast *self, GstRTSPContext *ctx, const GstRTSPUrl *url);
