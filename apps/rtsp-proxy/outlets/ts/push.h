// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The stream of a mount sent to a receiver: over UDP or SRT as a transport stream, or by RTMP as
// FLV. A push uses its presentation all the time. When a server fails, it tries again, after a time
// that grows (backoff.h). Call from the main thread only.

#include "config/mount_push.h"
#include "mounts/mounts.h"

typedef struct _Push Push;

// Takes over the contents of `uri`.
Push *push_new (Mounts *mounts, const gchar *mount, const PushUri *uri);
void push_free (gpointer self);

// Starts what can start now. Call several times a second.
void push_tick (Push *self);
