// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "mount_config.h"

// What is wrong with the stages that a mount names, their parameters, or the choices that it allows
// (to be freed); NULL if nothing is. `line` and `column`: where.
gchar *stage_check (const MountConfig *config, guint *line, guint *column);
