// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A job of a worker: an upstream, or a stage, whose packets it sends to the proxy. Call from the
// main thread only, unless the function says otherwise.

#include "base/timer.h"
#include "isolate/wire.h"
#include "sources/upstream.h"

// The owner's structure begins with this one. It is freed when the proxy has closed the job, or the
// job has ended, and nothing uses it any more.
typedef struct _Job Job;
struct _Job {
  gint socket; // to the proxy
  PullConfig config;
  Relay *relay; // of the upstream
  RelaySource *source;
  Upstream *upstream;
  void (*ask) (Job *self, guint track); // asks for a keyframe
  void (*release) (Job *self);          // frees the job

  // Private:
  gatomicrefcount refs; // of the main thread, and of others
  Timer *alive, *closing;
  guint reading;
  gchar *reason;     // why the run ended; to be sent
  gboolean is_unfit; // upstream_get_unfit() says that
};

// Makes the relay of a new job. Its owner may add a sink, which is the job itself and releases it.
void job_init (Job *self);

// Starts the job, whose `socket`, `ask`, `release` and `config` are set. `make` makes the pipeline.
// `wrong` says why the job cannot run, or is NULL. The job ends when the proxy says so or closes
// its end of the socket.
void job_start (Job *self, PullMakeFunc make, const gchar *wrong);

// Call these from any thread. job_send() waits if the proxy does not keep up, as the kernel's
// buffer for the upstream then does. job_tell() never waits, and sends a message of two bytes.
void job_send (Job *self, const WireMessage *message);
void job_tell (Job *self, WireType type, guint8 value);
Job *job_ref (Job *self);
void job_unref (gpointer self);
