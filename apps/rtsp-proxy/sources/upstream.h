// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Keeps a source of a relay alive: starts a life, watches it, ends it when it fails or falls
// silent, and tries again after a back-off. Main thread only; the callbacks come on the main thread
// too.

#include "sources/pull.h"

typedef struct _Upstream Upstream;

typedef struct {
  void (*connecting) (gpointer owner);
  // Media flows.
  void (*up) (gpointer owner);
  // The tracks are others than those that readers were told of.
  void (*changed) (gpointer owner);
  // The attempt failed, or what was up has ended; the next attempt comes in `retry_ms`.
  void (*down) (gpointer owner, const gchar *reason, guint retry_ms);
  // Is there a reason for it to be silent now? May be NULL: there is none.
  gboolean (*excused) (gpointer owner);
} UpstreamCallbacks;

// `config` (its time-outs; for a kind of pull all of it) and `owner`, which the context's `data`
// will be, must outlive it.
Upstream *upstream_new (const PullConfig *config, PullMakeFunc make, RelaySource *source,
    const UpstreamCallbacks *callbacks, gpointer owner);
void upstream_free (Upstream *self);

// No effect where it is running already.
void upstream_start (Upstream *self);

// Ends the life (with TEARDOWN for RTSP) and the back-off. Returns at once.
void upstream_stop (Upstream *self);

// How long nothing has come, in ns; since it was started, if nothing ever has. 0: it does not run.
gint64 upstream_get_silence (Upstream *self);

// Lives of any upstream whose pipelines are still being taken down.
guint upstream_n_closing (void);
