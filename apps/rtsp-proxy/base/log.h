// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One line for each event that an operator cares about: on stderr, and in GStreamer's debug system
// (category "rtsp-proxy", level INFO). Never given credentials: see log_redact().

#include "base/log_limit.h"

void log_init (void);

// Any thread. Control characters in what a peer sent are printed as '?'.
void log_event (const gchar *format, ...) G_GNUC_PRINTF (1, 2);

// The same of what can happen again and again. Any thread.
void log_event_limited (LogLimit *limit, const gchar *format, ...) G_GNUC_PRINTF (2, 3);

// A URI without its user and password, fit to be printed.
gchar *log_redact (const gchar *uri);
