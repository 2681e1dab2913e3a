// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Runs the DTLS of sessions on threads of its own, because a handshake takes most of a millisecond,
// in which media of others would wait.

#include <glib.h>

#include "outlets/webrtc/dtls.h"

// The threads, and the certificate that all sessions share.
typedef struct _WebrtcHandshakes WebrtcHandshakes;

// Returns NULL and sets `error` if OpenSSL cannot be set up.
WebrtcHandshakes *webrtc_handshakes_new (GError **error);

// Finishes what was asked for, and takes nothing more; and then frees it. No session may be left.
void webrtc_handshakes_stop (WebrtcHandshakes *self);
void webrtc_handshakes_free (WebrtcHandshakes *self);

// Returns the SHA-256 of the certificate, such as "5A:...". (transfer none)
const gchar *webrtc_handshakes_get_fingerprint (WebrtcHandshakes *self);

// What a session does. Its threads call, one at a time for each session, without a lock.
typedef struct {
  void (*send) (gpointer session, const guint8 *datagram, gsize size);
  void (*changed) (gpointer session); // what the getters below return may be different
  gpointer (*ref) (gpointer session);
  void (*unref) (gpointer session);
} WebrtcHandshakeOps;

// The DTLS of one session. Call all functions from any thread.
typedef struct _WebrtcHandshake WebrtcHandshake;

// `session` is referenced while there is work for it.
WebrtcHandshake *webrtc_handshake_new (WebrtcHandshakes *all, gboolean is_client,
    const guint8 fingerprint[TLS_FINGERPRINT_BYTES], const WebrtcHandshakeOps *ops,
    gpointer session);

// Frees it. No work is left when nobody has a reference to the session any more.
void webrtc_handshake_free (WebrtcHandshake *self);

// Sends the first flight, if the session is the client.
void webrtc_handshake_begin (WebrtcHandshake *self);

// Takes a datagram of the peer. Returns FALSE if that sends more than a handshake needs. `now`: ns,
// monotonic.
gboolean webrtc_handshake_push (
    WebrtcHandshake *self, const guint8 *datagram, gsize size, gint64 now);

// Sends again what has not been answered. Call it when webrtc_handshake_get_due() has come.
void webrtc_handshake_tick (WebrtcHandshake *self);

// The peer has shown that it has the keys: frees what only a handshake needs (dtls_settle()).
void webrtc_handshake_settle (WebrtcHandshake *self);

// Tells the peer that the session ends.
void webrtc_handshake_close (WebrtcHandshake *self);

DtlsState webrtc_handshake_get_state (WebrtcHandshake *self);
gint64 webrtc_handshake_get_due (WebrtcHandshake *self);     // ns, monotonic, or DTLS_NEVER
gchar *webrtc_handshake_dup_problem (WebrtcHandshake *self); // of DTLS_FAILED. (transfer full)

// Returns the profile, and the keys of DTLS_CONNECTED. (transfer full)
const gchar *webrtc_handshake_get_keys (WebrtcHandshake *self, GBytes **send, GBytes **receive);
