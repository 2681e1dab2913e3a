// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stores/bytes_socket.h"

#include <errno.h>
#include <gio/gio.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/threads.h"
#include "isolate/title_loop.h"
#include "run/clock.h"

// A reader asks for many parts of a region, each as soon as it has the last.
#define NEXT_MS 20

typedef struct {
  StoreBytes *bytes;
  int socket;
  LoopWatch watch;
  StoreRegion *region, *next;
  GMutex lock;
  GCond changed;
  guint n_changes; // under the lock
} Server;

static void
on_ready (gpointer data)
{
  Server *self = data;

  g_mutex_lock (&self->lock);
  self->n_changes++;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

static gboolean
is_within (const StoreRegion *region, guint64 at)
{
  return region && at >= region->start && at < region->end;
}

// Makes `region` the one with byte `at`. Asks for the one after it if the reader reads on.
static void
move_to (Server *self, guint64 at)
{
  gboolean reads_on = self->region && at == self->region->end;

  store_region_free (self->region);
  if (is_within (self->next, at)) {
    self->region = g_steal_pointer (&self->next);
  } else {
    store_region_free (g_steal_pointer (&self->next));
    self->region = store_bytes_ask (self->bytes, at, weir_now_ns (), on_ready, self);
  }
  if (reads_on && self->region->end < self->bytes->size)
    self->next = store_bytes_ask (
        self->bytes, self->region->end, weir_now_ns () + self->bytes->slice_ns, on_ready, self);
}

// Waits until the region is ready. Returns FALSE and sets `error` if it cannot be read.
static gboolean
wait_for_region (Server *self, GError **error)
{
  GError *why = NULL;
  gboolean ready;

  for (;;) {
    guint n;

    g_mutex_lock (&self->lock);
    n = self->n_changes;
    g_mutex_unlock (&self->lock);
    ready = store_region_is_ready (self->region, &why);
    if (ready || why)
      break;
    g_mutex_lock (&self->lock);
    while (n == self->n_changes)
      g_cond_wait (&self->changed, &self->lock);
    g_mutex_unlock (&self->lock);
  }
  if (why)
    g_propagate_error (error, why);
  return ready;
}

static gboolean
answer (Server *self, gint64 value)
{
  BytesAnswer answer = { value };

  return send (self->socket, &answer, sizeof answer, MSG_NOSIGNAL) == sizeof answer;
}

// Answers that the bytes cannot be read. Takes ownership of `error`.
static gboolean
send_failure (Server *self, GError *error)
{
  const gsize length = MIN (strlen (error->message), BYTES_REASON_MAX);
  gboolean sent = answer (self, -1 - (gint64) length)
                  && (gsize) send (self->socket, error->message, length, MSG_NOSIGNAL) == length;

  g_error_free (error);
  return sent;
}

// Answers with the bytes of one region at most.
static gboolean
send_bytes (Server *self, const BytesRequest *request)
{
  GError *error = NULL;
  gsize length;
  off_t offset;
  int fd;

  if (request->offset >= self->bytes->size)
    return answer (self, 0);
  if (!is_within (self->region, request->offset))
    move_to (self, request->offset);
  if (!wait_for_region (self, &error))
    return send_failure (self, error);
  store_region_get (self->region, request->offset, &fd, &offset, &length);
  length = MIN (length, request->length);
  if (!answer (self, (gint64) length))
    return FALSE;
  while (length > 0) {
    gssize n = sendfile (self->socket, fd, &offset, length);

    if (n == 0 || (n < 0 && errno != EINTR))
      return FALSE;
    length -= (gsize) MAX (n, 0);
  }
  return TRUE;
}

// Serves until the reader asks for nothing for a moment. Returns FALSE if it never will.
static gboolean
serve (Server *self)
{
  struct pollfd next = { self->socket, POLLIN, 0 };
  BytesRequest request;

  while (poll (&next, 1, NEXT_MS) != 0) {
    if (recv (self->socket, &request, sizeof request, MSG_WAITALL) != sizeof request)
      return FALSE;
    if (!(request.length == 0 ? answer (self, (gint64) self->bytes->size)
                              : send_bytes (self, &request)))
      return FALSE;
  }
  return TRUE;
}

static void
server_free (Server *self)
{
  store_region_free (self->region);
  store_region_free (self->next);
  store_bytes_unref (self->bytes);
  close (self->socket);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  loop_leave (&self->watch);
}

static Server *
server_of (LoopWatch *watch)
{
  return (Server *) ((guint8 *) watch - G_STRUCT_OFFSET (Server, watch));
}

static void
on_left (LoopWatch *watch)
{
  g_free (server_of (watch));
}

// Reading waits for a disk, so each title that is read has a thread; the others have none.
static void
work (gpointer server)
{
  Server *self = server;

  // Once it waits for the next request, another thread may have the server.
  if (!serve (self) || !loop_watch (&self->watch, 0, self->socket, EPOLLIN | EPOLLONESHOT)) {
    store_bytes_leave (self->bytes);
    server_free (self);
  }
}

static void
on_request (LoopWatch *watch, guint number, guint32 events)
{
  thread_run ("title-bytes", work, server_of (watch));
}

int
bytes_socket_new (StoreBytes *bytes)
{
  static const LoopOps ops = { .ready = on_request, .left = on_left };
  Server *self;
  int pair[2], wrong;

  if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
    return -1;
  self = g_new0 (Server, 1);
  self->bytes = store_bytes_ref (bytes);
  self->socket = pair[0];
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  loop_join (title_loop_get (), &self->watch, &ops);
  if (loop_watch (&self->watch, 0, self->socket, EPOLLIN | EPOLLONESHOT))
    return pair[1];
  wrong = errno;
  server_free (self);
  close (pair[1]);
  errno = wrong;
  return -1;
}

int
bytes_socket_open (StoreBytes *bytes, guint64 *size, GError **error)
{
  int fd = -1;

  if (!bytes)
    return -1;
  if (size)
    *size = bytes->size;
  if (store_bytes_enter (bytes, 0, error)) {
    fd = bytes_socket_new (bytes);
    if (fd < 0) {
      g_set_error_literal (
          error, G_IO_ERROR, (gint) g_io_error_from_errno (errno), g_strerror (errno));
      store_bytes_leave (bytes);
    }
  }
  store_bytes_unref (bytes);
  return fd;
}
