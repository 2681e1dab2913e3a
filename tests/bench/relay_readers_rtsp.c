// SPDX-License-Identifier: LGPL-2.1-or-later
#include "relay_readers.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ingest/udp.h"
#include "relay_wire.h"

#define PATIENCE_NS (20 * RELAY_S) // for an answer
#define RETRY_NS RELAY_S
#define BUFFER (4 << 20)

static unsigned n_failures;

// ---- sockets ----

static int
open_udp (unsigned port, bool media)
{
  WeirAddress any = { .v4 = { .sin_family = AF_INET, .sin_port = htons ((in_port_t) port) } };
  int fd = weir_udp_open (&any, 0, media ? BUFFER : 0, media);

  if (fd < 0) {
    errno = -fd;
    err (1, "UDP port %u", port);
  }
  return fd;
}

void
reader_open (Reader *self, unsigned n_tracks, unsigned port)
{
  self->fd = -1;
  self->in = malloc (RELAY_MESSAGE_MAX);
  if (!self->in)
    err (1, "memory");
  self->n_tracks = n_tracks;
  for (unsigned i = 0; i < n_tracks; i++) {
    self->tracks[i].port = port + 2 * i;
    self->tracks[i].rtp = open_udp (port + 2 * i, true);
    self->tracks[i].rtcp = open_udp (port + 2 * i + 1, false);
    readers_watch (self->tracks[i].rtp, WATCH_RTP, self, i);
    readers_watch (self->tracks[i].rtcp, WATCH_RTCP, self, i);
  }
}

unsigned
readers_failures (void)
{
  return n_failures;
}

static void
hang_up (Reader *self)
{
  if (self->fd >= 0)
    close (self->fd);
  self->fd = -1;
}

void
reader_retry (Reader *self, int64_t now_ns)
{
  n_failures++;
  hang_up (self);
  self->state = READER_WAITS;
  self->due_ns = now_ns + RETRY_NS;
}

// ---- requests ----

static void request (Reader *self, const char *format, ...) __attribute__ ((format (printf, 2, 3)));

