// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The RTSP server of the proxy: listens, and serves its mounts. Call from the main thread only,
// unless the function says otherwise.

#include <glib.h>

#include "access/access.h"
#include "config/proxy_config.h"
#include "mounts/mounts.h"
#include "tls/tls_front.h"

#define SERVER_BACKLOG 512 // readers that may wait to be accepted

typedef struct _Server Server;

// Listens and starts the mounts. Returns NULL and sets `error` if it cannot listen, for example
// because the port is in use, or if a mount is not valid.
Server *server_new (ProxyConfig *config, GError **error);

// Returns rtsp://ADDR:PORT and rtsps://ADDR:PORT, with the addresses and ports in use. (transfer
// full)
GStrv server_dup_base_urls (Server *self);

// Returns the front of TLS listeners, or NULL if the configuration has no TLS.
TlsFront *server_get_tls (Server *self);

// Reads the certificate and the key of TLS again.
void server_reload_tls (Server *self);

// Checks a mount's configuration against the other mounts. Returns a message if the mount reads
// from itself, directly or through other mounts, else NULL. (transfer full)
gchar *server_check_mount (Server *self, MountConfig *config);

// Returns the mounts of the server; valid as long as the server. Add and remove mounts with the
// functions below only. Call from any thread.
Mounts *server_get_mounts (Server *self);

// Adds a mount, or changes the configuration of the mount with this path. Call server_check_mount()
// before. On failure, returns FALSE, sets `error` and changes nothing.
gboolean server_put_mount (Server *self, MountConfig *config, GError **error);

// Removes a mount and closes its readers; `reason` is logged. Returns FALSE if there is no such
// mount.
gboolean server_remove_mount (Server *self, const gchar *path, const gchar *reason);

// Returns the door; valid as long as the server.
Access *server_get_access (Server *self);

// Returns the number of RTSP connections.
guint server_count_connections (Server *self);

// Returns the graph; valid as long as the server.
Graph *server_get_graph (Server *self);

// Get and set the stages that mounts may use. (transfer none)
StageSet *server_get_stages (Server *self);
void server_set_stages (Server *self, StageSet *stages);

// Stops listening, closes all connections and stops the upstreams. Returns TRUE when all are
// closed, or FALSE after `timeout_ms`.
gboolean server_stop (Server *self, guint timeout_ms);

void server_free (Server *self);
