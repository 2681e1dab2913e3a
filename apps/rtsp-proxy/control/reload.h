// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the configuration file again and applies its changes. A change through the API lasts until
// the file changes that mount, so this module keeps what the file last said about each mount. Call
// from the main thread only.

#include "cli/options.h"
#include "proxy/proxy.h"

typedef struct _Reload Reload;

// `config` is the configuration that the proxy was started with. All arguments must outlive the
// result.
Reload *reload_new (const Options *options, Proxy *proxy, const ProxyConfig *config);
void reload_free (Reload *self);

typedef struct {
  gchar *path;
  MountConfig *from, *to; // `from` is NULL if the mount is added, `to` if it is removed
} ReloadChange;

typedef struct {
  GPtrArray *changes; // of ReloadChange
  guint n_unchanged;
  GPtrArray *notes;    // of gchar *: changes that need a restart, and failures
  GHashTable *mounts;  // path -> MountConfig: all mounts of the file
  ProxyConfig *config; // the file
  Limits limits;
} ReloadPlan;

// Reads the file and lists its changes; changes nothing. Returns NULL and sets `error` if the file
// is wrong. Free the result with reload_plan_free().
ReloadPlan *reload_plan (Reload *self, GError **error);
void reload_plan_free (ReloadPlan *plan);

// Applies a plan and logs the result. Adds failures to the plan's notes. The caller still owns
// `plan`.
void reload_apply (Reload *self, ReloadPlan *plan);

// Plans and applies a reload, for SIGHUP. Logs errors.
void reload_run (Reload *self);

// Logs that a wrong file was not loaded.
void reload_log_failure (const GError *error);

// Reports whether `config` is the file's configuration of its mount.
gboolean reload_is_as_in_file (Reload *self, const MountConfig *config);
