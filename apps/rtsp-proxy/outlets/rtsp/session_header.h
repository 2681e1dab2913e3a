// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Corrects the header Session of requests before gst-rtsp-server reads them. Each connection has
// sessions of its own, so that a wrong header names no session of anybody else.

#include <gst/rtsp-server/rtsp-server.h>

// Takes the head of a request, whose lines end with CR LF. A SETUP without a session of this
// connection gets the one that has the SETUP's media, as some clients send the header with the PLAY
// only. A SETUP or ANNOUNCE with a session of the client's own invention loses it. Returns the head
// with these changes (transfer full), or NULL if nothing changes. Call in the client's thread.
GByteArray *session_header_correct (GstRTSPClient *client, const guint8 *head, gsize len);
