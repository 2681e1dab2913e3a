// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/rtsp-server/rtsp-server.h>

// Returns a pool whose session ids are 128 random bits of the kernel, as 32 hexadecimal digits.
// Those of gst-rtsp-server come from a generator whose next numbers can be computed from earlier
// ones.
GstRTSPSessionPool *session_pool_new (void);

// Returns the time from `now`, in µs, monotonic, until the first session of a pool times out, in
// ms: 0 if one has, G_MAXINT without sessions.
gint session_pool_get_left (GstRTSPSessionPool *self, gint64 now);
