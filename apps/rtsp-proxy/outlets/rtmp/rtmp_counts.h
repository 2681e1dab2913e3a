// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the metrics say about RTMP. Call from any thread.

#include <glib.h>

void rtmp_counts_add_connections (gint n);
guint rtmp_counts_get_connections (void);

// Audio and video messages that cannot be passed on: before the record of their codec, empty,
// malformed, or of a track that is left out.
void rtmp_counts_add_unusable (void);
guint64 rtmp_counts_get_unusable (void);
