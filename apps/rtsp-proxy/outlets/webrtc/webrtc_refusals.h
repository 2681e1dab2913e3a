// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Counts what the port of WebRTC refuses, and writes one line to the log for each address that
// sends much of it. Call all functions from any thread.

#include <glib.h>

#include "net/address.h"

// Why something was refused.
typedef enum {
  WEBRTC_REFUSED_MALFORMED, // a datagram that is neither STUN, DTLS, RTP nor RTCP
  WEBRTC_REFUSED_STRANGER,  // DTLS or media from an address that no session has checked
  WEBRTC_REFUSED_FOREIGN,   // STUN for no session that there is
  WEBRTC_REFUSED_FORGED,    // STUN with a wrong password
  WEBRTC_REFUSED_EXCESS,    // more of DTLS than a handshake needs
  WEBRTC_REFUSED_EARLY,     // media before their keys, of a reader, or more than are kept
  WEBRTC_REFUSED_BUSY,      // a TCP connection beyond the limits
  WEBRTC_REFUSALS
} WebrtcRefusal;

// Returns a name for the metrics, such as "malformed".
const gchar *webrtc_refusal_get_name (WebrtcRefusal reason);

typedef struct _WebrtcRefusals WebrtcRefusals;

WebrtcRefusals *webrtc_refusals_new (void);
void webrtc_refusals_free (WebrtcRefusals *self);

void webrtc_refusals_count (WebrtcRefusals *self, WebrtcRefusal reason, const WeirAddress *from);

// Returns what tells clients apart as address_dup_key() does: the IPv4 address, or the network of
// 64 bits of an IPv6 address.
guint64 webrtc_refusals_get_key (const WeirAddress *from);

// Returns how often something was refused for a reason since the program began, at all ports.
guint64 webrtc_refusals_get (WebrtcRefusal reason);
