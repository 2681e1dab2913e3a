// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A caller over SRT, which publishes an MPEG transport stream to a mount, or reads one from it. Its
// stream id says what it wants (text/stream_id.h). The outlet's thread calls these functions,
// unless the function says otherwise.

#include "outlets/caller/caller.h"
#include "outlets/srt/srt_link.h"

typedef struct _SrtConnection SrtConnection;

// Of the outlet; all callers share it.
typedef struct {
  CallerContext *callers;
  SrtLink *link; // to the worker that has the callers; NULL: none
  // srt_connection_run() has something to do.
  void (*woken) (SrtConnection *connection, gpointer outlet);
  gpointer outlet;
} SrtContext;

// Makes a connection of a handshake and asks for access. `id` is the worker's number of the caller.
// Returns NULL if the caller is refused, and sets `*reject` to one of SRT's codes; the log has the
// reason. Does not block.
SrtConnection *srt_connection_new (const SrtContext *context, GInetSocketAddress *from,
    const gchar *stream_id, guint32 id, int *reject);

// The handshake is complete.
void srt_connection_begin (SrtConnection *self);

// Notes why the handshake was not completed. Then free it.
void srt_connection_refuse (SrtConnection *self, SrtProblem problem);

// Does what can be done now. Returns FALSE when the connection has ended; then free it.
gboolean srt_connection_run (SrtConnection *self);

// Takes the sums that the worker tells.
void srt_connection_sample (SrtConnection *self, const SrtSample *sample);

// Checks what no event says. Call it once a second before srt_connection_run().
void srt_connection_tick (SrtConnection *self);

// Ends it, unless it has ended. `reason` is for the log; NULL: it has never begun.
void srt_connection_free (SrtConnection *self, const gchar *reason);

guint32 srt_connection_get_id (const SrtConnection *self);
