// SPDX-License-Identifier: LGPL-2.1-or-later
// The upstream of the bench `relay`: one RTSP server of many streams, on one thread.
//
//     relay_origin ADDRESS:PORT RTP_PORT SHAPE [sound] [spread] [single] [late=MS]
//
// Serves the paths /s0, /s1, ... over UDP and TCP. SHAPE is a name of relay_shape.c. `sound` adds a
// track of sound. All streams send their frames at the same moments, keyframes included, or, with
// `spread`, at moments and with keyframes of their own. A frame is sent as one segmented send, as
// packets reach a socket behind a NIC that merges them, or, with `single`, packet by packet. Each
// request is answered at once, or MS later.
// Each session gets its own packets, stamped as relay_wire.h says.
//
// Prints READY when it listens, and every 0.1 s a line about that slot of CLOCK_MONOTONIC: sessions
// that play, packets sent, packets that could not be sent, how late the last frame was at most, and
// how many sessions wait for an answer.

#include "relay_origin.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "relay_wire.h"
#include "run/clock.h"

#define EVENTS 256
#define WAITING_MAX (1 << 20) // bytes that may wait on a connection
#define BUFFER (1 << 20)

static int epoll_fd, listen_fd;
static OriginSettings settings;
static uint32_t last_id;
static TAILQ_HEAD (, _OriginSession) waiting = TAILQ_HEAD_INITIALIZER (waiting);
static unsigned n_waiting;
static unsigned rtp_port;

// ---- connections ----

