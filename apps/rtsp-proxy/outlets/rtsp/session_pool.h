// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/rtsp-server/rtsp-server.h>

// Returns a pool whose session ids are 128 random bits of the kernel, as 32 hexadecimal digits.
// Those of gst-rtsp-server come from a generator whose next numbers can be computed from earlier
// ones.
GstRTSPSessionPool *session_pool_new (void);
