// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/isolated_pull.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/timer.h"
#include "isolate/pool.h"
#include "isolate/wire.h"
#include "sources/endpoint.h"
#include "sources/isolated_loop.h"
#include "sources/udp_input.h"

// A worker sends something at least once a second. One that starts may have to read GStreamer's
// plugins first.
#define SILENCE_LIMIT (5 * GST_SECOND)
#define START_LIMIT (30 * GST_SECOND)
#define CLOSE_LIMIT (5 * GST_SECOND)
// A tick of the loop that comes later than this is late.
#define LATE (2 * GST_SECOND)
// New tracks may close readers, and the main thread hears of them.
#define TRACKS_A_SECOND 10
// Of one upstream, before others get their turn.
#define MESSAGES_MAX 16
// An arrival time further back than this is a mistake of the worker.
#define ARRIVAL_MAX GST_SECOND
#define DEATH_MS 500

static const gchar closed_socket[] = "was killed: it closed the socket of an upstream";

typedef struct {
  IsolatedWatched watched; // first
  gatomicrefcount refs;
  const PullContext *context;
  Worker *worker; // main thread only
  gint has_ended; // atomic: the worker has told why the run ended, or it is dead
  gint close_by;  // atomic: in seconds; 0: not closing
  // Of the loop's thread:
  guint n_tracks;
  gint64 described; // when the second began in which there were `n_described` messages with tracks
  guint n_described;
  gboolean started;     // the worker has sent something
  gint64 heard, ticked; // ns
  const gchar *fault;   // what the worker did wrong

  GMutex lock;      // of the fields below
  gboolean is_read; // nothing reads the socket any more
  GDestroyNotify closed;
  gpointer data;
} Job;

static Isolate mode = ISOLATE_NO;

void
isolated_pull_set (Isolate to)
{
  mode = to;
}

gboolean
isolated_pull_covers (Isolate which, const PullConfig *config)
{
  return config->uri
         && (which == ISOLATE_YES || (which == ISOLATE_AUTO && config->parser != PULL_PASSES));
}

gboolean
isolated_pull_wants (const PullConfig *config)
{
  return isolated_pull_covers (mode, config);
}

gint
isolated_pull_get_pid (gpointer run)
{
  return worker_get_pid (((Job *) run)->worker);
}

// ---- references ----

static gboolean
leave_worker (gpointer data)
{
  Job *self = data;

  worker_leave (self->worker, self);
  close (self->watched.fd);
  g_mutex_clear (&self->lock);
  g_free (self);
  return G_SOURCE_REMOVE;
}

static void
job_unref (gpointer data)
{
  Job *self = data;

  if (g_atomic_ref_count_dec (&self->refs))
    g_main_context_invoke (NULL, leave_worker, self);
}

