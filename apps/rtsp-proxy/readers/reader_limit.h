// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Counts the readers of each mount, which the key `max-readers` limits. A reader is counted before
// it plays, so that readers that come at the same time are never too many. Call from any thread.

#include <glib.h>

// Counts a reader of the mount with this path in. Returns FALSE if it has `max` already; 0 is no
// limit. reader_limit_leave() counts it out.
gboolean reader_limit_take (const gchar *mount, guint max);
void reader_limit_leave (const gchar *mount);

// Reports whether the next reader would be refused.
gboolean reader_limit_is_full (const gchar *mount, guint max);
