// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the outlets and the API share: the mounts, the check of users, the graph, the stages and the
// front of TLS. Call from the main thread only, unless a comment says otherwise.

#include "access/access.h"
#include "config/proxy_config.h"
#include "mounts/mounts.h"
#include "tls/tls_front.h"

typedef struct _Proxy Proxy;

// Makes all but the mounts. Returns NULL and sets `error` if the system has no thread or file left.
Proxy *proxy_new (const ProxyConfig *config, GError **error);

// Sets what serves the presentations and the titles of all mounts. Call before proxy_add_mounts();
// `data` must be valid until proxy_stop().
void proxy_present (Proxy *self, const MountOutlet *outlet, gpointer data,
    const TitleOutlet *title_outlet, GObject *title_data);

// Lets an outlet close the readers of a presentation. `close` is called on the main thread, until
// proxy_stop(). proxy_close_readers() calls the functions of all outlets; `reason` is logged.
void proxy_add_closer (Proxy *self, CloseReadersFunc close, gpointer data);
void proxy_close_readers (Proxy *self, Presentation *presentation, const gchar *reason);

// Adds the mounts of the configuration. Returns FALSE and sets `error` if one is not valid.
gboolean proxy_add_mounts (Proxy *self, const ProxyConfig *config, GError **error);

// Replaces the paths with variables (of MountConfig). The mounts that they have made change or go.
void proxy_set_patterns (Proxy *self, GPtrArray *patterns);

// Adds an address on which RTSP clients are served, so that no mount reads from itself. `scheme` is
// "rtsp" or "rtsps".
void proxy_add_listen (Proxy *self, const gchar *scheme, const ListenAddress *listen);

// Returns these addresses as rtsp://ADDR:PORT. (transfer full)
GStrv proxy_dup_base_urls (Proxy *self);

// Starts the mounts.
void proxy_start (Proxy *self);

// Stops the mounts. Returns TRUE when all upstreams and TLS connections are closed, or FALSE after
// `timeout_ms`.
gboolean proxy_stop (Proxy *self, guint timeout_ms);
void proxy_free (Proxy *self);

// These are valid as long as the proxy. (transfer none)
Mounts *proxy_get_mounts (Proxy *self); // add and remove mounts below only; call from any thread
Access *proxy_get_access (Proxy *self);
Graph *proxy_get_graph (Proxy *self);
TlsFront *proxy_get_tls (Proxy *self); // NULL: the configuration has no TLS

// The stages that mounts may use. (transfer none)
StageSet *proxy_get_stages (Proxy *self);
void proxy_set_stages (Proxy *self, StageSet *stages);

// Reads the certificate and the key of TLS again.
void proxy_reload_tls (Proxy *self);

// ---- mounts ----

// Checks a mount's configuration against the other mounts; see mounts_check(). Returns what is
// wrong (transfer full), or NULL.
gchar *proxy_check_mount (Proxy *self, MountConfig *config);

// Returns the path of a mount that has the mount `path` as an input (transfer full), or NULL.
gchar *proxy_dup_input_user (Proxy *self, const gchar *path);

// Adds a mount, or changes the configuration of the mount with this path. Call proxy_check_mount()
// before. On failure, returns FALSE, sets `error` and changes nothing.
gboolean proxy_put_mount (Proxy *self, MountConfig *config, GError **error);

// Removes a mount and closes its readers; `reason` is logged. Returns FALSE if there is no such
// mount.
gboolean proxy_remove_mount (Proxy *self, const gchar *path, const gchar *reason);
