// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A caller over SRT, which publishes an MPEG transport stream to a mount, or reads one from it. Its
// stream id says what it wants (text/stream_id.h). The outlet's thread calls these functions,
// unless the function says otherwise.

#include <gio/gio.h>
#include <srt/srt.h>

#include "access/access.h"
#include "access/connections.h"
#include "mounts/mounts.h"
#include "outlets/srt/srt_problem.h"

// What all callers of a listener share. Reference counted (g_atomic_rc_box), as functions that come
// from other threads use it, perhaps after the outlet's end.
typedef struct {
  Mounts *mounts;
  Access *access;
  Connections *connections;
  gint epoll; // of libsrt
  gint wake;  // an eventfd: wakes the outlet's thread
} SrtContext;

// Call from any thread.
void srt_context_unref (SrtContext *self);

typedef struct _SrtConnection SrtConnection;

// Makes a connection of a handshake and asks the door. Returns NULL if the caller is refused, and
// sets `*reject` to one of SRT's codes; the log has the reason. Call from any thread; does not
// block.
SrtConnection *srt_connection_new (SrtContext *context, GInetSocketAddress *from,
    const gchar *stream_id, SRTSOCKET socket, int *reject);

// The handshake is complete.
void srt_connection_begin (SrtConnection *self);

// Does what can be done now. Returns FALSE when the connection has ended; then free it.
gboolean srt_connection_run (SrtConnection *self);

// Checks what no event says. Call it once a second before srt_connection_run().
void srt_connection_tick (SrtConnection *self);

// Ends a connection whose handshake was not completed, and notes why. Call from any thread.
void srt_connection_refuse (SrtConnection *self, SrtProblem problem);

// Ends it, unless it has ended. `reason` is for the log; NULL: it has never begun.
void srt_connection_free (SrtConnection *self, const gchar *reason);

SRTSOCKET srt_connection_get_socket (const SrtConnection *self);
gint srt_connection_get_pipe (const SrtConnection *self); // the fd of a reader, or -1
