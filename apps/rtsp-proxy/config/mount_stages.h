// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "config/mount_config.h"
#include "text/config_error.h"

// Gets a mistake in the stages of `key`, which is pipeline or source-stages, at its place in the
// configuration. Takes ownership of `text`.
typedef void (*MountStagesWrong) (
    gpointer data, const gchar *key, guint line, guint column, ConfigError code, gchar *text);

// Makes the source stages of a mount and the stages of its pipeline, and checks them and the
// choices. Returns FALSE if something is wrong, after a call of `wrong` for each mistake. `line`
// and `column` are the place of those without a place of their own.
gboolean mount_stages_make (MountConfig *config, StageSet *set, guint line, guint column,
    MountStagesWrong wrong, gpointer data);

// Reports whether a source stage, or a stage of the pipeline, encodes sound of any codec anew.
gboolean mount_config_encodes_sound (const MountConfig *config);
