// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/http/http_passer.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define AT_ONCE (4 * 1024 * 1024) // bytes before other connections have their turn

void
http_passer_init (HttpPasser *self, const GString *head, HttpReply *reply)
{
  *self = (HttpPasser) { .head = head, .reply = reply, .ended = !reply };
}

void
http_passer_clear (HttpPasser *self)
{
  for (guint i = 0; i < self->n_blocks; i++)
    g_bytes_unref (self->blocks[i]);
  self->n_blocks = 0;
}

static void
take_blocks (HttpPasser *self)
{
  while (!self->ended && self->n_blocks < HTTP_PASSER_BLOCKS) {
    GBytes *block = self->reply->ops->next (self->reply, &self->ended);

    if (!block)
      return;
    self->blocks[self->n_blocks++] = block;
  }
}

static int
fill (const HttpPasser *self, struct iovec *parts)
{
  gsize skipped = self->at, size;
  int n = 0;

  if (self->head_at < self->head->len)
    parts[n++] =
        (struct iovec) { self->head->str + self->head_at, self->head->len - self->head_at };
  for (guint i = 0; i < self->n_blocks; i++) {
    const guint8 *data = g_bytes_get_data (self->blocks[i], &size);

    if (size > skipped)
      parts[n++] = (struct iovec) { (guint8 *) data + skipped, size - skipped };
    skipped = 0;
  }
  return n;
}

// Takes out what has been sent, and blocks without bytes.
static void
note_sent (HttpPasser *self, gsize n)
{
  gsize head = MIN (n, self->head->len - self->head_at);
  guint done = 0;

  self->head_at += head;
  self->at += n - head;
  self->sent += n - head;
  if (n > head && self->reply->ops->sent)
    self->reply->ops->sent (self->reply, n - head);
  while (done < self->n_blocks && self->at >= g_bytes_get_size (self->blocks[done])) {
    self->at -= g_bytes_get_size (self->blocks[done]);
    g_bytes_unref (self->blocks[done++]);
  }
  self->n_blocks -= done;
  memmove (self->blocks, self->blocks + done, self->n_blocks * sizeof *self->blocks);
}

HttpPasserState
http_passer_run (HttpPasser *self, int socket)
{
  struct iovec parts[1 + HTTP_PASSER_BLOCKS];

  for (guint64 limit = self->sent + AT_ONCE; self->sent < limit;) {
    struct msghdr message = { .msg_iov = parts };
    gssize n = 0;

    take_blocks (self);
    message.msg_iovlen = (gsize) fill (self, parts);
    if (message.msg_iovlen == 0 && self->n_blocks == 0)
      return self->ended ? HTTP_PASSER_DONE : HTTP_PASSER_AGAIN;
    if (message.msg_iovlen > 0)
      do
        n = sendmsg (socket, &message, MSG_NOSIGNAL);
      while (n < 0 && errno == EINTR);
    if (n < 0)
      return errno == EAGAIN ? HTTP_PASSER_FULL : HTTP_PASSER_GONE;
    note_sent (self, (gsize) n);
  }
  return HTTP_PASSER_TURN;
}
