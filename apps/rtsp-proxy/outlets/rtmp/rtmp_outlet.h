// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The RTMP listener: one TCP port for all mounts, and one for connections over TLS, on which
// clients publish. One thread serves all of them.

#include "access/access.h"
#include "config/rtmp_config.h"
#include "mounts/mounts.h"
#include "tls/tls_front.h"

typedef struct _RtmpOutlet RtmpOutlet;

// Call from the main thread. `mounts`, `access` and `front` must outlive the result. `front` may be
// NULL if the configuration has no `tls-listen`.
RtmpOutlet *rtmp_outlet_new (
    const RtmpConfig *config, Mounts *mounts, Access *access, TlsFront *front, GError **error);

// Returns the URLs of the listeners, such as "rtmp://127.0.0.1:1935". (transfer full)
GStrv rtmp_outlet_dup_urls (RtmpOutlet *self);

// Closes all connections. Call from the main thread.
void rtmp_outlet_free (RtmpOutlet *self);
