// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The thread that waits for the sockets of all titles of the process. It starts with the first
// watch, and never ends.

#include <glib.h>

typedef struct _TitleWatch TitleWatch;

#define TITLE_WATCH_MAX 16               // numbers of descriptors, of a watch
#define TITLE_WATCH_TICK TITLE_WATCH_MAX // a number for: a second has passed

// The descriptor `number` is ready: `events` of epoll. Or it is time for a tick. Called in the
// thread, and must not wait for anything.
typedef void (*TitleWatchFunc) (gpointer owner, guint number, guint32 events);

// `owner` is not owned.
TitleWatch *title_watch_new (TitleWatchFunc func, gpointer owner);

// Waits for these events of epoll; 0: for none. Returns FALSE with errno on error. Call from any
// thread.
gboolean title_watch_set (TitleWatch *self, guint number, gint fd, guint32 events);

// Ends the watch; the function does not run when this returns. Wait for no events before, or close
// the descriptors at once. Do not call this in the function, or with a lock that it takes.
void title_watch_free (TitleWatch *self);
