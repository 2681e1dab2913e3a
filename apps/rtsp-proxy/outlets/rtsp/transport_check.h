// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the header Transport of a SETUP (RFC 2326, section 12.39) strictly, because gst-rtsp-server
// accepts any number in it, and prints a warning for each unknown field.

#include <glib.h>

#define TRANSPORTS_MAX 16 // transports of a header that are read

typedef enum {
  TRANSPORT_GOOD,
  TRANSPORT_MALFORMED,       // answered with 400; those without a note with 461
  TRANSPORT_UNSUPPORTED,     // multicast, recording, or an unknown protocol
  TRANSPORT_DESTINATION,     // media for another address than the client's
  TRANSPORT_PORT,            // a UDP port below 1024, or two ports that are no pair
  TRANSPORT_TAKEN,           // a UDP port of another reader; see transport_ports.h
  TRANSPORT_CHANNELS,        // a channel of another track of the reader
  TRANSPORT_CLEAR,           // over TLS: UDP without SRTP
  TRANSPORT_NO_TLS,          // SRTP without TLS: anybody could read the keys
  TRANSPORT_KEY_MALFORMED,   // a MIKEY message that is none; answered with 400
  TRANSPORT_KEY_UNSUPPORTED, // a key that is not for AES-CM and HMAC-SHA1; answered with 463
  N_TRANSPORT_VERDICTS,
} TransportVerdict;

// The names of the verdicts in metrics.
extern const gchar *const transport_verdict_names[N_TRANSPORT_VERDICTS];

// A client that sends the header.
typedef struct {
  const gchar *address; // numeric
  gboolean tls;
  gboolean records; // it sends media, and does not receive them
} TransportPeer;

// Checks each transport that the header lists. Sets `good` to a header with the good ones in their
// order (transfer full): each with its profile, "unicast", and a pair of UDP ports or a pair of
// channels, or no channels if the client leaves them to the server. Either all or none of them use
// SRTP, as the first one does; `srtp` says so, and the profile is then that without SRTP. Returns
// TRANSPORT_GOOD if there is at least one. Otherwise returns the verdict on the last one, and sets
// `good` to NULL.
TransportVerdict transport_check (
    const gchar *header, const TransportPeer *peer, gchar **good, gboolean *srtp);
