// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The RTSP side of the proxy: listens, and serves its mounts. Main thread only.

#include <glib.h>

#include "mount.h"
#include "proxy_config.h"

typedef struct _Server Server;

// Listens and starts the mounts. NULL and an error that names
// what is wrong (a port in use, an address that is not ours).
Server *server_new (ProxyConfig *config, GError **error);

// rtsp://ADDR:PORT as listened on.
gchar *server_dup_base_url (Server *self);

// Takes no more connections, closes those there are, ends the upstreams; returns when all is
// closed, or after `timeout_ms`. FALSE: something was still open then.
gboolean server_stop (Server *self, guint timeout_ms);

void server_free (Server *self);
