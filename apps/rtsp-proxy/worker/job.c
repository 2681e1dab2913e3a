// SPDX-License-Identifier: LGPL-2.1-or-later
#include "worker/job.h"

#include <errno.h>
#include <glib-unix.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/timer.h"

#define ALIVE_MS 1000
#define CLOSING_MS 20

Job *
job_ref (Job *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
job_unref (gpointer data)
{
  Job *self = data;

  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  close (self->socket);
  pull_config_clear (&self->config);
  g_free (self->reason);
  self->release (self);
}

// ---- to the proxy ----

void
job_send (Job *self, const WireMessage *message)
{
  gssize sent;

  if (message->failed)
    return;
  do
    sent = send (self->socket, message->data, message->len, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
}

void
job_tell (Job *self, WireType type, guint8 value)
{
  guint8 message[2] = { (guint8) type, value };

  // The proxy may be late; it asks and is asked again.
  if (send (self->socket, message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
    return;
}

static gboolean
send_alive (gpointer data)
{
  const guint8 message = WIRE_ALIVE;

  // A full socket shows that the worker lives.
  if (send (((Job *) data)->socket, &message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
    return G_SOURCE_CONTINUE;
  return G_SOURCE_CONTINUE;
}

// ---- the end ----

static gboolean
close_when_ended (gpointer data)
{
  Job *self = data;

  if (upstream_n_closing () > 0)
    return G_SOURCE_CONTINUE;
  self->closing = NULL;
  g_clear_pointer (&self->alive, timer_remove);
  job_unref (self);
  return G_SOURCE_REMOVE;
}

static void
close_job (Job *self)
{
  if (self->closing)
    return;
  g_source_remove (self->reading);
  upstream_free (self->upstream);
  relay_source_end (self->source);
  relay_source_unref (self->source);
  relay_remove_sink (self->relay, self); // if it is one
  relay_unref (self->relay);
  self->closing = timer_add (CLOSING_MS, close_when_ended, self);
}

static gboolean
end_job (gpointer data)
{
  Job *self = data;
  g_autofree WireMessage *message = NULL;

  if (self->closing)
    return G_SOURCE_REMOVE;
  message = g_new (WireMessage, 1);
  wire_begin (message, self->is_unfit ? WIRE_UNFIT : WIRE_ENDED);
  wire_put_text (message, self->reason);
  job_send (self, message);
  close_job (self);
  return G_SOURCE_REMOVE;
}

static void
on_connecting (gpointer owner)
{
}

static void
on_down (gpointer owner, const gchar *reason, guint retry_ms)
{
  Job *self = owner;

  if (self->reason)
    return;
  self->reason = g_strndup (reason, WIRE_TEXT_MAX);
  self->is_unfit = upstream_get_unfit (self->upstream) != NULL;
  // The upstream calls this function; it cannot be freed here.
  g_idle_add_full (G_PRIORITY_DEFAULT, end_job, job_ref (self), job_unref);
}

static void
on_cued (gpointer owner, const WeirCue *cue)
{
  g_autofree WireMessage *message = g_new (WireMessage, 1);

  wire_begin (message, WIRE_CUE);
  wire_put_cue (message, cue);
  job_send (owner, message);
}

static const UpstreamCallbacks upstream_callbacks = { on_connecting, on_connecting, on_connecting,
  on_down, .cued = on_cued };

// ---- from the proxy ----

static gboolean
on_message (gint socket, GIOCondition condition, gpointer data)
{
  Job *self = data;
  guint8 message[2];
  gssize n = recv (socket, message, sizeof message, MSG_DONTWAIT);

  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return G_SOURCE_CONTINUE;
  if (n == sizeof message && message[0] == WIRE_ASK)
    self->ask (self, message[1]);
  else
    close_job (self);
  return G_SOURCE_CONTINUE;
}

void
job_init (Job *self)
{
  g_atomic_ref_count_init (&self->refs);
  self->relay = relay_new ();
  self->source = relay_source_new (self->relay, NULL, NULL);
}

void
job_start (Job *self, PullMakeFunc make, const gchar *wrong)
{
  self->upstream = upstream_new (&self->config, make, self->source, &upstream_callbacks, self);
  self->alive = timer_add_tick (ALIVE_MS, send_alive, self);
  self->reading = g_unix_fd_add (self->socket, G_IO_IN | G_IO_HUP, on_message, self);
  send_alive (self);
  if (wrong)
    on_down (self, wrong, 0);
  else
    upstream_start (self->upstream);
}
