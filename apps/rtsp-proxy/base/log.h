// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The log: one line for each event that an operator cares about, on stderr and in GStreamer's debug
// system (category "rtsp-proxy", level INFO). Callers keep credentials out of it with log_redact().

#include "base/log_limit.h"

void log_init (void);

// Logs a line. Prints each control character as '?', as a text may come from a peer. Call from any
// thread.
void log_event (const gchar *format, ...) G_GNUC_PRINTF (1, 2);

// Logs a line if `limit` allows it, with the number of lines left out since the last one. Call from
// any thread.
void log_event_limited (LogLimit *limit, const gchar *format, ...) G_GNUC_PRINTF (2, 3);

// Returns the URI for printing: without its user and password, and with "***" for each token, key
// or password in its query. The caller owns the result.
gchar *log_redact (const gchar *uri);
