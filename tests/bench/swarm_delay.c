// SPDX-License-Identifier: LGPL-2.1-or-later
// One thread reads from all connections, and sends what it has read when its time has come.
#include "swarm_delay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define READ_BYTES 65536
#define EVENTS 64

typedef struct End End;

// A socket: one end of a connection, or one that listens.
struct End {
  int fd;
  const SwarmDelay *delay;
  End *other;       // NULL: it listens
  GByteArray *rest; // bytes whose time has come, and that the socket has no room for
  guint32 events;   // that are waited for
  gboolean ended;
};

typedef struct {
  gint64 due_us;
  End *to;
  gsize length; // 0: the connection ends
  guint8 bytes[];
} Chunk;

static int epoll;
static GQueue late = G_QUEUE_INIT; // of Chunk, in order of their times

static End *
end_new (int fd, const SwarmDelay *delay)
{
  End *self = g_new0 (End, 1);
  struct epoll_event event = { .events = EPOLLIN, .data.ptr = self };

  self->fd = fd;
  self->delay = delay;
  self->events = EPOLLIN;
  self->rest = g_byte_array_new ();
  if (epoll_ctl (epoll, EPOLL_CTL_ADD, fd, &event) != 0)
    g_error ("swarm_delay: epoll_ctl: %s", g_strerror (errno));
  return self;
}

static void
end_free (End *self)
{
  close (self->fd);
  g_byte_array_unref (self->rest);
  g_free (self);
}

// Nothing is read for an end that does not take what it has.
static void
watch (End *self)
{
  struct epoll_event event = { .data.ptr = self };

  event.events = (self->other->rest->len == 0 ? EPOLLIN : 0) | (self->rest->len > 0 ? EPOLLOUT : 0);
  if (self->ended || event.events == self->events)
    return;
  self->events = event.events;
  epoll_ctl (epoll, EPOLL_CTL_MOD, self->fd, &event);
}

static void
take_late (End *to, const guint8 *bytes, gsize length)
{
  Chunk *chunk = g_malloc (sizeof *chunk + length);
  GList *before = late.tail;

  chunk->due_us = g_get_monotonic_time () + to->delay->delay_us;
  chunk->to = to;
  chunk->length = length;
  if (length > 0)
    memcpy (chunk->bytes, bytes, length);
  while (before && ((const Chunk *) before->data)->due_us > chunk->due_us)
    before = before->prev;
  g_queue_insert_after (&late, before, chunk);
}

static void
accept_one (const End *listening)
{
  const int one = 1;
  struct sockaddr_in to = { .sin_family = AF_INET,
    .sin_port = g_htons (listening->delay->to),
    .sin_addr.s_addr = g_htonl (INADDR_LOOPBACK) };
  const int in = accept (listening->fd, NULL, NULL);
  const int out = in < 0 ? -1 : socket (AF_INET, SOCK_STREAM, 0);
  End *a, *b;

  if (out < 0 || connect (out, (struct sockaddr *) &to, sizeof to) != 0) {
    if (out >= 0)
      close (out);
    if (in >= 0)
      close (in);
    return;
  }
  setsockopt (in, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  setsockopt (out, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  a = end_new (in, listening->delay);
  b = end_new (out, listening->delay);
  a->other = b;
  b->other = a;
}

static void
read_some (End *self)
{
  static guint8 bytes[READ_BYTES];
  const gssize n = recv (self->fd, bytes, sizeof bytes, MSG_DONTWAIT);

  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  take_late (self->other, bytes, n > 0 ? (gsize) n : 0);
  if (n > 0)
    return;
  self->ended = self->other->ended = TRUE;
  epoll_ctl (epoll, EPOLL_CTL_DEL, self->fd, NULL);
  epoll_ctl (epoll, EPOLL_CTL_DEL, self->other->fd, NULL);
}

static void
send_rest (End *self)
{
  const gssize n = send (self->fd, self->rest->data, self->rest->len, MSG_DONTWAIT | MSG_NOSIGNAL);

  if (n > 0)
    g_byte_array_remove_range (self->rest, 0, (guint) n);
  else if (errno != EAGAIN && errno != EINTR)
    g_byte_array_set_size (self->rest, 0); // the connection is broken; its end will be read
  watch (self);
  watch (self->other);
}

static void
deliver (Chunk *chunk)
{
  End *to = chunk->to;

  if (chunk->length == 0) {
    end_free (to->other);
    end_free (to);
  } else {
    g_byte_array_append (to->rest, chunk->bytes, (guint) chunk->length);
    send_rest (to);
  }
  g_free (chunk);
}

static gpointer
run (gpointer data)
{
  struct epoll_event events[EVENTS];

  for (;;) {
    const Chunk *first = g_queue_peek_head (&late);
    const gint64 left_us = first ? MAX (first->due_us - g_get_monotonic_time (), 0) : 0;
    const struct timespec wait = { left_us / G_USEC_PER_SEC, left_us % G_USEC_PER_SEC * 1000 };
    const int n = epoll_pwait2 (epoll, events, EVENTS, first ? &wait : NULL, NULL);

    for (int i = 0; i < n; i++) {
      End *end = events[i].data.ptr;

      if (!end->other)
        accept_one (end);
      else if (!end->ended && (events[i].events & EPOLLOUT))
        send_rest (end);
      else if (!end->ended)
        read_some (end);
    }
    while (!g_queue_is_empty (&late)
           && ((const Chunk *) g_queue_peek_head (&late))->due_us <= g_get_monotonic_time ())
      deliver (g_queue_pop_head (&late));
  }
  return data;
}

void
swarm_delay_start (const SwarmDelay *delays, guint n)
{
  const int one = 1;

  epoll = epoll_create1 (EPOLL_CLOEXEC);
  for (guint i = 0; i < n; i++) {
    struct sockaddr_in address = { .sin_family = AF_INET,
      .sin_port = g_htons (delays[i].from),
      .sin_addr.s_addr = g_htonl (INADDR_LOOPBACK) };
    const int fd = socket (AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind (fd, (struct sockaddr *) &address, sizeof address) != 0 || listen (fd, 128) != 0)
      g_error ("swarm_delay: port %u: %s", delays[i].from, g_strerror (errno));
    end_new (fd, &delays[i]);
  }
  g_thread_unref (g_thread_new ("delay", run, NULL));
}
