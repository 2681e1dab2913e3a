// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// SRTP for clients over TLS (RFC 3711), with keys in MIKEY messages (RFC 3830, RFC 4567). A
// description names a new key for each track, of which one SETUP makes use; the answer to each
// SETUP has the key, too. Unless a function says otherwise, call it in the client's thread.

#include <gst/rtsp-server/rtsp-server.h>

#include "outlets/rtsp/mikey.h"

// Offers SRTP for the tracks of a description. The client must use TLS.
void srtp_describe (GstRTSPClient *client, GstRTSPMedia *media, GstSDPMessage *sdp);

// Notes that the current SETUP asks for SRTP. `transport` is its header as gst-rtsp-server gets it.
// Reads the client's key from the request. Returns MIKEY_NONE if there is none: the server's key is
// then used in both directions.
MikeyVerdict srtp_begin_setup (GstRTSPContext *ctx, const gchar *transport);

// Notes that the current SETUP asks for no SRTP.
void srtp_begin_plain (GstRTSPContext *ctx);

// Reports whether the current SETUP asks for SRTP.
gboolean srtp_is_asked (GstRTSPClient *client);

// Reports whether the current SETUP was deferred after srtp_begin_setup(), so that its header is
// what gst-rtsp-server gets.
gboolean srtp_has_begun (GstRTSPContext *ctx, const gchar *transport);

// Returns the number of RTCP packets of readers with SRTP that were dropped because they were not
// authentic. Call from any thread.
guint64 srtp_count_refused (void);

// Completes the answer to a SETUP that succeeded, and sets the keys of its transport.
void srtp_answer (GstRTSPContext *ctx, GstRTSPMessage *answer);
