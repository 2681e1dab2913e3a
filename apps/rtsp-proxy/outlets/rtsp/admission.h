// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Asks the door about the requests of an RTSP connection. Call from the client's thread only.

#include "outlets/rtsp/asker.h"

// Asks about a request for `url` before gst-rtsp-server handles it. Returns OK if the client may,
// else the status to answer; for 401, `*challenges` is set to the values of WWW-Authenticate, which
// are valid until the next request. May put the request aside until the door has decided.
//
// A DESCRIBE or a SETUP is asked about, a GET_PARAMETER that asks for packets of a broadcast, and a
// PLAY that seeks into the past of a live stream. All other requests need a session, and only an
// admitted SETUP of the same connection makes one.
GstRTSPStatusCode admission_check (
    Asker *asker, GstRTSPContext *ctx, const GstRTSPUrl *url, const gchar *const **challenges);

// Checks the transport of a SETUP, and the content if it is for a session. Returns OK or the status
// to answer. Call like admission_check(), after it.
GstRTSPStatusCode admission_check_setup (Asker *asker, GstRTSPContext *ctx);

// Checks the content of each DESCRIBE, and of a SETUP without a session. `asker` must live as long
// as the client.
void admission_watch (GstRTSPClient *client, Asker *asker);
