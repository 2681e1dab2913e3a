// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The proxy's end of a stored title in a worker process: finds the worker, gives it the open file,
// and carries what both say. Kills a worker that is silent, or does not close the title.

#include "isolate/title_wire.h"
#include "relay/relay.h"

typedef struct _TitleLink TitleLink;

// Called in a thread that reads for the link, except `failed`, which the main thread may also call.
// `track` and `complete` may wait for other threads, the others must not: one thread calls them for
// all titles once `complete` was called. None is called after title_link_close().
typedef struct {
  TitleControlHandler said;
  // The worker says no more: it has ended, or made a mistake. `failed` tells why, perhaps later.
  void (*gone) (gpointer owner);
} TitleLinkHandler;

// Opens a link, which asks for a worker for the open file `fd`. `owner` is a GObject, and not
// owned. Fills `tracks` with the sockets of the tracks, which the caller owns. Returns NULL and
// sets `error` if the system has no descriptors left. Call from any thread.
TitleLink *title_link_open (int fd, const TitleLinkHandler *handler, gpointer owner,
    gint tracks[RELAY_MAX_TRACKS], GError **error);

// Starts reading what the worker says. Call once.
void title_link_start (TitleLink *self);

// Sends a command. Never waits. Does nothing if the worker is gone.
void title_link_send (TitleLink *self, const TitleCommand *command);

// Kills the worker, which has made a mistake. `why` is static, and completes "worker 1 ".
void title_link_blame (TitleLink *self, const gchar *why);

// Ends reading, and tells the worker to close the title. Not in a thread that reads.
void title_link_close (TitleLink *self);

// Closes the link, if it is not closed yet, and frees it.
void title_link_free (TitleLink *self);

// Keeps a worker ready, so that opening a title does not wait for its start. Call from the main
// thread.
void title_link_prepare (void);