static void
request (Reader *self, const char *format, ...)
{
  char text[2048];
  va_list args;
  int n;

  va_start (args, format);
  n = vsnprintf (text, sizeof text, format, args);
  va_end (args);
  // A request is short, and the connection idle: it has room. A failure shows when it is read.
  send (self->fd, text, (size_t) n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void
reader_connect (Reader *self, const struct sockaddr_in *server, int64_t now_ns)
{
  self->fd = socket (AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (self->fd < 0)
    err (1, "socket");
  self->in_len = 0;
  self->session[0] = '\0';
  self->due_ns = now_ns + PATIENCE_NS;
  self->state = READER_CONNECTS;
  if (connect (self->fd, (const struct sockaddr *) server, sizeof *server) < 0
      && errno != EINPROGRESS)
    reader_retry (self, now_ns);
  else
    readers_watch (self->fd, WATCH_CONTROL, self, 0);
}

static void
set_up_or_play (Reader *self)
{
  const ReaderTrack *track = &self->tracks[self->at];
  char session[160] = "";

  if (self->session[0])
    snprintf (session, sizeof session, "Session: %s\r\n", self->session);
  if (self->at < self->n_tracks) {
    self->state = READER_SETS_UP;
    request (self,
        "SETUP %s RTSP/1.0\r\nCSeq: %u\r\nTransport: RTP/AVP;unicast;client_port=%u-%u\r\n%s\r\n",
        track->control, 2 + self->at, track->port, track->port + 1, session);
  } else {
    self->state = READER_STARTS;
    request (
        self, "PLAY %s RTSP/1.0\r\nCSeq: 9\r\nRange: npt=0.000-\r\n%s\r\n", self->base, session);
  }
}

// Takes the tracks of an SDP. Returns false if it has too few.
static bool
take_sdp (Reader *self, char *sdp)
{
  unsigned n = 0;

  for (char *media = strstr (sdp, "\nm="); media && n < self->n_tracks; n++) {
    char *next = strstr (media + 1, "\nm="), *control = strstr (media, "\na=control:");
    char text[256];

    if (!control || (next && control > next) || sscanf (control + 11, "%255s", text) != 1)
      return false;
    if (strncmp (text, "rtsp://", 7) == 0)
      snprintf (self->tracks[n].control, sizeof self->tracks[n].control, "%s", text);
    else
      snprintf (self->tracks[n].control, sizeof self->tracks[n].control, "%.254s%s%s", self->base,
          self->base[strlen (self->base) - 1] == '/' ? "" : "/", text);
    media = next;
  }
  return n == self->n_tracks;
}

static bool
on_described (Reader *self, const char *message, size_t len)
{
  char sdp[RELAY_MESSAGE_MAX + 1];

  if (!relay_header (message, len, "Content-Base", self->base, sizeof self->base))
    memcpy (self->base, self->url, sizeof self->base);
  memcpy (sdp, message, len);
  sdp[len] = '\0';
  return take_sdp (self, sdp);
}

// A server may stop if it hears nothing from the ports that a reader names.
static void
show_life (const ReaderTrack *track)
{
  static const uint8_t report[] = { 0x80, 201, 0, 1, 0, 0, 0, 1 };

  sendto (track->rtcp, report, sizeof report, MSG_DONTWAIT,
      (const struct sockaddr *) &track->rtcp_to, sizeof track->rtcp_to);
}

static bool
on_set_up (Reader *self, const char *message, size_t len)
{
  ReaderTrack *track = &self->tracks[self->at];
  socklen_t size = sizeof track->rtcp_to;
  char text[512];
  const char *ports;
  unsigned a, b;

  relay_header (message, len, "Transport", text, sizeof text);
  ports = strstr (text, "server_port=");
  if (!ports || sscanf (ports, "server_port=%u-%u", &a, &b) != 2)
    return false;
  getpeername (self->fd, (struct sockaddr *) &track->rtcp_to, &size);
  track->rtcp_to.sin_port = htons ((in_port_t) b);
  show_life (track);
  relay_header (message, len, "Session", self->session, sizeof self->session);
  self->session[strcspn (self->session, ";")] = '\0';
  self->at++;
  return true;
}

// Takes an answer. Returns false if the session fails.
static bool
on_answer (Reader *self, const char *message, size_t len, int64_t now_ns)
{
  unsigned status;

  if (message[0] == '$' || self->state == READER_PLAYS)
    return true;
  if (sscanf (message, "RTSP/1.0 %u", &status) != 1 || status != 200)
    return false;
  self->due_ns = now_ns + PATIENCE_NS;
  if (self->state == READER_DESCRIBES) {
    self->at = 0;
    if (!on_described (self, message, len))
      return false;
    set_up_or_play (self);
  } else if (self->state == READER_SETS_UP) {
    if (!on_set_up (self, message, len))
      return false;
    set_up_or_play (self);
  } else {
    self->state = READER_PLAYS;
    self->due_ns = INT64_MAX;
  }
  return true;
}

static bool
read_answers (Reader *self, int64_t now_ns)
{
  ssize_t n = recv (self->fd, self->in + self->in_len, RELAY_MESSAGE_MAX - 1 - self->in_len, 0);
  size_t at = 0;

  if (n <= 0)
    return n < 0 && errno == EAGAIN;
  self->in_len += (size_t) n;
  self->in[self->in_len] = '\0';
  while ((n = relay_message_len (self->in + at, self->in_len - at)) > 0) {
    if (!on_answer (self, self->in + at, (size_t) n, now_ns))
      return false;
    at += (size_t) n;
  }
  self->in_len -= at;
  memmove (self->in, self->in + at, self->in_len);
  return n == 0;
}

void
reader_on_control (Reader *self, int64_t now_ns)
{
  int error = 0;
  socklen_t size = sizeof error;

  getsockopt (self->fd, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    reader_retry (self, now_ns);
  } else if (self->state == READER_CONNECTS) {
    self->state = READER_DESCRIBES;
    request (self, "DESCRIBE %s RTSP/1.0\r\nCSeq: 1\r\nAccept: application/sdp\r\n\r\n", self->url);
  } else if (!read_answers (self, now_ns)) {
    reader_retry (self, now_ns);
  }
}

void
reader_tear_down (Reader *self)
{
  if (self->state == READER_PLAYS)
    request (
        self, "TEARDOWN %s RTSP/1.0\r\nCSeq: 10\r\nSession: %s\r\n\r\n", self->base, self->session);
  hang_up (self);
  self->state = READER_WAITS;
  self->due_ns = INT64_MAX;
}
