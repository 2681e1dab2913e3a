// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Runs the connections of RTSP clients on a few threads.
//
// A main context goes through all its connections each time that one of them has something to read.
// So each context has only a few connections, and each thread many contexts, of which an epoll
// tells it those that have something to do.

#include <gst/rtsp-server/rtsp-server.h>

// Returns a thread (transfer full) for one more connection, or NULL if there is none, as when
// descriptors are short. Its context is shared by up to 16 connections, by more if descriptors are
// short; its loop is not run. Call gst_rtsp_thread_stop() when the connection has ended. May be
// called from any thread.
GstRTSPThread *client_loops_get_thread (void);
