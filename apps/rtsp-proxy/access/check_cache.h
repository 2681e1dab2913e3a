// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Remembers for a short time what an external check has admitted. The caller serialises the calls,
// and passes the monotonic time in us.

#include <glib.h>

typedef struct _CheckCache CheckCache;

// Holds up to `size_max` keys, each for `lifetime_us`; the oldest one makes room.
CheckCache *check_cache_new (guint size_max, gint64 lifetime_us);
void check_cache_free (CheckCache *self);

gboolean check_cache_has (CheckCache *self, const gchar *key, gint64 now_us);
void check_cache_add (CheckCache *self, const gchar *key, gint64 now_us);
void check_cache_clear (CheckCache *self);
