// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/srt/srt_worker.h"

#include <errno.h>
#include <gio/gio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/timer.h"
#include "isolate/pool.h"
#include "isolate/srt_wire.h"

#define TICK_MS 1000
#define SILENCE_MAX 5 // ticks; a worker says something each second
#define START_MAX 30  // ticks until its first message
#define AGAIN_MS 20   // after one that has worked for a second or more
#define AGAIN_EARLY_MS 1000

struct _SrtWorker {
  const SrtConfig *config;
  gint port;
  SrtWorkerCallbacks callbacks;
  gpointer owner;
  Worker *worker; // NULL: none runs
  Timer *tick, *again;
  guint silence; // ticks
  gint64 since;

  // Atomic.
  gint heard, accused, alive; // `alive`: it has said something since its start
};

// ---- the start ----

static gboolean
open_sockets (gint ours[2], gint theirs[2], GError **error)
{
  gint pairs[2][2];

  for (guint i = 0; i < 2; i++) {
    if (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pairs[i]) < 0) {
      g_set_error (error, G_IO_ERROR, g_io_error_from_errno (errno), "SRT: %s", g_strerror (errno));
      if (i == 1) {
        close (ours[0]);
        close (theirs[0]);
      }
      return FALSE;
    }
    ours[i] = pairs[i][0];
    theirs[i] = pairs[i][1];
  }
  return TRUE;
}

static gboolean
send_job (SrtWorker *self, const gint theirs[2], GError **error)
{
  const gint fds[] = { theirs[0], theirs[1], self->port };
  WireMessage *message = g_new (WireMessage, 1);
  gboolean ok;

  srt_wire_put_job (message, self->config->latency_ms, self->config->passphrase);
  ok = worker_send (self->worker, message->data, message->len, fds, G_N_ELEMENTS (fds), error);
  g_free (message);
  return ok;
}

static void on_died (gpointer job, const gchar *reason);

static void
leave (SrtWorker *self)
{
  worker_leave (self->worker, self);
  self->worker = NULL;
}

static gboolean
start (SrtWorker *self, GError **error)
{
  gint ours[2], theirs[2];
  gboolean ok;

  if (!open_sockets (ours, theirs, error))
    return FALSE;
  self->worker = workers_join (SANDBOX_SRT, on_died, self, error);
  ok = self->worker && send_job (self, theirs, error);
  close (theirs[0]);
  close (theirs[1]);
  if (!ok) {
    close (ours[0]);
    close (ours[1]);
    if (self->worker)
      leave (self);
    return FALSE;
  }
  self->silence = 0;
  self->since = clock_now ();
  g_atomic_int_set (&self->heard, 0);
  g_atomic_int_set (&self->alive, 0);
  g_atomic_int_set (&self->accused, 0);
  self->callbacks.started (self->owner, self, ours[0], ours[1]);
  return TRUE;
}

static gboolean
on_again (gpointer data)
{
  SrtWorker *self = data;
  GError *error = NULL;

  self->again = NULL;
  if (start (self, &error))
    return G_SOURCE_REMOVE;
  log_event ("SRT: no caller can connect for now: %s", error->message);
  g_error_free (error);
  self->again = timer_add (AGAIN_EARLY_MS, on_again, self);
  return G_SOURCE_REMOVE;
}

static void
on_died (gpointer job, const gchar *reason)
{
  SrtWorker *self = job;
  gboolean early = clock_now () - self->since < AGAIN_EARLY_MS * G_GINT64_CONSTANT (1000000);

  leave (self);
  self->callbacks.ended (self->owner, reason);
  self->again = timer_add (
      early || !g_atomic_int_get (&self->alive) ? AGAIN_EARLY_MS : AGAIN_MS, on_again, self);
}

// ---- while it runs ----

void
srt_worker_note_message (SrtWorker *self)
{
  g_atomic_int_set (&self->heard, 1);
  g_atomic_int_set (&self->alive, 1);
}

void
srt_worker_accuse (SrtWorker *self)
{
  g_atomic_int_set (&self->accused, 1);
}

static gboolean
on_tick (gpointer data)
{
  SrtWorker *self = data;

  if (!self->worker)
    return G_SOURCE_CONTINUE;
  self->silence++;
  if (g_atomic_int_compare_and_exchange (&self->heard, 1, 0))
    self->silence = 0;
  if (g_atomic_int_get (&self->accused))
    worker_kill (self->worker, "was killed: it sent a malformed message");
  else if (self->silence > (g_atomic_int_get (&self->alive) ? SILENCE_MAX : START_MAX))
    worker_kill (self->worker, "was killed: it did not answer for 5 s");
  return G_SOURCE_CONTINUE;
}

SrtWorker *
srt_worker_new (const SrtConfig *config, gint port, const SrtWorkerCallbacks *callbacks,
    gpointer owner, GError **error)
{
  SrtWorker *self = g_new0 (SrtWorker, 1);

  self->config = config;
  self->port = port;
  self->callbacks = *callbacks;
  self->owner = owner;
  if (!start (self, error)) {
    g_free (self);
    return NULL;
  }
  self->tick = timer_add_tick (TICK_MS, on_tick, self);
  return self;
}

void
srt_worker_free (SrtWorker *self)
{
  timer_remove (self->tick);
  g_clear_pointer (&self->again, timer_remove);
  if (self->worker)
    leave (self);
  g_free (self);
}
