// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "config/mount_config.h"

// Makes the stages of a mount's pipeline, and checks them and the choices. Returns NULL, or an
// error message that the caller owns. Sets `*line` and `*column` to the place of the error if it is
// known.
gchar *mount_stages_make (MountConfig *config, StageSet *set, guint *line, guint *column);

// Reports whether a stage of the pipeline encodes sound of any codec anew.
gboolean mount_config_encodes_sound (const MountConfig *config);
