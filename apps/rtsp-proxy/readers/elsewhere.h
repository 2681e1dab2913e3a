// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The member of a cluster to which new readers are sent: all of them while this one drains, and
// else those for whom it has no room. Call from any thread.

#include <glib.h>

typedef enum {
  ELSEWHERE_RTSP,
  ELSEWHERE_RTSPS,
  ELSEWHERE_HTTP,
  ELSEWHERE_HTTPS,
  ELSEWHERE_N
} ElsewhereProtocol;

// The parameter of a query that marks a reader who was sent because there was no room. It is not
// sent for that once more.
#define ELSEWHERE_MARK "moved"

// `address`: an IP address or a host name; a port of 0: it does not serve this. NULL: readers stay
// here. `all`: this member drains.
void elsewhere_set (const gchar *address, const guint16 ports[ELSEWHERE_N], gboolean all);

// Returns the URL there of `rest`, a path with its query, for a new reader. `is_full`: there is no
// room for the reader here, and it has no mark yet; it gets one. (transfer full) Returns NULL if
// the reader stays here.
gchar *elsewhere_dup_url (ElsewhereProtocol protocol, const gchar *rest, gboolean is_full);

// Returns how many readers were sent because this member drains, or else because it was full.
guint64 elsewhere_count (gboolean is_full);
