// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One connection of an HTTP client. It is a task of a pool of threads: it reads requests, asks the
// access check, opens titles and sends them, and waits for none of these in a thread.
//
// libsoup parses the heads of requests. Its server is not used, because it has no deadlines for
// slow clients and no bounds for heads, and because it would not take a connection back after
// another has sent a file on it (soup_server_message_steal_connection()).

#include <gio/gio.h>

#include "access/access.h"
#include "base/loop.h"
#include "mounts/mounts.h"
#include "outlets/http/http_forwarded.h"
#include "outlets/http/http_route.h"
#include "run/workers.h"

typedef struct _HttpConnection HttpConnection;

// What connections share.
typedef struct {
  Mounts *mounts;
  Access *access;
  WeirWorkers *workers;
  Loop *loop;              // waits for the sockets of all connections, and wakes their tasks
  const HttpRoute *routes; // the last one has no prefix and no suffix
  GStrv hosts;             // by which clients may call this machine (host_names_take())
  HttpProxies *proxies;    // which name their clients, or NULL
  GStrv allow_origins;     // of pages that may read what their user gets by an address alone
  // The connection is closed and about to be freed. Called in any thread.
  void (*ended) (HttpConnection *connection, gpointer data);
  gpointer data;
} HttpContext;

// Makes a connection of a connected socket (transfer full). `peer` is its address and port.
// `context` must outlive it. It frees itself after it has ended.
HttpConnection *http_connection_new (const HttpContext *context, GSocket *socket,
    GInetAddress *address, const gchar *peer, gboolean has_tls);

// Serves it. Call once, from then on from any thread.
void http_connection_start (HttpConnection *self);

GInetAddress *http_connection_get_address (HttpConnection *self); // (transfer none)

// Closes the connection soon. Call before `ended`.
void http_connection_close (HttpConnection *self);
