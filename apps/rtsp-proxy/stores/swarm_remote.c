// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stores/swarm_remote.h"

#include <errno.h>
#include <gio/gio.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "stores/swarm_link.h"
#include "stores/swarm_wire.h"

// A read goes on in further processes for so long after the first one has ended.
#define AGAIN_US (15 * G_USEC_PER_SEC)
// The worker says something for each SWARM_WIRE_CHUNK bytes, which are of 5 pieces at most; it
// waits for each one for the time-out.
#define PIECES 5
#define GRACE_S 30 // in which a worker starts, or is found to hang

struct _SwarmRemote {
  SwarmLink *link;
  guint timeout_s;
  gint socket; // of the link; -1: none
  gboolean open;
  guint64 size;
  guint8 *scratch; // WIRE_MAX bytes
};

typedef enum {
  RESULT_OK,
  RESULT_FAILED, // the worker says why
  RESULT_GONE,   // there is no worker any more
} Result;

static Result
blame (SwarmRemote *self, const gchar *why)
{
  swarm_link_blame (self->link, why);
  return RESULT_GONE;
}

// Waits for a message of the worker. `message->bytes` is in the scratch.
static Result
receive (SwarmRemote *self, SwarmWireType type, SwarmWireMessage *message, GError **error)
{
  struct pollfd fd = { self->socket, POLLIN, 0 };
  const gint64 until_us =
      g_get_monotonic_time () + (self->timeout_s * PIECES + GRACE_S) * G_USEC_PER_SEC;
  gssize n;

  for (;;) {
    const gint64 left_us = until_us - g_get_monotonic_time ();
    const gint ready = left_us > 0 ? poll (&fd, 1, (gint) (left_us / 1000 + 1)) : 0;

    if (left_us <= 0)
      return blame (self, "was killed: it did not answer a reader of a title");
    if (ready <= 0)
      continue;
    n = recv (self->socket, self->scratch, WIRE_MAX, MSG_DONTWAIT);
    if (n > 0)
      break;
    if (n == 0 || (errno != EINTR && errno != EAGAIN))
      return RESULT_GONE;
  }
  if (!swarm_wire_read (self->scratch, (gsize) n, message))
    return blame (self, "was killed: it sent a malformed message");
  if (message->type == SWARM_WIRE_FAILED) {
    g_propagate_error (error, message->error);
    return RESULT_FAILED;
  }
  return message->type == type ? RESULT_OK
                               : blame (self, "was killed: it sent a malformed message");
}

static Result
open_title (SwarmRemote *self, GError **error)
{
  SwarmWireMessage message;
  Result result;

  self->socket = swarm_link_connect (self->link);
  if (self->socket < 0) {
    g_set_error (error, G_IO_ERROR, (gint) g_io_error_from_errno (errno),
        "a title of a swarm cannot be read: %s", g_strerror (errno));
    return RESULT_FAILED;
  }
  result = receive (self, SWARM_WIRE_OPENED, &message, error);
  if (result != RESULT_OK)
    return result;
  if (message.number == 0 || (self->size > 0 && message.number != self->size))
    return blame (self, "was killed: it gave a title another size");
  self->size = message.number;
  self->open = TRUE;
  return RESULT_OK;
}

static Result
ask (SwarmRemote *self, guint64 offset, gsize length)
{
  g_autofree WireMessage *message = g_new (WireMessage, 1);
  gssize sent;

  swarm_wire_put_read (message, offset, (guint32) length);
  do
    sent = send (self->socket, message->data, message->len, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent < 0 ? RESULT_GONE : RESULT_OK;
}

// Reads what is there before the worker ends, if it does. Adds to `*got`.
static Result
read_some (
    SwarmRemote *self, guint64 offset, guint8 *bytes, gsize length, gsize *got, GError **error)
{
  SwarmWireMessage message;
  Result result = self->open ? RESULT_OK : open_title (self, error);

  if (result == RESULT_OK)
    result = ask (self, offset + *got, length - *got);
  while (result == RESULT_OK && *got < length) {
    result = receive (self, SWARM_WIRE_BYTES, &message, error);
    if (result != RESULT_OK)
      break;
    if (message.length == 0 || message.length > length - *got)
      return blame (self, "was killed: it sent a malformed message");
    memcpy (bytes + *got, message.bytes, message.length);
    *got += message.length;
  }
  return result;
}

static void
set_gone (SwarmRemote *self, GError **error)
{
  g_autofree gchar *reason = swarm_link_dup_reason (self->link);

  g_set_error (error, G_IO_ERROR, G_IO_ERROR_PROXY_FAILED, "the swarm cannot be read: %s",
      reason ? reason : "its worker process does not start");
}

// Reads, if necessary in one process after the other, or only opens the title if `length` is 0.
static gboolean
persist (SwarmRemote *self, guint64 offset, guint8 *bytes, gsize length, GError **error)
{
  gint64 until_us = 0;
  gsize got = 0;
  Result result;

  do {
    result = length > 0 ? read_some (self, offset, bytes, length, &got, error)
                        : open_title (self, error);
    if (result != RESULT_GONE)
      return result == RESULT_OK;
    self->open = FALSE;
    if (until_us == 0)
      until_us = g_get_monotonic_time () + AGAIN_US;
  } while (g_get_monotonic_time () < until_us);
  set_gone (self, error);
  return FALSE;
}

gsize
swarm_remote_read (SwarmRemote *self, guint64 offset, guint8 *bytes, gsize length, GError **error)
{
  length = (gsize) MIN (length, self->size - MIN (offset, self->size));
  length = MIN (length, SWARM_WIRE_READ_MAX);
  return length > 0 && persist (self, offset, bytes, length, error) ? length : 0;
}

// ---- lifetime ----

guint64
swarm_remote_get_size (const SwarmRemote *self)
{
  return self->size;
}

void
swarm_remote_rest (SwarmRemote *self)
{
  swarm_link_rest (self->link);
  g_clear_pointer (&self->scratch, g_free);
}

void
swarm_remote_get_figures (SwarmRemote *self, StoreSwarmTitle *figures)
{
  swarm_link_get_figures (self->link, figures);
}

SwarmRemote *
swarm_remote_new (const SwarmReaderTitle *title, guint64 rate, guint timeout_s, GError **error)
{
  SwarmRemote *self = g_new0 (SwarmRemote, 1);

  self->link = swarm_link_new (title, rate, timeout_s);
  self->timeout_s = timeout_s;
  self->socket = -1;
  self->scratch = g_malloc (WIRE_MAX);
  if (persist (self, 0, NULL, 0, error))
    return self;
  swarm_remote_free (self);
  return NULL;
}

void
swarm_remote_free (SwarmRemote *self)
{
  swarm_link_free (self->link);
  g_free (self->scratch);
  g_free (self);
}
