// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the configuration again and applies what changed in it. What the file said of each mount
// when it was last read is kept: a mount that was changed through the API stays as it is until the
// file says something else of it. Main thread only.

#include "cli/options.h"
#include "outlets/rtsp/server.h"

typedef struct _Reload Reload;

// All three must outlive it. `config` is what the proxy was started with.
Reload *reload_new (const Options *options, Server *server, const ProxyConfig *config);
void reload_free (Reload *self);

typedef struct {
  gchar *path;
  MountConfig *from, *to; // NULL: there was none, there is to be none
} ReloadChange;

typedef struct {
  GPtrArray *changes; // of ReloadChange
  guint n_unchanged;
  GPtrArray *notes;    // of gchar *: what takes effect at the next start only, or could not be done
  GHashTable *mounts;  // path -> MountConfig: all that the file says
  StageSet *stage_set; // as their files are now
} ReloadPlan;

// Reads the file and lists the changes that it asks for; NULL and an error if it is wrong. Changes
// nothing.
ReloadPlan *reload_plan (Reload *self, GError **error);
void reload_plan_free (ReloadPlan *plan);

// Does it, and logs it. Takes the plan's effects only: it is still to be freed.
void reload_apply (Reload *self, ReloadPlan *plan);

// Both, for SIGHUP: what is wrong is logged.
void reload_run (Reload *self);

// Says that a wrong file was not taken.
void reload_log_failure (const GError *error);

// Has the mount the configuration that the file gives it?
gboolean reload_is_as_in_file (Reload *self, const MountConfig *config);
