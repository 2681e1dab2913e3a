// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Makes gst-rtsp-server read its connections through a RequestGuard. It has no hook for that: it
// makes the stream of a socket itself, a GTcpConnection, and asks that for its input stream. GIO
// cannot replace the type that it makes for TCP sockets, so this replaces the function of the class
// GTcpConnection that returns the input stream. The new one is the same, except for streams that
// are made between guard_connection_begin() and guard_connection_end(), and in that thread.
//
// Call from the main thread only.

#include "outlets/rtsp/guard.h"

// The next connections that this thread makes have a guard.
void guard_connection_begin (void);

// Ends that.
void guard_connection_end (void);

// Returns the guard of the connection that was made last since guard_connection_begin(), or NULL.
// It is valid as long as the connection.
RequestGuard *guard_connection_get (void);
