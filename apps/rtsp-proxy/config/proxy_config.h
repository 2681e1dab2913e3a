// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the proxy is told to do: from a YAML file, from arguments, or both. Everything is checked
// before anything is started.

#include <glib.h>

#include "config/mount_config.h"
#include "text/schema.h"

typedef enum {
  API_DEFAULT, // nobody asked for it: a port in use is no reason not to serve
  API_ASKED,
  API_OFF,
} ApiWanted;

typedef struct {
  gchar *address;
  guint16 port;
  ApiWanted api;
  gchar *api_address;
  guint16 api_port;
  gchar *api_token;    // NULL: none
  gchar *stage_folder; // searched first, or NULL
  StageSet *set;       // NULL before it is needed
  GPtrArray *mounts;   // of MountConfig
  GHashTable *paths;   // of these
} ProxyConfig;

// What a change of a key of the whole document does.
typedef enum {
  PROXY_EFFECT_RELOAD = 1, // counts from then on
  PROXY_EFFECT_RESTART,    // counts when the proxy is started again
} ProxyEffect;

extern const gchar *const proxy_effect_words[]; // by ProxyEffect

// The table of the keys of the whole document.
const SchemaKey *proxy_config_keys (void);

// The defaults: 127.0.0.1:8554, no mounts.
ProxyConfig *proxy_config_new (void);
void proxy_config_free (ProxyConfig *self);

// Reads a file into `self`. An error reads "FILE:LINE:COLUMN: key: what is wrong".
gboolean proxy_config_load (ProxyConfig *self, const gchar *file, GError **error);

// "ADDR:PORT", "[ADDR6]:PORT" or ":PORT" (every address).
gboolean proxy_config_set_listen (ProxyConfig *self, const gchar *listen, GError **error);

// "/path=URI"; `*has_password` becomes TRUE if the URI held one.
gboolean proxy_config_add_mount (
    ProxyConfig *self, const gchar *mount, gboolean *has_password, GError **error);

// Those of `stage_folder` and those that are installed, read once.
gboolean proxy_config_load_stages (ProxyConfig *self, GError **error);

// `address` is one that was checked.
gboolean proxy_config_is_loopback (const gchar *address);
