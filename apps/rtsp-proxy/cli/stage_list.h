// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "stages/stage.h"

// Returns the text that --list-stages prints. The caller owns it.
gchar *stage_list_dup (StageSet *set);
