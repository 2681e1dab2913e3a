// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/isolated_job.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/timer.h"

// A worker sends something at least once a second. One that starts may have to read GStreamer's
// plugins first.
#define SILENCE_LIMIT (5 * GST_SECOND)
#define START_LIMIT (30 * GST_SECOND)
#define CLOSE_LIMIT (5 * GST_SECOND)
// A tick of the loop that comes later than this is late.
#define LATE (2 * GST_SECOND)
// Of one job, before others get their turn.
#define MESSAGES_MAX 16
#define DEATH_MS 500
#define TICK_MS 500
#define SCRATCH (WIRE_MAX + 1)

static const gchar closed_socket[] = "was killed: it closed the socket of a job";

Worker *
isolated_job_get_worker (IsolatedJob *self)
{
  return self->worker;
}

// ---- references ----

static gboolean
leave_worker (gpointer data)
{
  IsolatedJob *self = data;

  worker_leave (self->worker, self);
  close (self->socket);
  g_mutex_clear (&self->lock);
  self->release (self);
  return G_SOURCE_REMOVE;
}

void
isolated_job_unref (gpointer data)
{
  IsolatedJob *self = data;

  if (g_atomic_ref_count_dec (&self->refs))
    g_main_context_invoke (NULL, leave_worker, self);
}

