// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the metrics say about SRT. Call from any thread.

#include <glib.h>

void srt_counts_add_connections (gint n);
guint srt_counts_get_connections (void);

// Packets that SRT has dropped because they came too late: from publishers (`in`), or to readers.
void srt_counts_add_late (gboolean in, guint64 n);
guint64 srt_counts_get_late (gboolean in);

// Datagrams to the port that the kernel has dropped, since the start.
void srt_counts_set_dropped (guint32 n);
guint32 srt_counts_get_dropped (void);
