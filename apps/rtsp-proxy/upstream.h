// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Keeps a mount's upstream alive: starts a life, watches it, ends it when it fails or falls silent,
// and tries again after a back-off. Main thread only; the callbacks come on the main thread too.

#include "pull.h"

typedef struct _Upstream Upstream;

typedef struct {
  void (*connecting) (gpointer owner);
  // Media flows.
  void (*up) (gpointer owner);
  // The tracks are others than those that readers were told of.
  void (*changed) (gpointer owner);
  // The attempt failed, or what was up has ended; the next attempt comes in `retry_ms`.
  void (*down) (gpointer owner, const gchar *reason, guint retry_ms);
} UpstreamCallbacks;

// `config` and `owner` must outlive it.
Upstream *upstream_new (
    const PullConfig *config, Relay *relay, const UpstreamCallbacks *callbacks, gpointer owner);
void upstream_free (Upstream *self);

// No effect where it is running already.
void upstream_start (Upstream *self);

// Ends the life (with TEARDOWN for RTSP) and the back-off. Returns at once.
void upstream_stop (Upstream *self);

// Lives of any upstream whose pipelines are still being taken down.
guint upstream_n_closing (void);
