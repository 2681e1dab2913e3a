// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A client that publishes over RTMP. The outlet's thread calls these functions.

#include <gio/gio.h>

#include "outlets/caller/caller.h"

typedef struct _RtmpConnection RtmpConnection;

// Of the outlet; all connections share it.
typedef struct {
  CallerContext *callers;
  // A connection has ended; free it.
  void (*ended) (RtmpConnection *connection, const gchar *reason, gpointer outlet);
  gpointer outlet;
} RtmpContext;

// Takes a socket (transfer full) that was counted in the connections of `callers`. `has_tls` says
// whether the client's connection has TLS. Returns NULL if there is no memory.
RtmpConnection *rtmp_connection_new (
    const RtmpContext *context, GSocket *socket, GInetSocketAddress *from, gboolean has_tls);

// Serves it. May call `ended`, from now on.
void rtmp_connection_start (RtmpConnection *self);

// Closes it. `reason` is for the log.
void rtmp_connection_free (RtmpConnection *self, const gchar *reason);
