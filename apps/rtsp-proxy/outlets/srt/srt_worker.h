// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Keeps a worker process that runs libsrt on the listener's port (worker/srt_job.h): when it has
// ended, another one starts on the same port. Call from the main thread, unless the function says
// otherwise.

#include "config/srt_config.h"

typedef struct _SrtWorker SrtWorker;

typedef struct {
  // A worker has started. The function owns the proxy's ends of its sockets (isolate/srt_wire.h).
  void (*started) (gpointer owner, SrtWorker *worker, gint commands, gint questions);
  void (*ended) (gpointer owner, const gchar *reason);
} SrtWorkerCallbacks;

// Starts the first worker. `port` stays the caller's, and must outlive the result, like `config`.
SrtWorker *srt_worker_new (const SrtConfig *config, gint port, const SrtWorkerCallbacks *callbacks,
    gpointer owner, GError **error);
void srt_worker_free (SrtWorker *self);

// Call these from any thread: the worker has said something; it has sent a malformed message, so it
// must end.
void srt_worker_note_message (SrtWorker *self);
void srt_worker_accuse (SrtWorker *self);
