// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The transport of one WebRTC peer: ICE-lite, DTLS and its keys for SRTP. Media do not pass here:
// whoever owns a session gives keys and route to sinks.
//
// A session begins when it is made, and ends by itself, with the event `closed`: if the peer is not
// connected within 10 s, if DTLS fails or the peer closes it, or if nothing authentic came for 30 s
// (RFC 7675). Call all functions from any thread.

#include "outlets/webrtc/webrtc_port.h"
#include "tls/tls_fingerprint.h"

// The peer, as its description says (RFC 8839, RFC 8122).
typedef struct {
  const gchar *ufrag;                        // weir_ice_is_ufrag() holds
  guint8 fingerprint[TLS_FINGERPRINT_BYTES]; // SHA-256 of its certificate
  gboolean is_passive;                       // its "setup" is "passive", so the session begins DTLS
} WebrtcRemote;

// Keys of SRTP (RFC 5764, 4.2): master key and salt.
typedef struct {
  const gchar *profile; // "AEAD_AES_128_GCM" or "AES_CM_128_HMAC_SHA1_80", as WeirSrtp names them
  GBytes *send, *receive;
} WebrtcKeys;

// Where packets for the peer go.
typedef struct {
  const gchar *host; // an IP address, or the token of a WeirConnection (RFC 4571)
  guint16 port;      // of UDP; 0 with a token
} WebrtcRoute;

// The port's thread calls, one after the other and without a lock. Events must return soon, and may
// call all functions here. What they are given is theirs during the call. NULL: the owner does not
// care.
typedef struct {
  void (*connected) (gpointer data, const WebrtcKeys *keys); // once, after a first `route`
  void (*route) (gpointer data, const WebrtcRoute *route);   // at first, and when it changes
  // Of SRTCP and of SRTP, as it came, and when: at most now.
  void (*rtcp) (gpointer data, guint8 *packet, gsize size, gint64 arrival);
  void (*rtp) (gpointer data, guint8 *packet, gsize size, gint64 arrival);
  void (*closed) (gpointer data, const gchar *reason); // once, and no event after it
} WebrtcSessionEvents;

typedef struct _WebrtcSession WebrtcSession;

// Makes a session, which the peer can reach from now on. `port` and `events` must outlive it.
WebrtcSession *webrtc_session_new (
    WebrtcPort *port, const WebrtcRemote *remote, const WebrtcSessionEvents *events, gpointer data);

// Closes the session, tells the peer, and frees it. No event runs or comes when this returns;
// called from within an event, none comes after that one. The caller must not hold a lock that its
// events take.
void webrtc_session_close (WebrtcSession *self);

// What the answer says of the session: credentials for ICE, whose texts the caller owns, and the
// fingerprint of the certificate, such as "5A:..." (transfer none).
void webrtc_session_get_ice (WebrtcSession *self, gchar **ufrag, gchar **password);
const gchar *webrtc_session_get_fingerprint (WebrtcSession *self);

// Restarts ICE (RFC 8445, 9) for a peer that has a new user name: new credentials for the answer.
// Media and keys go on.
void webrtc_session_restart (WebrtcSession *self, const gchar *peer_ufrag);

// Notes authentic media or SRTCP of the peer, which count as its consent, and show that it has the
// keys.
void webrtc_session_note_alive (WebrtcSession *self);

// Sends the peer a protected packet, such as SRTCP; never waits. It is lost if there is no route or
// no room.
void webrtc_session_send (WebrtcSession *self, const guint8 *packet, gsize size);
