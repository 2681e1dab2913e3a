// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The proxy's side of a job of a worker process, such as an upstream. Everything that the worker
// says is checked as if it came from the upstream. A worker that makes a mistake, falls silent or
// does not close the job in time is killed.

#include "base/loop.h"
#include "isolate/pool.h"
#include "isolate/wire.h"

// The owner's structure begins with this one.
typedef struct _IsolatedJob IsolatedJob;
struct _IsolatedJob {
  LoopWatch watch; // first
  // Gets the job as `owner`, in the loop's thread. One of `ended` and `unfit` is called at most
  // once, and not after isolated_job_close(); also on the main thread, if the worker has died.
  const WireHandler *handler;
  void (*release) (
      IsolatedJob *self); // frees the job; called on the main thread, when nothing uses the job
  guint n_tracks;         // that the worker may name; set in the loop's thread

  // Private:
  gint socket;
  WireHandler reader; // `handler`, with another `ended` and `unfit`
  gatomicrefcount refs;
  Worker *worker; // main thread only
  gint has_ended; // atomic: the worker has told why the run ended, or it is dead
  gint close_by;  // atomic: in seconds; 0: not closing
  // Of the loop's thread:
  gboolean started;     // the worker has sent something
  gint64 heard, ticked; // ns
  const gchar *fault;   // what the worker did wrong

  GMutex lock;      // of the fields below
  gboolean is_read; // nothing reads the socket any more
  GDestroyNotify closed;
  gpointer data;
};

// Starts the job: joins a worker of the kind, or the worker `where` if that is not NULL, and sends
// it `message`, the job's socket and further descriptors (which stay the caller's). `self` is empty
// but for `handler`, `release` and the owner's fields. Returns FALSE and sets `error` if that
// fails; `self` then stays the caller's. Call from the main thread only.
gboolean isolated_job_start (IsolatedJob *self, WorkerKind kind, Worker *where,
    const WireMessage *message, const gint *fds, guint n_fds, GError **error);

IsolatedJob *isolated_job_ref (IsolatedJob *self);
void isolated_job_unref (gpointer self);

// Sends a message of two bytes, such as WIRE_ASK with a track. Call from any thread.
void isolated_job_tell (IsolatedJob *self, WireType type, guint8 value);

// Kills the worker after the message that is being read. `fault` is static and completes
// "worker 1 ". Call from a function of `handler` only.
void isolated_job_accuse (IsolatedJob *self, const gchar *fault);

// Closes the job and releases the caller's reference. Calls `closed` from any thread when the
// functions of `handler` are not called any more.
void isolated_job_close (IsolatedJob *self, GDestroyNotify closed, gpointer data);

// Returns the worker, which stays the job's. Call from the main thread only.
Worker *isolated_job_get_worker (IsolatedJob *self);
