// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/rtsp-server/rtsp-server.h>

// Returns the address and port of a client's peer, such as "127.0.0.1:5004", or "?" if it has no
// connection. The caller owns the result.
gchar *peer_dup_name (GstRTSPClient *client);

// Returns the address alone, such as "127.0.0.1", or NULL if the client has no connection. The
// caller owns the result.
gchar *peer_dup_address (GstRTSPClient *client);
