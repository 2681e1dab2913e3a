// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Where peers may send to: ICE candidates of type "host" (RFC 8445, RFC 6544).

#include <gio/gio.h>

// Component 1. TCP ones are passive.
typedef struct {
  gchar *address; // an IP address
  gboolean is_tcp;
} WebrtcCandidate;

// Lists the addresses of a port, each once: `additional` first (IP addresses, NULL-terminated; may
// be NULL), then `address`; or, if that stands for all addresses, those that the interfaces of this
// host have now. It leaves out what nobody elsewhere can send to: link-local addresses; those of
// networks that container engines make, unless there is nothing else; and loopback, unless there is
// not even that. UDP comes before TCP. Returns WebrtcCandidate. Call from any thread. (transfer
// full)
GPtrArray *webrtc_candidates_new (
    const gchar *address, const gchar *const *additional, gboolean has_tcp);

// Returns all as text for a log, such as "192.0.2.1 (UDP), 192.0.2.1 (TCP)". (transfer full)
gchar *webrtc_candidates_dup_text (GPtrArray *candidates);