static Job *
job_ref (Job *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

// ---- what the worker says; in the loop's thread ----

static void
on_tracks (gpointer owner, GPtrArray *caps)
{
  Job *self = owner;
  const PullContext *context = self->context;
  gint64 now = clock_now ();

  if (now - self->described > (gint64) GST_SECOND) {
    self->described = now;
    self->n_described = 0;
  }
  self->n_tracks = caps->len;
  if (++self->n_described <= TRACKS_A_SECOND && !g_atomic_int_get (&context->cancelled))
    context->callbacks->begun (context->owner, relay_source_begin (context->source, caps));
}

static void
on_packet (gpointer owner, guint track, const WirePacket *packet)
{
  const PullContext *context = ((Job *) owner)->context;
  gint64 now = clock_now (), arrival = CLAMP (packet->now, now - (gint64) ARRIVAL_MAX, now);
  GstBuffer *buffer;

  if (g_atomic_int_get (&context->cancelled))
    return;
  buffer = gst_buffer_new_memdup (packet->data, packet->len);
  if (packet->more)
    relay_push_more (context->source, track, buffer, arrival, packet->base);
  else
    relay_push (context->source, track, buffer, arrival, packet->base);
  context->callbacks->packet (context->owner, arrival);
}

static void
on_mapped (gpointer owner, guint track, const WeirNtpMap *map)
{
  relay_set_ntp_map (((Job *) owner)->context->source, track, map);
}

static void
on_overflowed (gpointer owner, guint32 n)
{
  relay_count_overflow (((Job *) owner)->context->source, n);
}

static void
on_ended (gpointer owner, const gchar *reason)
{
  Job *self = owner;

  if (g_atomic_int_compare_and_exchange (&self->has_ended, 0, 1))
    self->context->callbacks->ended (self->context->owner, reason);
}

static const WireHandler handler = { on_tracks, on_packet, on_mapped, on_overflowed, on_ended };

// ---- the loop ----

// Kills the worker. The pool then calls on_died() of all of its jobs.
static gboolean
kill_worker (gpointer data)
{
  Job *self = data;

  worker_kill (self->worker, self->fault);
  job_unref (self);
  return G_SOURCE_REMOVE;
}

// For the main thread. A worker that dies closes its sockets a moment before the system knows that
// it is dead, and why.
static gboolean
handle_fault (gpointer data)
{
  Job *self = data;

  timer_add (self->fault == closed_socket ? DEATH_MS : 0, kill_worker, job_ref (self));
  return G_SOURCE_REMOVE;
}

// Calls `closed` when nothing reads the socket any more and the run was closed.
static void
settle (Job *self, gboolean is_read, GDestroyNotify closed, gpointer data)
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
stop_reading (Job *self, const gchar *fault)
{
  self->fault = fault;
  isolated_loop_remove (&self->watched);
  if (fault)
    g_main_context_invoke_full (NULL, G_PRIORITY_DEFAULT, handle_fault, job_ref (self), job_unref);
  settle (self, TRUE, NULL, NULL);
  job_unref (self);
}

static void
handle_end (Job *self)
{
  gboolean told = g_atomic_int_get (&self->has_ended) || g_atomic_int_get (&self->close_by);

  stop_reading (self, told ? NULL : closed_socket);
}

static void
on_ready (IsolatedWatched *watched, guint8 *scratch)
{
  Job *self = (Job *) watched;

  for (guint i = 0; i < MESSAGES_MAX; i++) {
    gssize n = recv (watched->fd, scratch, WIRE_MAX + 1, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
      return;
    if (n <= 0) {
      handle_end (self);
      return;
    }
    self->started = TRUE;
    self->heard = clock_now ();
    if (n > WIRE_MAX || !wire_read (scratch, (gsize) n, self->n_tracks, &handler, self)) {
      stop_reading (self, "was killed: it sent a malformed message");
      return;
    }
    if (self->n_described > TRACKS_A_SECOND) {
      stop_reading (self, "was killed: it changed its tracks too often");
      return;
    }
  }
}

static void
on_tick (IsolatedWatched *watched, gint64 now)
{
  Job *self = (Job *) watched;
  gint close_by = g_atomic_int_get (&self->close_by);

  // If this process was suspended or starved, so was perhaps the worker.
  if (now - self->ticked > (gint64) LATE)
    self->heard = now;
  self->ticked = now;
  if (close_by && now > close_by * (gint64) GST_SECOND)
    stop_reading (self, "was killed: it did not close an upstream within 5 s");
  else if (self->started && now - self->heard > (gint64) SILENCE_LIMIT)
    stop_reading (self, "was killed: it did not answer for 5 s");
  else if (now - self->heard > (gint64) START_LIMIT)
    stop_reading (self, "was killed: it did not start within 30 s");
}

// ---- the main thread ----

// A worker has died; its other jobs die with it.
static void
on_died (gpointer data, const gchar *reason)
{
  on_ended (data, reason);
}

static void
send_byte_pair (Job *self, WireType type, guint8 value)
{
  guint8 message[2] = { (guint8) type, value };

  // A worker that does not read is killed by its silence.
  if (send (self->watched.fd, message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
    return;
}

static void
ask_for_key (gpointer data, guint track, gint64 now)
{
  send_byte_pair (data, WIRE_ASK, (guint8) track);
}

static void
put_config (WireMessage *message, const PullConfig *config)
{
  wire_begin (message, WIRE_JOB);
  wire_put_text (message, config->uri);
  wire_put_text (message, config->user);
  wire_put_text (message, config->password);
  wire_put (message, config->transport, 1);
  wire_put (message, config->client, 1);
  wire_put (message, config->connect_timeout_ms, 4);
  wire_put (message, config->read_timeout_ms, 4);
}

// Sends the job with its end of the socket, and with the upstream's socket, if it has one.
static gboolean
send_job (Job *self, gint theirs, GError **error)
{
  const PullConfig *config = self->context->config;
  WireMessage *message = g_new (WireMessage, 1);
  gint fds[2] = { theirs, -1 };
  gboolean ok;

  put_config (message, config);
  ok = !message->failed;
  if (!ok) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_FAILED, "the URI is too long");
  } else if (config->parser == PULL_PARSES && config->endpoint.address) {
    fds[1] = endpoint_open (
        &config->endpoint, config->endpoint.port, 2 * UDP_INPUT_BUFFER, FALSE, error);
    ok = fds[1] >= 0;
  }
  if (ok)
    ok = worker_send (self->worker, message->data, message->len, fds, fds[1] >= 0 ? 2 : 1, error);
  if (fds[1] >= 0)
    close (fds[1]);
  g_free (message);
  return ok;
}

static gboolean
open_sockets (Job *self, gint *theirs, GError **error)
{
  gint pair[2];

  if (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_OPEN_READ, "%s", g_strerror (errno));
    return FALSE;
  }
  self->watched.fd = pair[0];
  *theirs = pair[1];
  return TRUE;
}

static gboolean
begin (Job *self, GError **error)
{
  gboolean offline = self->context->config->parser == PULL_PARSES;
  gint theirs;
  gboolean ok;

  self->worker = workers_join (offline ? WORKER_OFFLINE : WORKER_ONLINE, on_died, self, error);
  if (!self->worker)
    return FALSE;
  if (!open_sockets (self, &theirs, error)) {
    worker_leave (self->worker, self);
    return FALSE;
  }
  ok = send_job (self, theirs, error);
  close (theirs);
  if (ok) {
    self->heard = self->ticked = clock_now ();
    job_ref (self); // of the loop
    ok = isolated_loop_add (&self->watched, error);
  }
  if (!ok) {
    worker_leave (self->worker, self);
    close (self->watched.fd);
  }
  return ok;
}

static gpointer
start (const PullContext *context, GError **error)
{
  Job *self = g_new0 (Job, 1);

  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->context = context;
  self->watched.ready = on_ready;
  self->watched.tick = on_tick;
  if (!begin (self, error)) {
    g_mutex_clear (&self->lock);
    g_free (self);
    return NULL;
  }
  relay_source_set_asker (context->source, ask_for_key, job_ref (self), job_unref);
  return self;
}

static void
close_run (gpointer run, GDestroyNotify closed, gpointer data)
{
  Job *self = run;

  g_atomic_int_set (&self->has_ended, 1);
  relay_source_set_asker (self->context->source, NULL, NULL, NULL);
  g_atomic_int_set (
      &self->close_by, (gint) ((clock_now () + (gint64) CLOSE_LIMIT) / (gint64) GST_SECOND) + 1);
  send_byte_pair (self, WIRE_CLOSE, 0);
  settle (self, FALSE, closed, data);
  job_unref (self);
}

const PullLight isolated_pull_light = { start, close_run };
