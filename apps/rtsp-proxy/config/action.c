// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/action.h"

const gchar *const access_action_words[] = { "read", "publish", "playback", "api", "metrics",
  NULL };
