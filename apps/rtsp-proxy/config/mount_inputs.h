// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The key `inputs` of a mount: mounts whose media a stage makes one stream of. The first of them is
// the mount's upstream.

#include "config/mount_config.h"

static inline gboolean
mount_has_inputs (const MountConfig *config)
{
  return config->inputs && *config->inputs;
}

// Makes the upstream of a mount with inputs.
void mount_inputs_apply (MountConfig *mount);

// Returns the configuration of a mount whose only upstream is this input. (transfer full)
MountConfig *mount_inputs_make_alone (const MountConfig *mount, guint input);

// Check whether the stages take as many inputs as the mount has, when the stages are made; and
// whether there are such mounts among `mounts` (of MountConfig), with streams. Return what is wrong
// (transfer full), or NULL.
gchar *mount_inputs_check_stages (const MountConfig *mount);
gchar *mount_inputs_find_wrong (GPtrArray *mounts, const MountConfig *mount);

// Returns the path of one of `mounts` that has the mount `path` as an input, or NULL.
const gchar *mount_inputs_find_user (GPtrArray *mounts, const gchar *path);
