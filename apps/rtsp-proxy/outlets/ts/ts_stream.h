// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A presentation with some of its layers as an MPEG transport stream: one multiplexer, and
// fanoutsinks in whose windows all readers have their positions. It runs as long as a reference
// exists. Call from any thread, unless the function says otherwise.

#include <gio/gio.h>

#include "mounts/presentation.h"

typedef struct _TsStream TsStream;

// Returns the stream with those of the layers `chosen` that the mount allows, and begins it if it
// does not run. Choices that select the same layers have one stream, from a few seconds after the
// first of them has begun. The caller must use the presentation meanwhile (presentation_use()).
// Returns NULL and sets `error` if its sinks cannot be made, or `max-presentations` choices run
// already. (transfer full)
TsStream *ts_stream_get (Presentation *presentation, WeirLayerSet chosen, GError **error);
TsStream *ts_stream_ref (TsStream *self);
void ts_stream_unref (TsStream *self); // the main thread frees it

// Returns why no track of the presentation can be in a transport stream, or NULL. Call when the
// tracks are known. (transfer full)
gchar *ts_stream_dup_problem (TsStream *self);

// Returns text about the tracks that are left out (relay/left_out.h), or NULL. (transfer full)
gchar *ts_stream_dup_left_out (TsStream *self);

// Closes the readers of the presentation's streams. UDP receivers stay. A CloseReadersFunc.
void ts_stream_close_readers (Presentation *presentation, const gchar *reason, gpointer unused);

// Adds a reader over a connected stream socket, which begins at a join point with the stream's
// tables. The stream is the only one that writes to the socket, and shuts it down when the reader
// leaves or takes nothing for 10 s. Returns the reader's name in the sink, or NULL if the socket
// has broken. (transfer full)
gchar *ts_stream_add_socket (TsStream *self, GSocket *socket);

// Adds a reader over a new pair of sockets, of which the caller gets the other end in `*end`
// (transfer full). Returns NULL and sets `error` on failure. (transfer full)
gchar *ts_stream_add_pair (TsStream *self, GSocket **end, GError **error);
void ts_stream_remove_socket (TsStream *self, const gchar *name);

// Where datagrams go.
typedef struct {
  const gchar *host; // a numeric address, maybe a multicast group
  guint port;
  guint ttl;          // for a group
  const gchar *iface; // for a group; NULL: the system's choice
} TsTarget;

// Adds a receiver over UDP: 7 packets a datagram, spread evenly over the time of each frame.
// Returns the sink that serves it, and only it, or NULL with `error`. (transfer full)
GstElement *ts_stream_add_target (TsStream *self, const TsTarget *target, GError **error);
void ts_stream_remove_target (TsStream *self, GstElement *sink);

// Returns the sink of the readers over sockets. (transfer none)
GstElement *ts_stream_get_sink (TsStream *self);
