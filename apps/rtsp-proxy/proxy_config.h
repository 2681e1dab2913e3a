// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the proxy is told to do: from a YAML file, from arguments, or both. Everything is checked
// before anything is started.

#include <glib.h>

#include "mount.h"

typedef struct {
  gchar *address;
  guint16 port;
  GPtrArray *mounts; // of MountConfig
} ProxyConfig;

#define PROXY_CONFIG_ERROR (proxy_config_error_quark ())
GQuark proxy_config_error_quark (void);

typedef enum {
  PROXY_CONFIG_ERROR_FILE,  // it can't be read
  PROXY_CONFIG_ERROR_YAML,  // it is no YAML
  PROXY_CONFIG_ERROR_KEY,   // a key is unknown, missing or twice there
  PROXY_CONFIG_ERROR_VALUE, // a value does not fit its key
} ProxyConfigError;

// The defaults: 127.0.0.1:8554, no mounts.
ProxyConfig *proxy_config_new (void);
void proxy_config_free (ProxyConfig *self);

// Reads a file into `self`. An error reads "FILE:LINE:COLUMN: key: what is wrong".
gboolean proxy_config_load (ProxyConfig *self, const gchar *file, GError **error);

// "ADDR:PORT", "[ADDR6]:PORT" or ":PORT" (every address).
gboolean proxy_config_set_listen (ProxyConfig *self, const gchar *listen, GError **error);

// "/path=URI"; `*has_password` tells whether the URI held one.
gboolean proxy_config_add_mount (
    ProxyConfig *self, const gchar *mount, gboolean *has_password, GError **error);

// "10", "10s", "500ms", "2m", "1h" in milliseconds; FALSE for anything else or above a day.
gboolean proxy_config_parse_duration (const gchar *text, guint *ms);
