// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The one port of WebRTC: UDP, and TCP on the same number for networks that drop UDP (RFC 6544,
// passive; RFC 4571). All peers come to it. A thread receives, tells STUN, DTLS, RTP and RTCP apart
// (RFC 7983, RFC 5761), and finds whose session a datagram is: by the address that it came from, or
// by the user name of an authentic STUN request. What is nobody's is counted, and costs no more.

#include <gio/gio.h>

#include "base/loop.h"
#include "outlets/webrtc/webrtc_candidates.h"
#include "outlets/webrtc/webrtc_handshake.h"
#include "outlets/webrtc/webrtc_peers.h"

typedef struct {
  const gchar *address; // an IP address; "::" is all addresses of IPv6 and IPv4
  guint16 number;       // 0: any free one
  gboolean has_tcp;
  // IP addresses at which clients reach this host by way of others, such as a NAT that passes the
  // port on; they are offered first. NULL-terminated, or NULL.
  const gchar *const *additional_hosts;
} WebrtcPortSettings;

typedef struct _WebrtcPort WebrtcPort;

// Opens the port and starts its threads. Returns NULL and sets `error` if the system refuses. Call
// from the main thread, which accepts TCP connections.
WebrtcPort *webrtc_port_new (const WebrtcPortSettings *settings, GError **error);

// Stops them and closes all. Close all sessions before. Call from the main thread.
void webrtc_port_free (WebrtcPort *self);

// Call the functions below from any thread.

guint16 webrtc_port_get_number (WebrtcPort *self);

// Returns the UDP socket for peers of a family, from which media are sent, too; NULL if it has
// none. (transfer none)
GSocket *webrtc_port_get_socket (WebrtcPort *self, GSocketFamily family);

// Returns all candidates as the addresses of this host are now, those to prefer first:
// WebrtcCandidate. (transfer full)
GPtrArray *webrtc_port_get_candidates (WebrtcPort *self);

// ---- for sessions ----

WebrtcPeers *webrtc_port_get_peers (WebrtcPort *self);
WebrtcHandshakes *webrtc_port_get_handshakes (WebrtcPort *self);
Loop *webrtc_port_get_loop (WebrtcPort *self);

// Sends a datagram; never waits. It is lost if there is no room, as any datagram may be.
void webrtc_port_send (
    WebrtcPort *self, const WeirIceTuple *to, const guint8 *datagram, gsize size);

// Returns the token of the WeirConnection of a TCP connection, for sinks; NULL if it has closed.
// (transfer full)
gchar *webrtc_port_get_token (WebrtcPort *self, guint32 connection);

// Closes a TCP connection soon, if the peer has not closed it by then.
void webrtc_port_disconnect (WebrtcPort *self, guint32 connection);
