// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The SRT listener: one UDP port for all mounts, on which callers publish and read MPEG transport
// streams (draft-sharabayko-srt; the stream ids are those of SRT's access control guidelines). One
// thread decides about all of them; a worker process has libsrt, and carries their media.

#include "access/access.h"
#include "config/srt_config.h"
#include "mounts/mounts.h"

typedef struct _SrtOutlet SrtOutlet;

// Call from the main thread. `mounts` and `access` must outlive the result.
SrtOutlet *srt_outlet_new (const SrtConfig *config, Mounts *mounts, Access *access, GError **error);

// Returns the URL of the listener, such as "srt://127.0.0.1:8890". (transfer full)
gchar *srt_outlet_dup_url (SrtOutlet *self);

// Closes all connections. Call from the main thread.
void srt_outlet_free (SrtOutlet *self);
