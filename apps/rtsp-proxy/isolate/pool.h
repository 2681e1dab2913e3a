// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The worker processes. Each runs this program again, under the name WORKER_NAME, with a
// SOCK_SEQPACKET socket as descriptor WORKER_SOCKET. The log has the lines that a worker writes to
// its standard error; if GStreamer's debug output is asked for, they go to the proxy's standard
// error as they are. Call from the main thread only.

#include <glib.h>

#include "isolate/fds.h"
#include "isolate/sandbox.h"

#define WORKERS_MAX 1000
#define WORKER_FDS_MAX FDS_MAX // of a message

// A worker has jobs of one kind, which says what it may do.
typedef SandboxProfile WorkerKind;

typedef struct _Worker Worker;

// Sets how many workers of each kind run at most, but for SANDBOX_SWARM.
void workers_set_limit (guint n);

// Returns a worker for a job: an idle one, a new one, or, beyond the limit, the one with the fewest
// jobs. Returns NULL and sets `error` if none can be started. `died` is called with `job` when the
// worker has ended, unless worker_leave() was called before. The caller owns the job's place until
// worker_leave().
typedef void (*WorkerDiedFunc) (gpointer job, const gchar *reason);
Worker *workers_join (WorkerKind kind, WorkerDiedFunc died, gpointer job, GError **error);
void worker_leave (Worker *self, gpointer job);

// Like workers_join(), for a job that needs the process of another one. Returns FALSE if the worker
// has ended.
gboolean worker_join (Worker *self, WorkerDiedFunc died, gpointer job);

// Keeps a worker of the kind without jobs as long as the limit allows it, so that a job need not
// wait until one has started. One is started at a time; jobs that come meanwhile share the others.
void workers_keep_ready (WorkerKind kind);

// Sends a message with 1 to WORKER_FDS_MAX descriptors, which stay the caller's. Never waits.
// Returns FALSE and sets `error` if the worker does not take it.
gboolean worker_send (
    Worker *self, gconstpointer message, gsize len, const gint *fds, guint n_fds, GError **error);

// Kills the worker, unless it has ended. `why` completes "worker 1 ".
void worker_kill (Worker *self, const gchar *why);

gint worker_get_pid (Worker *self);

typedef struct {
  guint running;
  guint64 started, failed; // since the start; `failed`: ended by a signal or an error
} WorkerCounts;

void workers_get_counts (WorkerCounts *counts);

// Ends all workers at once; that of swarms within 3 s.
void workers_stop (void);