static void
watch (int fd, void *data, bool writing)
{
  struct epoll_event event = { .events = EPOLLIN | (writing ? EPOLLOUT : 0), .data.ptr = data };

  if (epoll_ctl (epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 && errno == EEXIST)
    epoll_ctl (epoll_fd, EPOLL_CTL_MOD, fd, &event);
}

void
origin_flush (OriginSession *self)
{
  ssize_t n = send (self->fd, self->out, self->out_len, MSG_DONTWAIT | MSG_NOSIGNAL);

  if (n > 0) {
    self->out_len -= (size_t) n;
    memmove (self->out, self->out + n, self->out_len);
  }
  if (self->out_len == 0)
    watch (self->fd, self, false);
}

bool
origin_write (OriginSession *self, const void *data, size_t len)
{
  ssize_t n = 0;

  if (self->out_len + len > WAITING_MAX)
    return false;
  if (self->out_len == 0)
    n = send (self->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
  n = n < 0 ? 0 : n;
  if ((size_t) n == len)
    return true;
  if (!self->out && !(self->out = malloc (WAITING_MAX)))
    err (1, "memory");
  memcpy (self->out + self->out_len, (const uint8_t *) data + n, len - (size_t) n);
  self->out_len += len - (size_t) n;
  watch (self->fd, self, true);
  return true;
}

// Has the session's request be answered later.
static void
postpone (OriginSession *self)
{
  self->due_ns = weir_now_ns () + settings.late_ns;
  TAILQ_INSERT_TAIL (&waiting, self, waiting);
  n_waiting++;
}

static void
stop_waiting (OriginSession *self)
{
  if (self->due_ns == 0)
    return;
  TAILQ_REMOVE (&waiting, self, waiting);
  self->due_ns = 0;
  n_waiting--;
}

static void
end_session (OriginSession *self)
{
  stop_waiting (self);
  origin_media_remove (self);
  close (self->fd);
  free (self->in);
  free (self->out);
  free (self);
}

static void
begin_session (void)
{
  int fd = accept4 (listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  OriginSession *self;

  if (fd < 0)
    return;
  self = calloc (1, sizeof *self);
  if (!self || !(self->in = malloc (RELAY_MESSAGE_MAX)))
    err (1, "memory");
  self->fd = fd;
  self->id = ++last_id;
  watch (fd, self, false);
}

// ---- requests ----

static void
answer (OriginSession *self, const char *request, size_t len, const char *status,
    const char *headers, const char *body)
{
  char text[4096], cseq[32];
  int n;

  relay_header (request, len, "CSeq", cseq, sizeof cseq);
  n = snprintf (text, sizeof text,
      "RTSP/1.0 %s\r\nCSeq: %s\r\nSession: %08u;timeout=60\r\n%sContent-Length: %zu\r\n\r\n%s",
      status, cseq, self->id, headers, strlen (body), body);
  origin_write (self, text, (size_t) n);
}

static void
describe (OriginSession *self, const char *request, size_t len, const char *url)
{
  char headers[1200], body[2048];

  snprintf (headers, sizeof headers, "Content-Type: application/sdp\r\nContent-Base: %s/\r\n", url);
  snprintf (body, sizeof body,
      "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=relay\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\n"
      "a=control:*\r\n%s",
      relay_sdp (settings.sound));
  answer (self, request, len, "200 OK", headers, body);
}

// Takes the ports or channels of a Transport header. Returns false if it has none.
static bool
take_transport (const OriginSession *self, OriginTrack *track, const char *transport)
{
  const char *at = strstr (transport, track->tcp ? "interleaved=" : "client_port=");
  socklen_t size = sizeof track->to;
  unsigned a, b;

  if (!at || sscanf (strchr (at, '=') + 1, "%u-%u", &a, &b) != 2)
    return false;
  track->channel = (uint8_t) a;
  getpeername (self->fd, (struct sockaddr *) &track->to, &size);
  track->to_rtcp = track->to;
  track->to.sin_port = htons ((in_port_t) a);
  track->to_rtcp.sin_port = htons ((in_port_t) b);
  return true;
}

static void
set_up (OriginSession *self, const char *request, size_t len, const char *url)
{
  const char *name = strstr (url, "/track");
  unsigned which = name && name[6] == '1' ? 1 : 0;
  OriginTrack *track = &self->tracks[which];
  char transport[256], headers[512];

  relay_header (request, len, "Transport", transport, sizeof transport);
  track->tcp = strstr (transport, "RTP/AVP/TCP") != NULL;
  if (self->playing || !name || which > settings.sound
      || !take_transport (self, track, transport)) {
    answer (self, request, len, "461 Unsupported Transport", "", "");
    return;
  }
  track->set_up = true;
  track->ssrc = (uint32_t) random ();
  track->first_ts = (uint32_t) random ();
  track->seq = (uint16_t) random ();
  // A header with other parameters than those that decide would be too long.
  if (track->tcp)
    snprintf (headers, sizeof headers,
        "Transport: RTP/AVP/TCP;unicast;interleaved=%u-%u;ssrc=%08X\r\n", track->channel,
        track->channel + 1u, track->ssrc);
  else
    snprintf (headers, sizeof headers,
        "Transport: RTP/AVP;unicast;client_port=%u-%u;server_port=%u-%u;ssrc=%08X\r\n",
        ntohs (track->to.sin_port), ntohs (track->to_rtcp.sin_port), rtp_port, rtp_port + 1,
        track->ssrc);
  answer (self, request, len, "200 OK", headers, "");
}

static void
play (OriginSession *self, const char *request, size_t len, const char *url)
{
  char headers[2048] = "Range: npt=now-\r\nRTP-Info: ";
  size_t at = strlen (headers);

  if (self->playing || !(self->tracks[0].set_up || self->tracks[1].set_up)) {
    answer (self, request, len, self->playing ? "200 OK" : "455 Method Not Valid In This State", "",
        "");
    return;
  }
  for (unsigned i = 0; i < ORIGIN_TRACKS; i++) {
    size_t url_len = strlen (url);

    if (self->tracks[i].set_up)
      at += (size_t) snprintf (headers + at, sizeof headers - at, "%surl=%.700s%strack%u;seq=%u",
          headers[at - 1] == ' ' ? "" : ",", url, url_len && url[url_len - 1] == '/' ? "" : "/", i,
          self->tracks[i].seq);
  }
  strcpy (headers + at, "\r\n");
  answer (self, request, len, "200 OK", headers, "");
  origin_media_add (self);
}

// Returns false if the session is over.
static bool
on_request (OriginSession *self, const char *request, size_t len)
{
  char method[32], url[1024];
  const char *path;

  if (request[0] == '$')
    return true;
  if (sscanf (request, "%31s %1023s", method, url) != 2)
    return false;
  if (strcmp (method, "OPTIONS") == 0)
    answer (self, request, len, "200 OK",
        "Public: OPTIONS, DESCRIBE, SETUP, PLAY, GET_PARAMETER, TEARDOWN\r\n", "");
  else if (strncmp (url, "rtsp://", 7) != 0 || !(path = strstr (url + 7, "/s"))
           || sscanf (path, "/s%u", &self->stream) != 1)
    answer (self, request, len, "404 Not Found", "", "");
  else if (strcmp (method, "DESCRIBE") == 0)
    describe (self, request, len, url);
  else if (strcmp (method, "SETUP") == 0)
    set_up (self, request, len, url);
  else if (strcmp (method, "PLAY") == 0)
    play (self, request, len, url);
  else
    answer (self, request, len, "200 OK", "", "");
  return strcmp (method, "TEARDOWN") != 0;
}

// Answers the requests that have come, or only the one that has `waited`. Returns false if the
// session is over.
static bool
answer_requests (OriginSession *self, bool waited)
{
  ssize_t n;
  size_t at = 0;

  while ((n = relay_message_len (self->in + at, self->in_len - at)) > 0) {
    if (settings.late_ns && !waited) {
      postpone (self);
      n = 0;
      break;
    }
    if (!on_request (self, self->in + at, (size_t) n))
      return false;
    at += (size_t) n;
    waited = false;
  }
  self->in_len -= at;
  memmove (self->in, self->in + at, self->in_len);
  return n == 0;
}

// Returns false if the session is over.
static bool
read_requests (OriginSession *self)
{
  ssize_t n = recv (self->fd, self->in + self->in_len, RELAY_MESSAGE_MAX - 1 - self->in_len, 0);

  if (n <= 0)
    return n < 0 && errno == EAGAIN;
  self->in_len += (size_t) n;
  self->in[self->in_len] = '\0';
  return self->due_ns != 0 || answer_requests (self, false);
}

// Answers what has waited for long enough. Returns when the next answer is due, or INT64_MAX.
static int64_t
answer_late (int64_t now_ns)
{
  OriginSession *first;

  while ((first = TAILQ_FIRST (&waiting)) && first->due_ns <= now_ns) {
    stop_waiting (first);
    if (!answer_requests (first, true))
      end_session (first);
  }
  return first ? first->due_ns : INT64_MAX;
}

// ---- the thread ----

static void
discard (int fd)
{
  static uint8_t unused[2048];

  while (recv (fd, unused, sizeof unused, MSG_DONTWAIT) >= 0)
    ;
}

static void
handle (const struct epoll_event *event)
{
  OriginSession *session = event->data.ptr;

  if (event->data.ptr == &listen_fd) {
    begin_session ();
  } else if (event->data.ptr == &settings.rtp || event->data.ptr == &settings.rtcp) {
    discard (*(int *) event->data.ptr);
  } else {
    if (event->events & EPOLLOUT)
      origin_flush (session);
    if (event->events & ~(uint32_t) EPOLLOUT && !read_requests (session))
      end_session (session);
  }
}

static void
run (void)
{
  struct epoll_event events[EVENTS];

  for (;;) {
    int64_t now_ns = weir_now_ns (), answer_ns = answer_late (now_ns);
    int64_t due_ns = origin_media_run (now_ns, n_waiting);
    int64_t left_ns = (answer_ns < due_ns ? answer_ns : due_ns) - weir_now_ns ();
    struct timespec t = { .tv_nsec = left_ns > 0 ? left_ns : 0 };
    int n = epoll_pwait2 (epoll_fd, events, EVENTS, &t, NULL);

    for (int i = 0; i < n; i++)
      handle (&events[i]);
  }
}

static int
open_socket (struct sockaddr_in *address, int type, unsigned port)
{
  int fd = socket (AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1, size = BUFFER;

  address->sin_port = htons ((in_port_t) port);
  if (type == SOCK_STREAM)
    setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  setsockopt (fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
  if (bind (fd, (struct sockaddr *) address, sizeof *address) < 0)
    err (1, "port %u", port);
  return fd;
}

int
main (int argc, char **argv)
{
  struct sockaddr_in address;

  if (argc < 4 || !relay_address (argv[1], &address) || !(settings.shape = relay_shape (argv[3])))
    errx (2, "usage: relay_origin ADDRESS:PORT RTP_PORT SHAPE [sound] [spread] [single] [late=MS]");
  for (int i = 4; i < argc; i++) {
    settings.sound |= strcmp (argv[i], "sound") == 0;
    settings.spread |= strcmp (argv[i], "spread") == 0;
    settings.single |= strcmp (argv[i], "single") == 0;
    if (strncmp (argv[i], "late=", 5) == 0)
      settings.late_ns = atoi (argv[i] + 5) * (RELAY_S / 1000);
  }
  prctl (PR_SET_TIMERSLACK, 1);
  rtp_port = (unsigned) atoi (argv[2]);
  epoll_fd = epoll_create1 (EPOLL_CLOEXEC);
  listen_fd = open_socket (&address, SOCK_STREAM, ntohs (address.sin_port));
  settings.rtp = open_socket (&address, SOCK_DGRAM, rtp_port);
  settings.rtcp = open_socket (&address, SOCK_DGRAM, rtp_port + 1);
  settings.start_ns = weir_now_ns ();
  origin_media_init (&settings);
  if (listen (listen_fd, 4096) < 0)
    err (1, "listen");
  watch (listen_fd, &listen_fd, false);
  watch (settings.rtp, &settings.rtp, false);
  watch (settings.rtcp, &settings.rtcp, false);
  printf ("READY at_ns=%lld\n", (long long) weir_now_ns ());
  run ();
}
