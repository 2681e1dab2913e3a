// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Stands between a client's stream and gst-rtsp-server, and passes complete requests only.
//
// gst-rtsp-server bounds neither the lines of a request nor the time that it takes, and cuts long
// lines silently. It reads its connections through the guard, which is a GInputStream: the guard
// keeps the bytes of a request until the last one is there and the limits are met. So all that an
// unfinished request occupies is in the guard's buffer. A request that breaks a limit is answered
// here, and the stream then ends for gst-rtsp-server, which closes the connection. The same happens
// at a deadline. Interleaved frames of unknown channels end here; those of a client that publishes
// go to publishing_take_frame().
//
// All of this runs in the thread of the client, in its GSource; there is no other thread or lock.

#include <gst/rtsp-server/rtsp-server.h>

#include "config/limits.h"

typedef struct _RequestGuard RequestGuard;

// Makes a guard that reads from `base`, a GPollableInputStream with the text of the connection: of
// a socket, or of the TLS connection above it. It passes all bytes until guard_begin().
RequestGuard *guard_new (GInputStream *base);

// Guards from now on. `client` reads from the guard, so it lives as long as reads come. `peer` is
// its address and port. Call before the client is attached to its thread.
void guard_begin (RequestGuard *self, GstRTSPClient *client, const gchar *peer);
