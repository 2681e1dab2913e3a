// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A way by which clients reach the mounts, or by which the mounts' media leave. main.c has the
// list.

#include "proxy/proxy.h"

// Functions for the main thread. Outlets start in the order of the list, and stop in reverse.
typedef struct {
  // Starts the outlet. Returns NULL if the configuration does not have it. On failure sets `error`,
  // and returns NULL, or what is to be stopped. `config` is valid during the call.
  gpointer (*start) (Proxy *proxy, ProxyConfig *config, GError **error);
  // Ends all connections. Returns FALSE if some are still open after `timeout_ms`.
  gboolean (*stop) (gpointer self, guint timeout_ms);
  // Called after the mounts have stopped, unless connections are still open. NULL: `stop` frees it.
  void (*free) (gpointer self);
} Outlet;
