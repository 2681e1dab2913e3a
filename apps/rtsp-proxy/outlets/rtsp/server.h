// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The RTSP server of the proxy: listens, and serves its mounts. Call from the main thread, where
// nothing else is said.

#include <glib.h>

#include "config/proxy_config.h"
#include "mounts/mounts.h"

typedef struct _Server Server;

// Listens and starts the mounts. Returns NULL and an error if it cannot listen, as on a port in
// use, or if a mount is not valid.
Server *server_new (ProxyConfig *config, GError **error);

// Returns rtsp://ADDR:PORT, on which it listens (transfer full).
gchar *server_dup_base_url (Server *self);

// Checks a mount's configuration beside those of the other mounts. Returns what is wrong with it
// (transfer full), or NULL.
gchar *server_check_mount (Server *self, MountConfig *config);

// Returns the mounts that it serves; they are valid as long as the server. Add and remove mounts
// by the functions below only. Call from any thread.
Mounts *server_get_mounts (Server *self);

// Adds a mount, or applies another configuration to the mount of this path. The configuration must
// have been checked. Returns FALSE and an error, and changes nothing, if that fails.
gboolean server_put_mount (Server *self, MountConfig *config, GError **error);

// Removes a mount and closes its readers; `reason` is logged. Returns FALSE if there is no such
// mount.
gboolean server_remove_mount (Server *self, const gchar *path, const gchar *reason);

// Returns the running nodes. Valid as long as the server.
Graph *server_get_graph (Server *self);

// The stages that mounts may use.
StageSet *server_get_stages (Server *self);
void server_set_stages (Server *self, StageSet *stages);

// Stops listening, closes all connections and stops the upstreams. Returns TRUE when all are
// closed, or FALSE after `timeout_ms`.
gboolean server_stop (Server *self, guint timeout_ms);

void server_free (Server *self);
