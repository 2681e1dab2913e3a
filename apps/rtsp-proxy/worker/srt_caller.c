// SPDX-License-Identifier: LGPL-2.1-or-later
#include "worker/srt_caller.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/part_writer.h"

#define MESSAGES_MAX 64 // before others get their turn
#define DATAGRAM 1316   // of seven packets of a transport stream, as all SRT callers expect

struct _SrtCaller {
  SRTSOCKET socket;
  gint epoll;
  SrtCommand what; // 0: the proxy has not decided
  gint fd;         // -1: not yet
  PartWriter writer;
  guint64 overflow;
  gboolean blocked; // libsrt takes nothing now
  guint8 message[DATAGRAM];
  gsize used;
};

static void
watch (SrtCaller *self, int events)
{
  srt_epoll_update_usock (self->epoll, self->socket, &events);
}

SrtCaller *
srt_caller_new (SRTSOCKET socket, gint epoll)
{
  SrtCaller *self = g_new0 (SrtCaller, 1);
  int events = SRT_EPOLL_ERR;

  self->socket = socket;
  self->epoll = epoll;
  self->fd = -1;
  srt_epoll_add_usock (epoll, socket, &events);
  return self;
}

static void
watch_fd (SrtCaller *self)
{
  int events = SRT_EPOLL_IN;

  srt_epoll_add_ssock (self->epoll, self->fd, &events);
}

void
srt_caller_begin (SrtCaller *self, SrtCommand what, gint fd)
{
  if (self->what) {
    close (fd);
    return;
  }
  self->what = what;
  self->fd = fd;
  if (what == SRT_COMMAND_PUBLISH)
    part_writer_init (&self->writer, fd);
  else
    watch_fd (self);
  watch (self, SRT_EPOLL_IN | SRT_EPOLL_ERR);
}

// ---- publishing ----

static gboolean
take_all (SrtCaller *self, SrtEnd *end)
{
  char bytes[SRT_LIVE_MAX_PLSIZE];

  *end = SRT_END_GONE;
  for (guint i = 0; i < MESSAGES_MAX; i++) {
    int n = srt_recvmsg (self->socket, bytes, sizeof bytes);

    if (n <= 0)
      return n < 0 && srt_getlasterror (NULL) == SRT_EASYNCRCV;
    if (!part_writer_write (&self->writer, (const guint8 *) bytes, (gsize) n))
      self->overflow++;
  }
  return TRUE;
}

// ---- reading ----

// Waits until libsrt takes more; the window of the stream holds the rest meanwhile.
static void
set_blocked (SrtCaller *self, gboolean blocked)
{
  if (blocked == self->blocked)
    return;
  self->blocked = blocked;
  watch (self, SRT_EPOLL_IN | SRT_EPOLL_ERR | (blocked ? SRT_EPOLL_OUT : 0));
  if (blocked)
    srt_epoll_remove_ssock (self->epoll, self->fd);
  else
    watch_fd (self);
}

// Returns TRUE if the message is full.
static gboolean
fill (SrtCaller *self, gboolean *over)
{
  gssize n;

  if (self->used == DATAGRAM)
    return TRUE;
  n = recv (self->fd, self->message + self->used, DATAGRAM - self->used, MSG_DONTWAIT);
  *over = n == 0;
  self->used += (gsize) MAX (n, 0);
  return self->used == DATAGRAM;
}

static gboolean
send_all (SrtCaller *self, SrtEnd *end)
{
  gboolean over = FALSE;

  for (guint i = 0; i < MESSAGES_MAX && fill (self, &over); i++) {
    if (srt_sendmsg (self->socket, (const char *) self->message, DATAGRAM, -1, 0) < 0) {
      set_blocked (self, TRUE);
      *end = SRT_END_GONE;
      return srt_getlasterror (NULL) == SRT_EASYNCSND;
    }
    self->used = 0;
  }
  set_blocked (self, FALSE);
  *end = SRT_END_OVER;
  return !over;
}

// A reader that sends would fill the receive buffer.
static gboolean
check_silence (SrtCaller *self, SrtEnd *end)
{
  char bytes[SRT_LIVE_MAX_PLSIZE];
  int n = srt_recvmsg (self->socket, bytes, sizeof bytes);

  *end = n > 0 ? SRT_END_SENDS : SRT_END_GONE;
  return n < 0 && srt_getlasterror (NULL) == SRT_EASYNCRCV;
}

// ---- both ----

gboolean
srt_caller_run (SrtCaller *self, SrtEnd *end)
{
  if (self->what == SRT_COMMAND_PUBLISH)
    return take_all (self, end);
  if (self->what == SRT_COMMAND_READ)
    return check_silence (self, end) && send_all (self, end);
  *end = SRT_END_GONE;
  return srt_getsockstate (self->socket) < SRTS_BROKEN;
}

void
srt_caller_sample (SrtCaller *self, SrtSample *sample)
{
  gboolean reads = self->what == SRT_COMMAND_READ;
  SRT_TRACEBSTATS stats;

  *sample = (SrtSample) { .id = (guint32) self->socket, .overflow = self->overflow };
  if (srt_bistats (self->socket, &stats, 0, 1) < 0)
    return;
  sample->late = (guint64) (reads ? stats.pktSndDropTotal : stats.pktRcvDropTotal);
  sample->sent = (guint64) stats.pktSentUniqueTotal;
}

gint
srt_caller_get_fd (const SrtCaller *self)
{
  return self->what == SRT_COMMAND_READ ? self->fd : -1;
}

void
srt_caller_free (SrtCaller *self)
{
  if (self->what == SRT_COMMAND_READ && !self->blocked)
    srt_epoll_remove_ssock (self->epoll, self->fd);
  srt_epoll_remove_usock (self->epoll, self->socket);
  srt_close (self->socket);
  if (self->fd >= 0)
    close (self->fd);
  part_writer_clear (&self->writer);
  g_free (self);
}
