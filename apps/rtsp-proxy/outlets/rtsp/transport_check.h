// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the header Transport of a SETUP (RFC 2326, section 12.39) strictly, because gst-rtsp-server
// accepts any number in it, and prints a warning for each unknown field.

#include <glib.h>

#define TRANSPORTS_MAX 16 // transports of a header that are read

typedef enum {
  TRANSPORT_GOOD,
  TRANSPORT_MALFORMED,   // answered with 400; all others with 461
  TRANSPORT_UNSUPPORTED, // multicast, recording, or an unknown protocol
  TRANSPORT_DESTINATION, // media for another address than the client's
  TRANSPORT_PORT,        // a UDP port below 1024, or two ports that are no pair
  TRANSPORT_TAKEN,       // a UDP port of another reader; see transport_ports.h
  N_TRANSPORT_VERDICTS,
} TransportVerdict;

// The names of the verdicts in metrics.
extern const gchar *const transport_verdict_names[N_TRANSPORT_VERDICTS];

// Checks each transport that the header lists, for a client with the numeric address `peer`. Sets
// `good` to a header with the good ones in their order (transfer full): each with its profile,
// "unicast", and a pair of UDP ports or a pair of channels, or no channels if the client leaves
// them to the server. Returns TRANSPORT_GOOD if there is at least one. Otherwise returns the
// verdict on the last one, and sets `good` to NULL.
TransportVerdict transport_check (const gchar *header, const gchar *peer, gchar **good);
