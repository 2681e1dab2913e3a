// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What a client may want to do. Permissions name actions by their words.

#include <glib.h>

typedef enum {
  ACCESS_READ,     // a live stream
  ACCESS_PUBLISH,  // send a stream to the proxy
  ACCESS_PLAYBACK, // a stored title, or the past of a live stream
  ACCESS_API,      // the control API
  ACCESS_METRICS,  // the metrics
} AccessAction;

extern const gchar *const access_action_words[]; // by AccessAction, ends with NULL
