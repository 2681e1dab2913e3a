// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The TCP side of the port of WebRTC: peers connect (RFC 6544, passive), and each datagram comes
// behind two bytes of its length (RFC 4571). A connection belongs to a session from its first
// authentic STUN request on. Until then it counts towards limits, and has 10 s.

#include <gio/gio.h>

#include "base/loop.h"
#include "outlets/webrtc/webrtc_peers.h"

#define WEBRTC_TCP_SCRATCH (32 * 1024) // bytes that the loop needs

typedef struct _WebrtcTcp WebrtcTcp;

// Listens, and accepts in the main thread, which must call it; "::" is all addresses of IPv6 and
// IPv4. Returns NULL and sets `error` if the system refuses.
WebrtcTcp *webrtc_tcp_new (Loop *loop, WebrtcPeers *peers, WebrtcRefusals *refusals,
    const gchar *address, guint16 number, GError **error);

// Accepts no more, before the loop is freed; and frees it after the loop. Call from the main
// thread.
void webrtc_tcp_stop (WebrtcTcp *self);
void webrtc_tcp_free (WebrtcTcp *self);

// Call the functions below from any thread. `connection` is the number of one; none of them does
// anything if it has closed.

// Sends a datagram behind its length; never waits.
void webrtc_tcp_send (WebrtcTcp *self, guint32 connection, const guint8 *datagram, gsize size);

// Returns the token of its WeirConnection, or NULL. (transfer full)
gchar *webrtc_tcp_get_token (WebrtcTcp *self, guint32 connection);

// Closes it soon, so that the peer has time to read the end of its session.
void webrtc_tcp_end (WebrtcTcp *self, guint32 connection);
