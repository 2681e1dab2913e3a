// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "http_call.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

void
http_call_init (HttpCall *self, int epoll, guint64 tag)
{
  *self = (HttpCall) { .epoll = epoll, .tag = tag, .fd = -1, .out = g_string_new (NULL) };
  http_reply_init (&self->reply);
}

static HttpCallState
end (HttpCall *self, const gchar *problem)
{
  if (self->fd >= 0)
    close (self->fd);
  self->fd = -1;
  self->problem = problem;
  self->state = problem ? HTTP_CALL_FAILED : HTTP_CALL_DONE;
  return self->state;
}

void
http_call_clear (HttpCall *self)
{
  end (self, NULL);
  http_reply_clear (&self->reply);
  g_string_free (self->out, TRUE);
}

static void
watch (HttpCall *self, int operation)
{
  struct epoll_event event = { .events = EPOLLIN, .data.u64 = self->tag };

  if (self->connecting || self->out->len > 0)
    event.events |= EPOLLOUT;
  epoll_ctl (self->epoll, operation, self->fd, &event);
}

HttpCallState
http_call_begin (HttpCall *self, const Target *target, const gchar *method, const gchar *path,
    const gchar *fields, const gchar *body)
{
  end (self, NULL);
  self->state = HTTP_CALL_OPEN;
  http_reply_reset (&self->reply, TRUE);
  g_string_printf (self->out, "%s %s HTTP/1.1\r\n", method, path);
  target_add_fields (target, self->out);
  g_string_append_printf (self->out, "Connection: close\r\nContent-Length: %zu\r\n%s\r\n%s",
      strlen (body), fields, body);
  self->fd = target_connect (target);
  if (self->fd < 0)
    return end (self, g_strerror (errno));
  self->connecting = TRUE;
  watch (self, EPOLL_CTL_ADD);
  return self->state;
}

static HttpCallState
write_on (HttpCall *self)
{
  gssize n = send (self->fd, self->out->str, self->out->len, MSG_NOSIGNAL | MSG_DONTWAIT);

  if (n < 0 && errno != EAGAIN && errno != EINTR)
    return end (self, g_strerror (errno));
  if (n > 0)
    g_string_erase (self->out, 0, n);
  if (self->out->len == 0)
    watch (self, EPOLL_CTL_MOD);
  return self->state;
}

static HttpCallState
read_on (HttpCall *self)
{
  gchar room[4096];
  gboolean done = FALSE;
  gssize n = recv (self->fd, room, sizeof room, MSG_DONTWAIT);

  if (n < 0)
    return errno == EAGAIN || errno == EINTR ? self->state : end (self, g_strerror (errno));
  if (n == 0)
    return end (self, "the server closed the connection");
  if (http_reply_read (&self->reply, room, (gsize) n, &done) < 0)
    return end (self, "the answer is malformed");
  return done ? end (self, NULL) : self->state;
}

HttpCallState
http_call_on_event (HttpCall *self)
{
  int error = 0;
  socklen_t len = sizeof error;

  if (self->fd < 0)
    return self->state;
  if (self->connecting) {
    getsockopt (self->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    self->connecting = FALSE;
    if (error)
      return end (self, g_strerror (error));
  }
  if (self->out->len > 0 && write_on (self) != HTTP_CALL_OPEN)
    return self->state;
  return read_on (self);
}
