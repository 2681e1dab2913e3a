// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the counters every 2 s and logs changes: readers that are thinned or recover; packets that
// were not delivered to readers; packets from an upstream that were lost or dropped. Logs packets
// at most once a minute for each mount. Call from the main thread only.

#include "proxy/proxy.h"

typedef struct _Notices Notices;

// `proxy` must outlive the result.
Notices *notices_new (Proxy *proxy);
void notices_free (Notices *self);
