// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/srt/srt_link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define MESSAGES_MAX 256   // before the thread looks after others
#define WAITING_MAX 100000 // commands; an honest worker leaves three for each caller at most

typedef struct {
  SrtCommand command;
  guint32 id;
  gint fd;
} Waiting;

struct _SrtLink {
  gint commands, questions;
  guint32 events[2]; // that the loop waits for
  gboolean over;     // the worker has closed a socket
  gboolean stuck;    // it leaves too many commands unread
  GQueue waiting;    // of Waiting
  WireMessage message;
  guint8 data[WIRE_MAX];
};

SrtLink *
srt_link_new (gint commands, gint questions)
{
  SrtLink *self = g_new0 (SrtLink, 1);

  self->commands = commands;
  self->questions = questions;
  g_queue_init (&self->waiting);
  return self;
}

static void
waiting_free (gpointer data)
{
  Waiting *waiting = data;

  if (waiting->fd >= 0)
    close (waiting->fd);
  g_free (waiting);
}

void
srt_link_free (SrtLink *self)
{
  g_queue_clear_full (&self->waiting, waiting_free);
  close (self->commands);
  close (self->questions);
  g_free (self);
}

// Returns FALSE if the socket is full. A socket that has broken takes everything: the worker has
// ended.
static gboolean
put (SrtLink *self, SrtCommand command, guint32 id, gint fd)
{
  union {
    struct cmsghdr head;
    guint8 space[CMSG_SPACE (sizeof (gint))];
  } control = { 0 };
  struct iovec bytes;
  struct msghdr message = { .msg_iov = &bytes, .msg_iovlen = 1 };

  srt_wire_put_command (&self->message, command, id);
  bytes = (struct iovec) { self->message.data, self->message.len };
  if (fd >= 0) {
    message.msg_control = &control;
    message.msg_controllen = sizeof control;
    control.head.cmsg_level = SOL_SOCKET;
    control.head.cmsg_type = SCM_RIGHTS;
    control.head.cmsg_len = CMSG_LEN (sizeof fd);
    memcpy (CMSG_DATA (&control.head), &fd, sizeof fd);
  }
  return sendmsg (self->commands, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0
         || (errno != EAGAIN && errno != EINTR);
}

void
srt_link_send (SrtLink *self, SrtCommand command, guint32 id, gint fd)
{
  Waiting *waiting;

  if (g_queue_is_empty (&self->waiting) && put (self, command, id, fd))
    return;
  self->stuck |= g_queue_get_length (&self->waiting) >= WAITING_MAX;
  if (self->stuck)
    return;
  waiting = g_new (Waiting, 1);
  *waiting = (Waiting) { command, id, fd >= 0 ? fcntl (fd, F_DUPFD_CLOEXEC, 0) : -1 };
  g_queue_push_tail (&self->waiting, waiting);
}

static void
flush (SrtLink *self)
{
  Waiting *first;

  while ((first = g_queue_peek_head (&self->waiting))
         && put (self, first->command, first->id, first->fd))
    waiting_free (g_queue_pop_head (&self->waiting));
}

void
srt_link_answer (SrtLink *self, guint32 id, guint16 code)
{
  srt_wire_put_verdict (&self->message, id, code);
  // A worker that asks once at a time has room for the answer.
  if (send (self->questions, self->message.data, self->message.len, MSG_DONTWAIT | MSG_NOSIGNAL)
      < 0)
    return;
}

void
srt_link_watch (SrtLink *self, LoopWatch *watch)
{
  const gint fds[] = { self->commands, self->questions };
  const guint32 out = g_queue_is_empty (&self->waiting) ? 0 : EPOLLOUT;
  // A socket that has ended would be ready all the time until the main thread hears of the worker.
  const guint32 wanted[] = { self->over ? 0 : EPOLLIN | out, self->over ? 0 : EPOLLIN };

  for (guint i = 0; i < G_N_ELEMENTS (fds); i++) {
    if (wanted[i] != self->events[i] && loop_watch (watch, i, fds[i], wanted[i]))
      self->events[i] = wanted[i];
  }
}

// Reads what the worker says of callers. Sets `*n` to the number of messages.
static gboolean
hear (SrtLink *self, const SrtWireHandler *handler, gpointer owner, guint *n)
{
  SrtWireHandler of_callers = *handler;

  of_callers.handshake = NULL;
  for (*n = 0; *n < MESSAGES_MAX; ++*n) {
    gssize len = recv (self->commands, self->data, sizeof self->data, MSG_DONTWAIT);

    self->over |= len == 0;
    if (len <= 0)
      return TRUE;
    if (!srt_wire_read (self->data, (gsize) len, &of_callers, owner))
      return FALSE;
  }
  return TRUE;
}

gboolean
srt_link_run (SrtLink *self, const SrtWireHandler *handler, gpointer owner, gboolean *heard)
{
  const SrtWireHandler question = { .handshake = handler->handshake };
  guint8 asked[1024];
  gssize len = recv (self->questions, asked, sizeof asked, MSG_DONTWAIT);
  gboolean ok;
  guint n;

  self->over |= len == 0;
  flush (self);
  ok = hear (self, handler, owner, &n) && !self->stuck;
  *heard = n > 0;
  return ok && (len <= 0 || srt_wire_read (asked, (gsize) len, &question, owner));
}

void
srt_link_finish (SrtLink *self, guint limit_ms)
{
  gint64 until = g_get_monotonic_time () + limit_ms * G_GINT64_CONSTANT (1000), left;
  gssize n = 1;

  flush (self);
  shutdown (self->commands, SHUT_WR);
  while ((n > 0 || (n < 0 && errno == EAGAIN)) && (left = until - g_get_monotonic_time ()) > 0) {
    struct pollfd fd = { self->commands, POLLIN, 0 };

    if (poll (&fd, 1, (gint) (left / 1000) + 1) > 0)
      n = recv (self->commands, self->data, sizeof self->data, MSG_DONTWAIT);
    else
      n = 0;
  }
}
