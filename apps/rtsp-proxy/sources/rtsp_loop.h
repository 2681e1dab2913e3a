// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The thread that runs all RTSP clients: their sockets, their timers, and their main context, which
// is the thread's default. After each round of reading it sleeps for a while, 2 ms by default, so
// that it wakes at most 500 times a second however many packets arrive. The thread never ends.

#include "base/loop.h"

// Bytes of the buffer that all clients share for reading.
#define RTSP_LOOP_SCRATCH (256 * 1024)
// Interval of the ticks of clients, in ms.
#define RTSP_LOOP_TICK_MS 100

// Returns the loop, whose thread starts with the first call, or NULL and an error if the system has
// no descriptor or thread left. Call from any thread.
Loop *rtsp_loop_get (GError **error);

// Sets how many us the thread sleeps between rounds; 0: not at all. Call before it starts.
void rtsp_loop_set_round (guint us);
