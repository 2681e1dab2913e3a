// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/published_stream.h"

#include <errno.h>
#include <gio/gio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/files_left.h"
#include "base/part_writer.h"
#include "sources/publication.h"
#include "sources/upstream.h"

#define BUFFER (2 * 1024 * 1024) // bytes that wait for the demultiplexer, as the kernel counts them

// What the upstream must be told of a track's times.
typedef struct {
  gboolean is_known;
  WeirNtpMap map;
  guint64 told; // the number of the run that knows it
} Times;

struct _PublishedStream {
  gatomicrefcount refs; // of the publisher, the relay, and functions that run later
  PublishedStreamGone gone;
  gpointer owner; // of the publication, which frees it
  const gchar *transport;
  gchar *reason; // why it ended

  // The publisher's thread.
  PartWriter writer;

  // The main thread.
  PullConfig config;
  Relay *relay; // between the demultiplexer and the publication
  RelaySource *source;
  Upstream *upstream;

  Publication *publication; // until the relay's last packet

  GMutex lock;
  Times times[RELAY_MAX_TRACKS]; // protected by `lock`
};

static PublishedStream *
ref (PublishedStream *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

static void
unref (gpointer data)
{
  PublishedStream *self = data;

  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  pull_config_clear (&self->config);
  part_writer_clear (&self->writer);
  g_mutex_clear (&self->lock);
  g_free (self->reason);
  g_free (self);
}

static void
run_later (PublishedStream *self, GSourceFunc function)
{
  g_main_context_invoke_full (NULL, G_PRIORITY_DEFAULT, function, ref (self), unref);
}

// ---- from the relay to the publication ----

static void
on_begun (gpointer sink, Relay *relay, GPtrArray *caps, gint64 start)
{
  PublishedStream *self = sink;

  g_mutex_lock (&self->lock);
  memset (self->times, 0, sizeof self->times);
  g_mutex_unlock (&self->lock);
  publication_begin (self->publication, self->transport, caps);
}

static void
on_mapped (gpointer sink, guint track, const WeirNtpMap *map)
{
  PublishedStream *self = sink;

  g_mutex_lock (&self->lock);
  self->times[track] = (Times) { TRUE, *map, 0 };
  g_mutex_unlock (&self->lock);
}

// Tells a run that may have begun after the relay knew it.
static void
tell_times (PublishedStream *self, PublishRun *run, guint track)
{
  Times *times = &self->times[track];
  gboolean tells;
  WeirNtpMap map;

  g_mutex_lock (&self->lock);
  tells = times->is_known && times->told != publication_get_number (run);
  times->told = publication_get_number (run);
  map = times->map;
  g_mutex_unlock (&self->lock);
  if (tells)
    relay_set_ntp_map (publication_context (run)->source, track, &map);
}

static void
on_push (gpointer sink, const RelayPacket *packet)
{
  PublishRun *run = publication_enter (((PublishedStream *) sink)->publication);
  const PullContext *context;

  if (!run) {
    gst_buffer_unref (packet->buffer);
    return;
  }
  context = publication_context (run);
  tell_times (sink, run, packet->track);
  if (packet->more)
    relay_push_more (context->source, packet->track, packet->buffer, packet->now, packet->base);
  else
    relay_push (context->source, packet->track, packet->buffer, packet->now, packet->base);
  context->callbacks->packet (context->owner, packet->now);
  publication_leave (run);
}

static void
on_overflowed (gpointer sink, guint64 n)
{
  PublishRun *run = publication_enter (((PublishedStream *) sink)->publication);

  if (!run)
    return;
  relay_count_overflow (publication_context (run)->source, n);
  publication_leave (run);
}

// No packet comes any more.
static void
on_removed (gpointer sink)
{
  PublishedStream *self = sink;

  publication_end (self->publication, self->reason);
  unref (self);
}

static const RelaySink sink_functions = { on_begun, on_push, on_mapped, on_removed,
  .overflowed = on_overflowed };

// ---- the publication ----

typedef struct {
  PublishedStreamGone gone;
  gpointer owner;
  GDestroyNotify free;
} Door;

static void
on_displaced (gpointer data)
{
  Door *door = data;

  door->gone (door->owner, "another publisher has taken the mount over");
}

// A container's protocol has no request for a keyframe.
static void
on_ask_key (gpointer data, guint track)
{
}

static void
door_free (gpointer data)
{
  Door *door = data;

  door->free (door->owner);
  g_free (door);
}

// ---- the demultiplexer; main thread ----

static void
ignore (gpointer owner)
{
}

static gboolean
stop (gpointer data)
{
  PublishedStream *self = data;

  if (self->upstream)
    upstream_stop (self->upstream);
  return G_SOURCE_REMOVE;
}

// The socket cannot be read again, so there is no next attempt.
static void
on_down (gpointer owner, const gchar *reason, guint retry_ms)
{
  PublishedStream *self = owner;

  self->gone (self->owner, reason);
  g_idle_add_full (G_PRIORITY_DEFAULT, stop, ref (self), unref);
}

static gboolean
begin (gpointer data)
{
  static const UpstreamCallbacks callbacks = { ignore, ignore, ignore, on_down };
  PublishedStream *self = data;

  self->relay = relay_new ();
  self->source = relay_source_new (self->relay, NULL, NULL);
  relay_add_sink (self->relay, &sink_functions, ref (self), G_MAXUINT32, 0);
  self->upstream = upstream_new (&self->config, self->config.make, self->source, &callbacks, self);
  if (files_are_left (FILES_FOR_UPSTREAM)) {
    upstream_start (self->upstream);
  } else {
    close (self->config.endpoint.fd);
    self->gone (self->owner, FILES_PROBLEM);
  }
  return G_SOURCE_REMOVE;
}

static gboolean
end (gpointer data)
{
  PublishedStream *self = data;

  g_clear_pointer (&self->upstream, upstream_free);
  relay_source_end (self->source);
  relay_source_unref (self->source);
  relay_remove_sink (self->relay, self);
  relay_unref (self->relay);
  return G_SOURCE_REMOVE;
}

// ---- the publisher ----

static gboolean
open_sockets (PublishedStream *self, GError **error)
{
  gint fds[2], size = BUFFER;

  if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0) {
    g_set_error (error, G_IO_ERROR, g_io_error_from_errno (errno), "%s", g_strerror (errno));
    return FALSE;
  }
  part_writer_init (&self->writer, fds[0]);
  // A smaller buffer, if the system allows no such, makes drops likelier, and is no error.
  if (setsockopt (self->writer.fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) < 0)
    setsockopt (self->writer.fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  self->config.endpoint.is_open = TRUE;
  self->config.endpoint.fd = fds[1];
  return TRUE;
}

PublishedStream *
published_stream_new (const PublishedStreamSettings *settings, PublishedStreamGone gone,
    gpointer owner, GDestroyNotify free, GError **error)
{
  static const PublicationOps ops = { on_displaced, on_ask_key };
  PublishedStream *self = g_new0 (PublishedStream, 1);
  Door *door;

  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->gone = gone;
  self->owner = owner;
  self->transport = settings->transport;
  pipe_pull_init (&self->config);
  self->config.connect_timeout_ms = settings->connect_timeout_ms;
  self->config.read_timeout_ms = settings->read_timeout_ms;
  if (!open_sockets (self, error)) {
    unref (self);
    return NULL;
  }
  door = g_new (Door, 1);
  *door = (Door) { gone, owner, free };
  self->publication = publication_claim (
      settings->path, settings->peer, settings->takeover, &ops, door, door_free, error);
  if (!self->publication) {
    g_free (door);
    close (self->writer.fd);
    close (self->config.endpoint.fd);
    unref (self);
    return NULL;
  }
  run_later (self, begin);
  return self;
}

gboolean
published_stream_write (PublishedStream *self, const guint8 *bytes, gsize len)
{
  return part_writer_write (&self->writer, bytes, len);
}

gint
published_stream_get_fd (PublishedStream *self)
{
  return self->writer.fd;
}

void
published_stream_count_overflow (PublishedStream *self, guint64 n)
{
  PublishRun *run = publication_enter (self->publication);

  if (!run)
    return;
  relay_count_overflow (publication_context (run)->source, n);
  publication_leave (run);
}

void
published_stream_end (PublishedStream *self, const gchar *reason)
{
  // The last packets leave later, in the main thread, but the publisher may come back at once.
  publication_give_back (self->publication);
  self->reason = g_strdup (reason);
  close (self->writer.fd);
  run_later (self, end);
  unref (self);
}
