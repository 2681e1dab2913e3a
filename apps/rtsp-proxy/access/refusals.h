// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Counts and logs what the limits refuse, and SRT callers without the passphrase. Call from any
// thread.

#include <glib.h>

typedef enum {
  // connections
  REFUSED_CONNECTIONS, // too many
  REFUSED_ADDRESS,     // too many from one address
  REFUSED_MEMORY,      // also requests, and readers that are closed
  REFUSED_FILES,
  // requests, after which the connection is closed
  REFUSED_IDLE, // no request
  REFUSED_TIMEOUT,
  REFUSED_WRITE, // the responses are not read
  REFUSED_LINE,
  REFUSED_HEADERS,
  REFUSED_BODY,
  REFUSED_MALFORMED,
  REFUSED_VERSION,
  REFUSED_FRAMES,
  // other
  REFUSED_READERS,
  REFUSED_PASSPHRASE, // of SRT: wrong, missing or unexpected
  REFUSED_N_REASONS
} RefusedReason;

extern const gchar *const refused_names[REFUSED_N_REASONS]; // for metrics

// Counts a refusal and logs "client PEER refused: TEXT". Each address has a burst of 10 lines, and
// then one line in 10 s. `peer` is ADDR or ADDR:PORT.
void refusals_note (RefusedReason reason, const gchar *peer, const gchar *format, ...)
    G_GNUC_PRINTF (3, 4);

// Counts a refusal only.
void refusals_count (RefusedReason reason);

// Returns the number of refusals so far.
guint64 refusals_get (RefusedReason reason);
