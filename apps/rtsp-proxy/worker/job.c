// SPDX-License-Identifier: LGPL-2.1-or-later
#include "worker/job.h"

#include <errno.h>
#include <glib-unix.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/timer.h"
#include "isolate/wire.h"
#include "sources/kinds.h"
#include "sources/upstream.h"

#define ALIVE_MS 1000
#define CLOSING_MS 20
#define URI_MAX 60000

typedef struct {
  gatomicrefcount refs; // of the main thread, and of the relay's sink
  gint socket;
  PullConfig config;
  Relay *relay;
  RelaySource *source;
  Upstream *upstream;
  Timer *alive, *closing;
  guint reading;
  gchar *reason; // why the run ended; to be sent
  // Of the thread that the relay pushes the track's packets from.
  WireMessage *batches[RELAY_MAX_TRACKS];
} Job;

static void
job_unref (gpointer data)
{
  Job *self = data;

  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  for (guint i = 0; i < RELAY_MAX_TRACKS; i++)
    g_free (self->batches[i]);
  close (self->socket);
  pull_config_clear (&self->config);
  g_free (self->reason);
  g_free (self);
}

// ---- to the proxy ----

// Sends a message. Waits if the proxy does not keep up, as the kernel's buffer for the upstream
// then does.
static void
send_message (Job *self, const WireMessage *message)
{
  gssize sent;

  if (message->failed)
    return;
  do
    sent = send (self->socket, message->data, message->len, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
}

static void
on_begun (gpointer sink, Relay *relay, GPtrArray *caps, gint64 start)
{
  WireMessage *message = g_new (WireMessage, 1);

  wire_begin (message, WIRE_TRACKS);
  wire_put_tracks (message, caps);
  send_message (sink, message);
  g_free (message);
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
  Job *self = sink;
  WireMessage *batch = self->batches[packet->track];

  if (!batch) {
    batch = self->batches[packet->track] = g_new (WireMessage, 1);
    begin_batch (batch, packet->track);
  }
  if (!wire_put_packet (batch, packet->buffer, packet->now, packet->base)) {
    send_message (self, batch);
    begin_batch (batch, packet->track);
    wire_put_packet (batch, packet->buffer, packet->now, packet->base);
  }
  gst_buffer_unref (packet->buffer);
  if (packet->more)
    return;
  send_message (self, batch);
  begin_batch (batch, packet->track);
}

static void
on_mapped (gpointer sink, guint track, const WeirNtpMap *map)
{
  WireMessage *message = g_new (WireMessage, 1);

  wire_begin (message, WIRE_NTP);
  wire_put (message, track, 1);
  wire_put (message, map->ntp, 8);
  wire_put (message, map->timestamp, 4);
  wire_put (message, map->ssrc, 4);
  send_message (sink, message);
  g_free (message);
}

static void
on_overflowed (gpointer sink, guint64 n)
{
  WireMessage *message = g_new (WireMessage, 1);

  wire_begin (message, WIRE_OVERFLOW);
  wire_put (message, MIN (n, G_MAXUINT32), 4);
  send_message (sink, message);
  g_free (message);
}

static const RelaySink sink_functions = { on_begun, on_push, on_mapped, job_unref,
  .overflowed = on_overflowed };

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
  relay_remove_sink (self->relay, self);
  relay_unref (self->relay);
  self->closing = timer_add (CLOSING_MS, close_when_ended, self);
}

static gboolean
end_job (gpointer data)
{
  Job *self = data;
  WireMessage *message;

  if (self->closing)
    return G_SOURCE_REMOVE;
  message = g_new (WireMessage, 1);
  wire_begin (message, WIRE_ENDED);
  wire_put_text (message, self->reason);
  send_message (self, message);
  g_free (message);
  close_job (self);
  return G_SOURCE_REMOVE;
}

static void
release_job (gpointer data)
{
  job_unref (data);
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
  // The upstream calls this function; it cannot be freed here.
  g_atomic_ref_count_inc (&self->refs);
  g_idle_add_full (G_PRIORITY_DEFAULT, end_job, self, release_job);
}

static const UpstreamCallbacks upstream_callbacks = { on_connecting, on_connecting, on_connecting,
  on_down };

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
    relay_ask_key (self->relay, message[1], clock_now ());
  else
    close_job (self);
  return G_SOURCE_CONTINUE;
}

// Reads a job. Returns NULL, or an error message that the caller owns.
static gchar *
read_job (const guint8 *data, gsize len, PullConfig *config)
{
  WeirBytes b = weir_bytes (data, len);
  guint8 type, transport, client;
  gchar *uri, *wrong;

  weir_bytes_u8 (&b, &type);
  uri = wire_dup_text (&b, URI_MAX);
  wrong = type == WIRE_JOB && uri ? kinds_check (uri, 0, config) : g_strdup ("malformed job");
  g_free (uri);
  g_free (config->user);
  g_free (config->password);
  config->user = wire_dup_text (&b, G_MAXUINT16);
  config->password = wire_dup_text (&b, G_MAXUINT16);
  weir_bytes_u8 (&b, &transport);
  weir_bytes_u8 (&b, &client);
  weir_bytes_u32 (&b, &config->connect_timeout_ms);
  weir_bytes_u32 (&b, &config->read_timeout_ms);
  config->transport = transport;
  config->client = client;
  if (!wrong && b.failed)
    wrong = g_strdup ("malformed job");
  return wrong;
}

void
job_start (const guint8 *message, gsize len, gint socket, gint upstream)
{
  Job *self = g_new0 (Job, 1);
  gchar *wrong;

  g_atomic_ref_count_init (&self->refs);
  self->socket = socket;
  wrong = read_job (message, len, &self->config);
  self->config.endpoint.is_open = upstream >= 0;
  self->config.endpoint.fd = upstream;
  self->relay = relay_new ();
  self->source = relay_source_new (self->relay, NULL, NULL);
  g_atomic_ref_count_inc (&self->refs);
  relay_add_sink (self->relay, &sink_functions, self, G_MAXUINT32, 0);
  self->upstream =
      upstream_new (&self->config, self->config.make, self->source, &upstream_callbacks, self);
  self->alive = timer_add_tick (ALIVE_MS, send_alive, self);
  self->reading = g_unix_fd_add (socket, G_IO_IN | G_IO_HUP, on_message, self);
  send_alive (self);
  if (wrong)
    on_down (self, wrong, 0);
  else
    upstream_start (self->upstream);
  g_free (wrong);
}
