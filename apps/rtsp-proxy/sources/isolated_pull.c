// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/isolated_pull.h"

#include <unistd.h>

#include "base/clock.h"
#include "isolate/connect_broker.h"
#include "isolate/launch_paths.h"
#include "isolate/spawn.h"
#include "sources/endpoint.h"
#include "sources/isolated_job.h"
#include "sources/mount_pull.h"
#include "sources/udp_input.h"

// New tracks may close readers, and the main thread hears of them.
#define TRACKS_A_SECOND 10
// An arrival time further back than this is a mistake of the worker.
#define ARRIVAL_MAX GST_SECOND

typedef struct {
  IsolatedJob job; // first
  const PullContext *context;
  // Of the loop's thread:
  gint64 described; // when the second began in which there were `n_described` messages with tracks
  guint n_described;
} Pull;

static Isolate mode = ISOLATE_NO;

void
isolated_pull_set (Isolate to)
{
  mode = to;
}

Isolate
isolated_pull_get (void)
{
  return mode;
}

gboolean
isolated_pull_covers (Isolate which, const PullConfig *config)
{
  return config->uri && !pull_config_awaits (config) && !mount_pull_get_path (config)
         && (which == ISOLATE_YES || (which == ISOLATE_AUTO && config->parser != PULL_PASSES));
}

gboolean
isolated_pull_wants (const PullConfig *config)
{
  return isolated_pull_covers (mode, config);
}

static Worker *
get_worker (gpointer run)
{
  return isolated_job_get_worker (run);
}

// ---- what the worker says; in the loop's thread ----

static void
on_tracks (gpointer owner, GPtrArray *caps)
{
  Pull *self = owner;
  const PullContext *context = self->context;
  gint64 now = clock_now ();

  if (now - self->described > (gint64) GST_SECOND) {
    self->described = now;
    self->n_described = 0;
  }
  if (++self->n_described > TRACKS_A_SECOND) {
    isolated_job_accuse (&self->job, "was killed: it changed its tracks too often");
    return;
  }
  self->job.n_tracks = caps->len;
  if (!g_atomic_int_get (&context->cancelled))
    context->callbacks->begun (context->owner, relay_source_begin (context->source, caps));
}

static void
on_packet (gpointer owner, guint track, const WirePacket *packet)
{
  const PullContext *context = ((Pull *) owner)->context;
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
  relay_set_ntp_map (((Pull *) owner)->context->source, track, map);
}

static void
on_overflowed (gpointer owner, guint32 n)
{
  relay_count (((Pull *) owner)->context->source, RELAY_OVERFLOW, n);
}

static void
on_ended (gpointer owner, const gchar *reason)
{
  const PullContext *context = ((Pull *) owner)->context;

  context->callbacks->ended (context->owner, reason);
}

static void
on_unfit (gpointer owner, const gchar *reason)
{
  const PullContext *context = ((Pull *) owner)->context;

  context->callbacks->unfit (context->owner, reason);
}

static void
on_lasts (gpointer owner, gint64 length)
{
  const PullContext *context = ((Pull *) owner)->context;

  context->callbacks->lasts (context->owner, length);
}

static void
on_cue (gpointer owner, const WeirCue *cue)
{
  const PullContext *context = ((Pull *) owner)->context;

  if (!g_atomic_int_get (&context->cancelled))
    context->callbacks->cue (context->owner, cue);
}

static const WireHandler handler = { on_tracks, on_packet, on_mapped, on_overflowed, on_ended,
  .unfit = on_unfit, .lasts = on_lasts, .cue = on_cue };

// ---- the main thread ----

static void
ask_for_key (gpointer data, guint track, gint64 now)
{
  isolated_job_tell (data, WIRE_ASK, (guint8) track);
}

static void
release (IsolatedJob *job)
{
  g_free (job);
}

static void
put_config (WireMessage *message, const PullConfig *config)
{
  wire_begin (message, WIRE_JOB);
  wire_put_text (message, config->uri);
  wire_put_text (message, config->user);
  wire_put_text (message, config->password);
  wire_put_text (message, config->trust.ca);
  wire_put (message, config->trust.any ? 1 : 0, 1);
  wire_put (message, config->transport, 1);
  wire_put (message, config->client, 1);
  wire_put (message, config->encodes_sound ? 1 : 0, 1);
  wire_put (message, config->once ? 1 : 0, 1);
  wire_put (message, config->wants_cues ? 1 : 0, 1);
  wire_put (message, config->connect_timeout_ms, 4);
  wire_put (message, config->read_timeout_ms, 4);
}

// Opens what the worker itself may not open: the upstream's socket or file. Returns FALSE and sets
// `error` if that fails; `fd` is -1 if the upstream has none.
static gboolean
open_endpoint (const PullConfig *config, gint *fd, GError **error)
{
  const PullEndpoint *endpoint = &config->endpoint;

  *fd = -1;
  if (endpoint->is_open)
    *fd = endpoint->fd;
  else if (config->parser != PULL_PARSES)
    return TRUE;
  else if (endpoint->address)
    *fd = endpoint_open (endpoint, endpoint->port, 2 * UDP_INPUT_BUFFER, FALSE, error);
  else
    *fd = file_pull_open (config, error);
  return *fd >= 0;
}

static WorkerKind
choose_kind (const PullConfig *config)
{
  if (config->parser == PULL_PARSES)
    return SANDBOX_DEMUX;
  if (config->launch) {
    GStrv paths = launch_paths_find (config->launch);

    launch_paths_allow (paths, SANDBOX_LAUNCH);
    g_strfreev (paths);
    connect_broker_allow_text (config->launch);
    return SANDBOX_LAUNCH;
  }
  if (config->path && g_str_has_prefix (config->uri, "sdp:"))
    spawn_allow (SANDBOX_PULL, config->path);
  // The check of the configuration has opened it, if an API client named it.
  if (config->trust.ca)
    spawn_allow (SANDBOX_PULL, config->trust.ca);
  connect_broker_allow_text (config->uri);
  return SANDBOX_PULL;
}

static gboolean
begin_pull (Pull *self, GError **error)
{
  const PullConfig *config = self->context->config;
  WireMessage *message;
  gboolean ok;
  gint fd;

  if (config->trust.fingerprint) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
        "tls-fingerprint is not checked in a worker process: set isolate to auto or no");
    return FALSE;
  }
  if (!open_endpoint (config, &fd, error))
    return FALSE;
  message = g_new (WireMessage, 1);
  put_config (message, config);
  ok = isolated_job_start (
      &self->job, choose_kind (config), NULL, message, &fd, fd >= 0 ? 1 : 0, error);
  g_free (message);
  if (fd >= 0)
    close (fd);
  return ok;
}

static gpointer
start (const PullContext *context, GError **error)
{
  Pull *self = g_new0 (Pull, 1);

  self->job.handler = &handler;
  self->job.release = release;
  self->context = context;
  if (!begin_pull (self, error)) {
    g_free (self);
    return NULL;
  }
  relay_source_set_key_handler (
      context->source, ask_for_key, isolated_job_ref (&self->job), isolated_job_unref);
  return self;
}

static void
close_run (gpointer run, GDestroyNotify closed, gpointer data)
{
  Pull *self = run;

  relay_source_set_key_handler (self->context->source, NULL, NULL, NULL);
  isolated_job_close (&self->job, closed, data);
}

const PullLight isolated_pull_light = { start, close_run, get_worker };
