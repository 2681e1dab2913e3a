// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Runs an upstream in a worker process, which parses what the upstream sends. A crash there ends
// the run, and not the proxy. Everything that the worker says is checked as if it came from the
// upstream.

#include "sources/pull.h"

typedef enum {
  ISOLATE_NO,
  ISOLATE_AUTO, // upstreams whose media is parsed, and stages with elements of others
  ISOLATE_YES,  // all upstreams and stages
} Isolate;

// Sets which upstreams and stages run in workers. Call before the first upstream starts.
void isolated_pull_set (Isolate mode);
Isolate isolated_pull_get (void);

// Report whether the upstream runs in a worker, with the mode that was set, or with `mode`.
gboolean isolated_pull_wants (const PullConfig *config);
gboolean isolated_pull_covers (Isolate mode, const PullConfig *config);

extern const PullLight isolated_pull_light;
