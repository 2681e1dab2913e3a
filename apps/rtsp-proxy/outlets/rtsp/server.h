// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The RTSP side of the proxy: listens, and serves its mounts. Main thread only.

#include <glib.h>

#include "config/proxy_config.h"
#include "mounts/mounts.h"

typedef struct _Server Server;

// Listens and starts the mounts. NULL and an error that names
// what is wrong (a port in use, an address that is not ours).
Server *server_new (ProxyConfig *config, GError **error);

// rtsp://ADDR:PORT as listened on.
gchar *server_dup_base_url (Server *self);

// What is wrong with giving a mount this configuration beside the others that there are (to be
// freed), or NULL.
gchar *server_check_mount (Server *self, MountConfig *config);

// Returns the mounts that it serves; they are valid as long as the server. Add and remove mounts
// by the functions below only. Call from any thread.
Mounts *server_get_mounts (Server *self);

// Adds a mount, or gives the one of this path another configuration, which was checked. FALSE and
// an error: it could not be done, and all is as it was.
gboolean server_put_mount (Server *self, MountConfig *config, GError **error);

// Closes its readers, for this reason. FALSE: there is none.
gboolean server_remove_mount (Server *self, const gchar *path, const gchar *reason);

// What runs. Valid as long as the server. Main thread.
Graph *server_get_graph (Server *self);

// Those that its mounts may have. Main thread.
StageSet *server_get_stages (Server *self);
void server_set_stages (Server *self, StageSet *stages);

// Takes no more connections, closes those there are, ends the upstreams; returns when all is
// closed, or after `timeout_ms`. FALSE: something was still open then.
gboolean server_stop (Server *self, guint timeout_ms);

void server_free (Server *self);
