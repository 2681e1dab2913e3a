// SPDX-License-Identifier: LGPL-2.1-or-later
#include "worker/pull_job.h"

#include "base/clock.h"
#include "sources/kinds.h"
#include "worker/job.h"

#define URI_MAX 60000

typedef struct {
  Job job; // first
  // Of the thread that the relay pushes the track's packets from.
  WireMessage *batches[RELAY_MAX_TRACKS];
} PullJob;

static void
release (Job *job)
{
  PullJob *self = (PullJob *) job;

  for (guint i = 0; i < RELAY_MAX_TRACKS; i++)
    g_free (self->batches[i]);
  g_free (self);
}

static void
ask (Job *job, guint track)
{
  relay_ask_key (job->relay, track, clock_now ());
}

// ---- to the proxy ----

static void
on_begun (gpointer sink, Relay *relay, GPtrArray *caps, gint64 start)
{
  g_autofree WireMessage *message = g_new (WireMessage, 1);
  PullJob *self = sink;

  if (self->job.config.once) { // its tracks are known on the main thread
    wire_begin (message, WIRE_LASTS);
    wire_put (message, (guint64) upstream_get_length (self->job.upstream), 8);
    job_send (&self->job, message);
  }
  wire_begin (message, WIRE_TRACKS);
  wire_put_tracks (message, caps);
  job_send (sink, message);
}

static void
begin_batch (WireMessage *batch, guint track)
{
  wire_begin (batch, WIRE_PACKETS);
  wire_put (batch, track, 1);
}

static void
on_push (gpointer sink, const RelayPacket *packet)
{
  PullJob *self = sink;
  WireMessage *batch = self->batches[packet->track];

  if (!batch) {
    batch = self->batches[packet->track] = g_new (WireMessage, 1);
    begin_batch (batch, packet->track);
  }
  if (!wire_put_packet (batch, packet->buffer, packet->now, packet->base)) {
    job_send (&self->job, batch);
    begin_batch (batch, packet->track);
    wire_put_packet (batch, packet->buffer, packet->now, packet->base);
  }
  gst_buffer_unref (packet->buffer);
  if (packet->more)
    return;
  job_send (&self->job, batch);
  begin_batch (batch, packet->track);
}

static void
on_mapped (gpointer sink, guint track, const WeirNtpMap *map)
{
  g_autofree WireMessage *message = g_new (WireMessage, 1);

  wire_begin (message, WIRE_NTP);
  wire_put (message, track, 1);
  wire_put (message, map->ntp, 8);
  wire_put (message, map->timestamp, 4);
  wire_put (message, map->ssrc, 4);
  job_send (sink, message);
}

static void
on_counted (gpointer sink, RelayCount what, guint64 n)
{
  g_autofree WireMessage *message = NULL;

  if (what != RELAY_OVERFLOW)
    return;
  message = g_new (WireMessage, 1);
  wire_begin (message, WIRE_OVERFLOW);
  wire_put (message, MIN (n, G_MAXUINT32), 4);
  job_send (sink, message);
}

static const RelaySink sink_functions = { on_begun, on_push, on_mapped, job_unref,
  .counted = on_counted };

// ---- from the proxy ----

// Reads a job. Returns NULL, or an error message that the caller owns.
static gchar *
read_job (const guint8 *data, gsize len, PullConfig *config)
{
  WeirBytes b = weir_bytes (data, len);
  guint8 type, any, transport, client, encodes_sound, once, wants_cues;
  gchar *uri, *ca, *wrong = NULL;

  weir_bytes_u8 (&b, &type);
  uri = wire_dup_text (&b, URI_MAX);
  if (type != WIRE_JOB || !uri)
    wrong = g_strdup ("malformed job");
  else if (pipe_pull_is (uri))
    pipe_pull_init (config);
  else
    wrong = kinds_check (uri, 0, config);
  g_free (uri);
  g_free (config->user);
  g_free (config->password);
  config->user = wire_dup_text (&b, G_MAXUINT16);
  config->password = wire_dup_text (&b, G_MAXUINT16);
  ca = wire_dup_text (&b, G_MAXUINT16);
  weir_bytes_u8 (&b, &any);
  weir_bytes_u8 (&b, &transport);
  weir_bytes_u8 (&b, &client);
  weir_bytes_u8 (&b, &encodes_sound);
  weir_bytes_u8 (&b, &once);
  weir_bytes_u8 (&b, &wants_cues);
  weir_bytes_u32 (&b, &config->connect_timeout_ms);
  weir_bytes_u32 (&b, &config->read_timeout_ms);
  config->transport = transport;
  config->client = client;
  config->trust.any = any;
  config->trust.ca = ca && ca[0] ? g_steal_pointer (&ca) : NULL;
  g_free (ca);
  config->encodes_sound = encodes_sound;
  config->once = once;
  config->wants_cues = wants_cues;
  if (!wrong && b.failed)
    wrong = g_strdup ("malformed job");
  return wrong;
}

void
pull_job_start (const guint8 *message, gsize len, gint socket, gint upstream)
{
  PullJob *self = g_new0 (PullJob, 1);
  Job *job = &self->job;
  g_autofree gchar *wrong = NULL;

  job->socket = socket;
  job->ask = ask;
  job->release = release;
  job->config.endpoint.is_open = upstream >= 0;
  job->config.endpoint.fd = upstream;
  wrong = read_job (message, len, &job->config);
  job_init (job);
  relay_add_sink (job->relay, &sink_functions, job_ref (job), G_MAXUINT32, 0);
  job_start (job, job->config.make, wrong);
}
