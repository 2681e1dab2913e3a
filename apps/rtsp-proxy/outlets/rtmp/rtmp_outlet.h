// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The RTMP listener: one TCP port for all mounts, on which clients publish. One thread serves all
// of them.

#include "access/access.h"
#include "config/rtmp_config.h"
#include "mounts/mounts.h"

typedef struct _RtmpOutlet RtmpOutlet;

// Call from the main thread. `mounts` and `access` must outlive the result.
RtmpOutlet *rtmp_outlet_new (
    const RtmpConfig *config, Mounts *mounts, Access *access, GError **error);

// Returns the URL of the listener, such as "rtmp://127.0.0.1:1935". (transfer full)
gchar *rtmp_outlet_dup_url (RtmpOutlet *self);

// Closes all connections. Call from the main thread.
void rtmp_outlet_free (RtmpOutlet *self);
