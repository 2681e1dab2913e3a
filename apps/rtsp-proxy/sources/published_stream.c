// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/published_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/files_left.h"
#include "base/part_writer.h"
#include "sources/upstream.h"

#define BUFFER (2 * 1024 * 1024) // bytes that wait for the demultiplexer, as the kernel counts them
#define WAITING 4                // containers behind the one that is read

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
  gint next; // the socket of the next container, for start_next(); -1: none

  Publication *publication; // until the relay's last packet

  GMutex lock;
  Times times[RELAY_MAX_TRACKS]; // protected by `lock`
  gint waiting[WAITING];         // sockets of the next containers; likewise
  guint n_waiting;
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
  Publication *publication = ((PublishedStream *) sink)->publication;
  PublishRun *run = publication_enter (publication);
  const PullContext *context;

  publication_hear (publication, packet->now);
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
on_counted (gpointer sink, RelayCount what, guint64 n)
{
  PublishRun *run = publication_enter (((PublishedStream *) sink)->publication);

  if (!run)
    return;
  relay_count (publication_context (run)->source, what, n);
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
  .counted = on_counted };

// ---- the publication ----

typedef struct {
  PublishedStreamGone gone;
  gpointer owner;
  GDestroyNotify free;
} StreamHandle;

static void
on_displaced (gpointer data)
{
  StreamHandle *handle = data;

  handle->gone (handle->owner, "another publisher has taken the mount over");
}

// A container's protocol has no request for a keyframe.
static void
on_ask_key (gpointer data, guint track)
{
}

static void
free_handle (gpointer data)
{
  StreamHandle *handle = data;

  handle->free (handle->owner);
  g_free (handle);
}

// ---- the demultiplexer; main thread ----

static void
ignore (gpointer owner)
{
}

// Returns the socket of the next container, or -1 if none waits.
static gint
take_waiting (PublishedStream *self)
{
  gint fd = -1;

  g_mutex_lock (&self->lock);
  if (self->n_waiting > 0) {
    fd = self->waiting[0];
    memmove (self->waiting, self->waiting + 1, --self->n_waiting * sizeof fd);
  }
  g_mutex_unlock (&self->lock);
  return fd;
}

static gboolean start_next (gpointer data);

// A socket cannot be read again, so there is no next attempt: by then, another one may have its
// number.
static void
on_down (gpointer owner, const gchar *reason, guint retry_ms)
{
  PublishedStream *self = owner;

  upstream_stop (self->upstream);
  self->next = take_waiting (self);
  if (self->next < 0)
    self->gone (self->owner, reason);
  else
    g_idle_add_full (G_PRIORITY_DEFAULT, start_next, ref (self), unref);
}

// Reads the container of the configuration's socket.
static void
start (PublishedStream *self)
{
  static const UpstreamCallbacks callbacks = { ignore, ignore, ignore, on_down };

  self->upstream = upstream_new (&self->config, self->config.make, self->source, &callbacks, self);
  upstream_start (self->upstream);
}

// Begins the run of the next container.
static gboolean
start_next (gpointer data)
{
  PublishedStream *self = data;

  if (!self->upstream || self->next < 0)
    return G_SOURCE_REMOVE; // it has ended
  upstream_free (self->upstream);
  self->config.endpoint.fd = self->next;
  self->next = -1;
  start (self);
  return G_SOURCE_REMOVE;
}

static gboolean
begin_stream (gpointer data)
{
  PublishedStream *self = data;

  self->relay = relay_new ();
  self->source = relay_source_new (self->relay, NULL, NULL);
  relay_add_sink (self->relay, &sink_functions, ref (self), G_MAXUINT32, 0);
  start (self);
  return G_SOURCE_REMOVE;
}

static gboolean
end (gpointer data)
{
  PublishedStream *self = data;
  gint fd;

  g_clear_pointer (&self->upstream, upstream_free);
  if (self->next >= 0)
    close (self->next);
  while ((fd = take_waiting (self)) >= 0)
    close (fd);
  relay_source_end (self->source);
  relay_source_unref (self->source);
  relay_remove_sink (self->relay, self);
  relay_unref (self->relay);
  return G_SOURCE_REMOVE;
}

// ---- the publisher ----

// Opens the socket that the publisher writes, and the one that the demultiplexer reads.
static gboolean
open_sockets (gint fds[2], GError **error)
{
  gint size = BUFFER;

  if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0) {
    g_set_error (error, G_IO_ERROR, g_io_error_from_errno (errno), "%s", g_strerror (errno));
    return FALSE;
  }
  // A smaller buffer, if the system allows no such, makes drops likelier, and is no error.
  if (setsockopt (fds[0], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) < 0)
    setsockopt (fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  return TRUE;
}

PublishedStream *
published_stream_new (const PublishedStreamSettings *settings, PublishedStreamGone gone,
    gpointer owner, GDestroyNotify free, GError **error)
{
  static const PublicationOps ops = { on_displaced, on_ask_key };
  PublishedStream *self = g_new0 (PublishedStream, 1);
  gint fds[2];
  StreamHandle *handle;

  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->gone = gone;
  self->owner = owner;
  self->transport = settings->transport;
  pipe_pull_init (&self->config);
  self->config.connect_timeout_ms = settings->connect_timeout_ms;
  self->config.read_timeout_ms = settings->read_timeout_ms;
  self->next = -1;
  if (!open_sockets (fds, error)) {
    unref (self);
    return NULL;
  }
  part_writer_init (&self->writer, fds[0]);
  self->config.endpoint.is_open = TRUE;
  self->config.endpoint.fd = fds[1];
  handle = g_new (StreamHandle, 1);
  *handle = (StreamHandle) { gone, owner, free };
  self->publication = publication_claim (&settings->claim, &ops, handle, free_handle, error);
  if (!self->publication) {
    g_free (handle);
    close (self->writer.fd);
    close (self->config.endpoint.fd);
    unref (self);
    return NULL;
  }
  run_later (self, begin_stream);
  return self;
}

gboolean
published_stream_write (PublishedStream *self, const guint8 *bytes, gsize len)
{
  return part_writer_write (&self->writer, bytes, len);
}

gboolean
published_stream_begin_anew (PublishedStream *self)
{
  gboolean is_taken = FALSE;
  gint fds[2];

  if (!part_writer_write (&self->writer, NULL, 0))
    return FALSE;
  if (!open_sockets (fds, NULL)) {
    self->gone (self->owner, FILES_PROBLEM);
    return FALSE;
  }
  g_mutex_lock (&self->lock);
  if (self->n_waiting < WAITING) {
    self->waiting[self->n_waiting++] = fds[1];
    is_taken = TRUE;
  }
  g_mutex_unlock (&self->lock);
  if (!is_taken) {
    close (fds[0]);
    close (fds[1]);
    self->gone (self->owner, "its tracks change faster than they can be read");
    return FALSE;
  }
  // The container ends, and on_down() finds the next. The number stays, as its owner may watch it.
  dup3 (fds[0], self->writer.fd, O_CLOEXEC);
  close (fds[0]);
  return TRUE;
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
  relay_count (publication_context (run)->source, RELAY_OVERFLOW, n);
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
