// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "config/mount_config.h"

// Makes the stages that a mount's pipeline names, and checks them and its choices. NULL, or what is
// wrong (to be freed); `line` and `column` are where, and stay where there is no better place.
gchar *mount_stages_make (MountConfig *config, StageSet *set, guint *line, guint *column);
