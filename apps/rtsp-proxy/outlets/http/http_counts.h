// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Counts what the HTTP outlet does, for the metrics. Call from any thread.

#include <glib.h>

typedef enum {
  HTTP_STARVED_STORE,  // the bytes came too late from the disk, or the proxy was busy
  HTTP_STARVED_READER, // the reader, or its line, was slower than the title
  HTTP_N_STARVED
} HttpStarved;

extern const gchar *const http_starved_names[HTTP_N_STARVED];

void http_counts_add_starved (HttpStarved cause, guint64 n);
guint64 http_counts_get_starved (HttpStarved cause);

// Count connections, which are open now.
void http_counts_add_connections (gint n);
guint http_counts_get_connections (void);

// Count answers by the first digit of their status: 2 to 5.
void http_counts_add_answer (guint status);
guint64 http_counts_get_answers (guint first_digit);
