// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A client that publishes over RTMP. The outlet's thread calls these functions.

#include <gio/gio.h>

#include "access/access.h"
#include "access/connections.h"
#include "mounts/mounts.h"

typedef struct _RtmpConnection RtmpConnection;

// What all connections share. Reference counted (g_atomic_rc_box), as functions that come from
// other threads use it, perhaps after the outlet's end.
typedef struct {
  Mounts *mounts;
  Access *access;
  Connections *connections;
  GMainContext *loop; // of the outlet's thread
  // A connection has ended; free it.
  void (*ended) (RtmpConnection *connection, const gchar *reason, gpointer outlet);
  gpointer outlet;
  GDestroyNotify clear; // of this structure
} RtmpContext;

// Takes a socket (transfer full) that was counted in `connections`. `has_tls` says whether the
// client's connection has TLS. Returns NULL if there is no memory.
RtmpConnection *rtmp_connection_new (
    RtmpContext *context, GSocket *socket, GInetSocketAddress *from, gboolean has_tls);

// Does what can be done now. May call `ended`.
void rtmp_connection_run (RtmpConnection *self);

// Checks what no event says. Call it once a second. May call `ended`.
void rtmp_connection_tick (RtmpConnection *self);

// Closes it. `reason` is for the log.
void rtmp_connection_free (RtmpConnection *self, const gchar *reason);