IsolatedJob *
isolated_job_ref (IsolatedJob *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

// ---- the loop ----

static void
end (gpointer data, const gchar *reason)
{
  IsolatedJob *self = data;

  if (g_atomic_int_compare_and_exchange (&self->has_ended, 0, 1))
    self->handler->ended (self, reason);
}

static void
end_unfit (gpointer data, const gchar *reason)
{
  IsolatedJob *self = data;

  if (g_atomic_int_compare_and_exchange (&self->has_ended, 0, 1))
    self->handler->unfit (self, reason);
}

// Kills the worker. The pool then calls on_died() of all of its jobs.
static gboolean
kill_worker (gpointer data)
{
  IsolatedJob *self = data;

  worker_kill (self->worker, self->fault);
  isolated_job_unref (self);
  return G_SOURCE_REMOVE;
}

// For the main thread. A worker that dies closes its sockets a moment before the system knows that
// it is dead, and why.
static gboolean
handle_fault (gpointer data)
{
  IsolatedJob *self = data;

  timer_add (self->fault == closed_socket ? DEATH_MS : 0, kill_worker, isolated_job_ref (self));
  return G_SOURCE_REMOVE;
}

// Calls `closed` when nothing reads the socket any more and the run was closed.
static void
settle (IsolatedJob *self, gboolean is_read, GDestroyNotify closed, gpointer data)
{
  GDestroyNotify call = NULL;

  g_mutex_lock (&self->lock);
  self->is_read |= is_read;
  if (closed) {
    self->closed = closed;
    self->data = data;
  }
  if (self->is_read) {
    call = self->closed;
    self->closed = NULL;
  }
  data = self->data;
  g_mutex_unlock (&self->lock);
  if (call)
    call (data);
}

// Stops reading: the worker has closed the socket, or made a mistake.
static void
stop_reading (IsolatedJob *self, const gchar *fault)
{
  self->fault = fault;
  loop_watch (&self->watch, 0, self->socket, 0);
  loop_leave (&self->watch);
  if (fault)
    g_main_context_invoke_full (
        NULL, G_PRIORITY_DEFAULT, handle_fault, isolated_job_ref (self), isolated_job_unref);
  settle (self, TRUE, NULL, NULL);
}

static void
on_left (LoopWatch *watch)
{
  isolated_job_unref (watch);
}

static void
handle_end (IsolatedJob *self)
{
  gboolean told = g_atomic_int_get (&self->has_ended) || g_atomic_int_get (&self->close_by);

  stop_reading (self, told ? NULL : closed_socket);
}

static void
on_ready (LoopWatch *watch, guint number, guint32 events)
{
  IsolatedJob *self = (IsolatedJob *) watch;
  guint8 *scratch = loop_get_scratch (watch);

  for (guint i = 0; i < MESSAGES_MAX; i++) {
    gssize n = recv (self->socket, scratch, SCRATCH, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
      return;
    if (n <= 0) {
      handle_end (self);
      return;
    }
    self->started = TRUE;
    self->heard = clock_now ();
    if (n > WIRE_MAX || !wire_read (scratch, (gsize) n, self->n_tracks, &self->reader, self)) {
      stop_reading (self, "was killed: it sent a malformed message");
      return;
    }
    if (self->fault) {
      stop_reading (self, self->fault);
      return;
    }
  }
}

static void
on_tick (LoopWatch *watch, gint64 now)
{
  IsolatedJob *self = (IsolatedJob *) watch;
  gint close_by = g_atomic_int_get (&self->close_by);

  loop_set_due (watch, loop_next_tick (now, TICK_MS));
  // If this process was suspended or starved, so was perhaps the worker.
  if (now - self->ticked > (gint64) LATE)
    self->heard = now;
  self->ticked = now;
  if (close_by && now > close_by * (gint64) GST_SECOND)
    stop_reading (self, "was killed: it did not close a job within 5 s");
  else if (self->started && now - self->heard > (gint64) SILENCE_LIMIT)
    stop_reading (self, "was killed: it did not answer for 5 s");
  else if (now - self->heard > (gint64) START_LIMIT)
    stop_reading (self, "was killed: it did not start within 30 s");
}

void
isolated_job_accuse (IsolatedJob *self, const gchar *fault)
{
  self->fault = fault;
}

// ---- the main thread ----

void
isolated_job_tell (IsolatedJob *self, WireType type, guint8 value)
{
  guint8 message[2] = { (guint8) type, value };

  // A worker that does not read is killed by its silence.
  if (send (self->socket, message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
    return;
}

// Sends the job with its end of the socket.
static gboolean
send_job (IsolatedJob *self, gint theirs, const WireMessage *message, const gint *fds, guint n_fds,
    GError **error)
{
  gint all[WORKER_FDS_MAX] = { theirs };

  if (message->failed || n_fds >= WORKER_FDS_MAX) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_MESSAGE_TOO_LARGE,
        "the description of the job is too long for a worker process");
    return FALSE;
  }
  for (guint i = 0; i < n_fds; i++)
    all[1 + i] = fds[i];
  return worker_send (self->worker, message->data, message->len, all, 1 + n_fds, error);
}

static gboolean
open_sockets (IsolatedJob *self, gint *theirs, GError **error)
{
  gint pair[2];

  if (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
    g_set_error (error, G_IO_ERROR, g_io_error_from_errno (errno), "%s", g_strerror (errno));
    return FALSE;
  }
  self->socket = pair[0];
  *theirs = pair[1];
  return TRUE;
}

// Returns the loop that reads what all workers send, or NULL. With more than a few sockets, one
// wake serves the messages of many upstreams.
static Loop *
get_loop (GError **error)
{
  static const LoopSettings settings = {
    .name = "pull:isolated", .gather_us = 1000, .gather_above = 4, .scratch = SCRATCH
  };
  static Loop *loop;

  if (!loop)
    loop = loop_new (&settings, error);
  return loop;
}

static gboolean
watch (IsolatedJob *self, GError **error)
{
  static const LoopOps ops = { on_ready, on_tick, on_left };
  Loop *loop = get_loop (error);

  if (!loop)
    return FALSE;
  if (loop_join_fd (loop, &self->watch, &ops, self->socket, EPOLLIN)) {
    loop_set_due (&self->watch, loop_next_tick (self->ticked, TICK_MS));
    return TRUE;
  }
  g_set_error (error, G_IO_ERROR, g_io_error_from_errno (errno), "cannot watch a socket: %s",
      g_strerror (errno));
  return FALSE;
}

// Starts the job in `self->worker`.
static gboolean
begin_job (
    IsolatedJob *self, const WireMessage *message, const gint *fds, guint n_fds, GError **error)
{
  gint theirs;
  gboolean ok;

  if (!open_sockets (self, &theirs, error))
    return FALSE;
  ok = send_job (self, theirs, message, fds, n_fds, error);
  close (theirs);
  if (ok) {
    self->heard = self->ticked = clock_now ();
    isolated_job_ref (self); // of the loop
    ok = watch (self, error);
  }
  if (!ok)
    close (self->socket);
  return ok;
}

// Returns the worker that the job joined, or NULL. A worker that dies ends its jobs.
static Worker *
join (IsolatedJob *self, WorkerKind kind, Worker *where, GError **error)
{
  if (!where)
    return workers_join (kind, end, self, error);
  if (worker_join (where, end, self))
    return where;
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_CLOSED, "the worker process has ended");
  return NULL;
}

gboolean
isolated_job_start (IsolatedJob *self, WorkerKind kind, Worker *where, const WireMessage *message,
    const gint *fds, guint n_fds, GError **error)
{
  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->reader = *self->handler;
  self->reader.ended = end;
  self->reader.unfit = self->handler->unfit ? end_unfit : NULL;
  self->worker = join (self, kind, where, error);
  if (self->worker && begin_job (self, message, fds, n_fds, error))
    return TRUE;
  if (self->worker)
    worker_leave (self->worker, self);
  g_mutex_clear (&self->lock);
  return FALSE;
}

void
isolated_job_close (IsolatedJob *self, GDestroyNotify closed, gpointer data)
{
  g_atomic_int_set (&self->has_ended, 1);
  g_atomic_int_set (
      &self->close_by, (gint) ((clock_now () + (gint64) CLOSE_LIMIT) / (gint64) GST_SECOND) + 1);
  isolated_job_tell (self, WIRE_CLOSE, 0);
  settle (self, FALSE, closed, data);
  isolated_job_unref (self);
}
