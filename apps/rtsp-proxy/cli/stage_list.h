// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "stages/stage.h"

// What --list-stages prints.
gchar *stage_list_dup (StageSet *set);
