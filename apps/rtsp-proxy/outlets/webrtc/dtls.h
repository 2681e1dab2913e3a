// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// DTLS 1.2 for the keys of SRTP (RFC 5763, RFC 5764), by OpenSSL. Nothing here has a socket or a
// clock but OpenSSL's timer.

#include <glib.h>

#include "tls/tls_fingerprint.h"

#define DTLS_KEY_MAX 30 // bytes of a master key and its salt
#define DTLS_MTU 1200   // bytes of the longest datagram sent
#define DTLS_NEVER G_MAXINT64

// A certificate with its key, which are made when it is made, and what all associations share.
typedef struct _DtlsContext DtlsContext;

DtlsContext *dtls_context_new (GError **error);
void dtls_context_free (DtlsContext *self);

// Returns the SHA-256 of the certificate, such as "5A:...". (transfer none)
const gchar *dtls_context_get_fingerprint (DtlsContext *self);

typedef enum {
  DTLS_OPENING,
  DTLS_CONNECTED, // the peer has the certificate that was expected, and keys are there
  DTLS_CLOSED,    // the peer closed it
  DTLS_FAILED     // dtls_get_problem() says why
} DtlsState;

// Sends a datagram of at most DTLS_MTU bytes.
typedef void (*DtlsSend) (gpointer data, const guint8 *datagram, gsize size);

// One association. For one thread at a time.
typedef struct _Dtls Dtls;

// `fingerprint`: the SHA-256 that the peer's certificate must have. The context must outlive it.
// Returns NULL if there is no memory.
Dtls *dtls_new (DtlsContext *context, gboolean is_client,
    const guint8 fingerprint[TLS_FINGERPRINT_BYTES], DtlsSend send, gpointer data);
void dtls_free (Dtls *self);

// Begin, which a client must call; take a datagram of the peer; and send again what the peer has
// not answered, if it is time. Return the state after it.
DtlsState dtls_begin (Dtls *self);
DtlsState dtls_take (Dtls *self, const guint8 *datagram, gsize size);
DtlsState dtls_tick (Dtls *self);

// Returns in how many ns dtls_tick() is due, or DTLS_NEVER.
gint64 dtls_get_due (Dtls *self);

// Returns what went wrong, for a log. (transfer none)
const gchar *dtls_get_problem (Dtls *self);

// The keys of an association that is connected: what it sends with, and what it receives with. Each
// is `*size` bytes, master key and salt. Returns the name of the profile (RFC 5764, RFC 7714).
const gchar *dtls_get_keys (
    Dtls *self, guint8 send[DTLS_KEY_MAX], guint8 receive[DTLS_KEY_MAX], gsize *size);

// Frees most of an association that is connected, 39 KiB, unless its cipher is not AES-GCM. Reports
// whether it did. The peer must have shown that it has the keys, as by media: so it has got the
// last flight, and does not ask for it again (RFC 6347, 4.2.4). From then on dtls_take() sees only
// that the peer ends the association, and dtls_get_keys() must not be called.
gboolean dtls_settle (Dtls *self);

// Tells the peer that the association ends.
void dtls_close (Dtls *self);
