// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A thread that waits for the sockets of all connections, and wakes their tasks. Call from any
// thread, unless the function says otherwise.

#include <glib.h>

typedef struct _HttpPoll HttpPoll;

// Called in the thread when a socket can be read or written after it could not, and when bytes have
// come: at once, or 0.5 ms later if there have just been others. `can_read`: there are bytes, or
// the peer has gone (`gone`).
typedef void (*HttpPollFunc) (gpointer object, gboolean can_read, gboolean gone);

// Starts the thread. `drop` is called in it for each object of http_poll_leave(). Returns NULL and
// sets `error` if the system has no thread or file left.
HttpPoll *http_poll_new (HttpPollFunc ready, GDestroyNotify drop, GError **error);

// Stops the thread. Objects that have left are dropped first.
void http_poll_free (HttpPoll *self);

// Watches a socket. Returns FALSE if the system refuses.
gboolean http_poll_add (HttpPoll *self, int fd, gpointer object);

// Stops watching a socket. Call before it is closed, as others may keep it open.
void http_poll_remove (HttpPoll *self, int fd);

// Drops the object, whose socket is not watched any more, once the thread no longer uses it.
void http_poll_leave (HttpPoll *self, gpointer object);
