// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Pulls from an RTSP server without a pipeline and without a thread of its own: all clients share
// the thread of rtsp_loop.h.

#include "sources/pull.h"

// First size of the receive buffer of a track, as the kernel accounts it, which is twice what is
// set. The engine enlarges it for fast streams.
#define RTSP_CLIENT_BUFFER (1024 * 1024)

extern const PullLight rtsp_client_light;

// Sets how many us pass between two rounds of receiving, 0 to 100,000; 0: each packet is received
// at once. Call before the first client starts. The default is 2000.
void rtsp_client_set_tick (guint us);
