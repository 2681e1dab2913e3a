// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What is remembered of sessions that ended because their players were silent, such as on a locked
// telephone: the mount's target of each, by the session's id. A player that comes back asks for its
// own playlists, not for the master playlist. Bounded in number and time. For one thread at a time.

#include <glib.h>

typedef struct _HlsMemory HlsMemory;

// Remembers `max` sessions at most, each for `keep_us`.
HlsMemory *hls_memory_new (guint max, gint64 keep_us);
void hls_memory_free (HlsMemory *self);

// Remembers a session from now on, in place of the oldest one if there are too many. A target of
// more than HLS_MEMORY_TARGET bytes is not remembered.
#define HLS_MEMORY_TARGET 4096
void hls_memory_put (HlsMemory *self, const gchar *id, const gchar *target, gint64 now_us);

void hls_memory_forget (HlsMemory *self, const gchar *id);

// Returns the target, or NULL. (transfer full)
gchar *hls_memory_dup (HlsMemory *self, const gchar *id, gint64 now_us);
