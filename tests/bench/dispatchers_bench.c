// SPDX-License-Identifier: LGPL-2.1-or-later
// Dispatches requests that come over many connections, for amps_dispatchers.py.
//
//     dispatchers_bench WAY CONNECTIONS RATE SECONDS
//
// RATE requests come in a second, at random moments, each over a connection that is drawn. A child
// process sends them. WAY is how the dispatcher finds the connections to read:
//   select     it waits in select, over all of them
//   throttled  the same, and it sleeps for 15 ms after each round
//   polling    it asks each connection for a byte every 15 ms
//   epoll      it waits in epoll
//   glib       it runs a main loop of GLib
// Prints the CPU time of the dispatcher in %, and the median and the 99th percentile of the ms from
// a request to its answer.

#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <glib-unix.h>

#define REST_US 15000
#define EVENTS 64
#define MESSAGE 200 // bytes of a request and of an answer, about
#define BITS (8 * (int) sizeof (unsigned long))

typedef struct {
  int *fds, n, most;
  bool gone; // the child has ended
} Dispatcher;

static double
now_s (clockid_t clock)
{
  struct timespec t;

  clock_gettime (clock, &t);
  return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

// Reads a request and answers it.
static void
serve (Dispatcher *self, int fd)
{
  static const char answer[MESSAGE] = "RTSP/1.0 200 OK\r\n";
  char request[2 * MESSAGE];
  const ssize_t n = recv (fd, request, sizeof request, MSG_DONTWAIT);

  if (n == 0 || (n < 0 && errno != EAGAIN))
    self->gone = true;
  else if (n > 0)
    send (fd, answer, sizeof answer, MSG_NOSIGNAL);
}

// The sets of select are arrays of bits, and may be longer than an fd_set.
static void
dispatch_by_select (Dispatcher *self, useconds_t rest)
{
  const size_t words = (size_t) (self->most / BITS + 1);
  unsigned long *set = g_new (unsigned long, words);

  while (!self->gone) {
    memset (set, 0, words * sizeof *set);
    for (int i = 0; i < self->n; i++)
      set[self->fds[i] / BITS] |= 1UL << self->fds[i] % BITS;
    if (select (self->most + 1, (fd_set *) (void *) set, NULL, NULL, NULL) < 0)
      g_error ("select: %s", g_strerror (errno));
    for (int i = 0; i < self->n; i++) {
      if (set[self->fds[i] / BITS] & 1UL << self->fds[i] % BITS)
        serve (self, self->fds[i]);
    }
    if (rest > 0)
      usleep (rest);
  }
  g_free (set);
}

static void
dispatch_by_polling (Dispatcher *self)
{
  char byte;

  while (!self->gone) {
    for (int i = 0; i < self->n; i++) {
      if (recv (self->fds[i], &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN)
        serve (self, self->fds[i]);
    }
    usleep (REST_US);
  }
}

static int
epoll_of (const int *fds, int n)
{
  const int epoll = epoll_create1 (EPOLL_CLOEXEC);

  for (int i = 0; i < n; i++) {
    struct epoll_event event = { .events = EPOLLIN, .data.u32 = (uint32_t) i };
    epoll_ctl (epoll, EPOLL_CTL_ADD, fds[i], &event);
  }
  return epoll;
}

static void
dispatch_by_epoll (Dispatcher *self)
{
  const int epoll = epoll_of (self->fds, self->n);
  struct epoll_event events[EVENTS];

  while (!self->gone) {
    const int n = epoll_wait (epoll, events, EVENTS, -1);
    for (int i = 0; i < n; i++)
      serve (self, self->fds[events[i].data.u32]);
  }
  close (epoll);
}

static gboolean
serve_source (gint fd, GIOCondition condition, gpointer data)
{
  (void) condition;
  serve (data, fd);
  return G_SOURCE_CONTINUE;
}

static void
dispatch_by_glib (Dispatcher *self)
{
  for (int i = 0; i < self->n; i++)
    g_unix_fd_add (self->fds[i], G_IO_IN, serve_source, self);
  while (!self->gone)
    g_main_context_iteration (NULL, TRUE);
}

static void
dispatch_by_waiting (Dispatcher *self)
{
  dispatch_by_select (self, 0);
}

static void
dispatch_by_rounds (Dispatcher *self)
{
  dispatch_by_select (self, REST_US);
}

typedef void Way (Dispatcher *self);

// Returns NULL for an unknown way.
static Way *
find_way (const char *name)
{
  static const struct {
    const char *name;
    Way *dispatch;
  } ways[] = { { "select", dispatch_by_waiting }, { "throttled", dispatch_by_rounds },
    { "polling", dispatch_by_polling }, { "epoll", dispatch_by_epoll },
    { "glib", dispatch_by_glib } };

  for (size_t i = 0; i < G_N_ELEMENTS (ways); i++) {
    if (g_str_equal (name, ways[i].name))
      return ways[i].dispatch;
  }
  return NULL;
}

// ---- the child ----

static int
compare (const void *a, const void *b)
{
  const double x = *(const double *) a, y = *(const double *) b;

  return (x > y) - (x < y);
}

static int *
connect_all (const struct sockaddr_in *address, int n)
{
  const int one = 1;
  int *fds = g_new (int, n);

  for (int i = 0; i < n; i++) {
    fds[i] = socket (AF_INET, SOCK_STREAM, 0);
    if (connect (fds[i], (const struct sockaddr *) address, sizeof *address) < 0)
      g_error ("connect: %s", g_strerror (errno));
    setsockopt (fds[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  }
  return fds;
}

// Takes the answers that come until `until`. Returns how many took_ms there are then.
static int
take_answers (int epoll, const int *fds, double *sent_s, double until, double *took_ms, int n_took)
{
  struct epoll_event events[EVENTS];
  char answer[MESSAGE];
  double rest;

  while ((rest = until - now_s (CLOCK_MONOTONIC)) > 0) {
    const struct timespec wait = { (time_t) rest, (long) (fmod (rest, 1) * 1e9) };
    const int n = epoll_pwait2 (epoll, events, EVENTS, &wait, NULL);
    const double now = now_s (CLOCK_MONOTONIC);
    for (int i = 0; i < n; i++) {
      const uint32_t from = events[i].data.u32;
      if (recv (fds[from], answer, sizeof answer, 0) <= 0)
        g_error ("the dispatcher has gone");
      if (sent_s[from] > 0)
        took_ms[n_took++] = 1000 * (now - sent_s[from]);
      sent_s[from] = 0;
    }
  }
  return n_took;
}

static int
ask (const struct sockaddr_in *address, int n, double rate, double seconds)
{
  static const char request[MESSAGE] = "OPTIONS rtsp://localhost/ RTSP/1.0\r\n";
  int *fds = connect_all (address, n), n_asked = 0, n_took = 0;
  const int epoll = epoll_of (fds, n);
  const int most = (int) (2 * rate * seconds) + 100;
  double *sent_s = g_new0 (double, n), *took_ms = g_new (double, most);
  double due = now_s (CLOCK_MONOTONIC);
  const double end = due + seconds;

  srand48 (1);
  while ((due -= log (1 - drand48 ()) / rate) < end && n_asked < most) {
    const int to = (int) (drand48 () * n);
    n_took = take_answers (epoll, fds, sent_s, due, took_ms, n_took);
    if (sent_s[to] > 0)
      continue; // a client asks one thing at a time
    sent_s[to] = now_s (CLOCK_MONOTONIC);
    n_asked++;
    if (send (fds[to], request, sizeof request, 0) < 0)
      g_error ("send: %s", g_strerror (errno));
  }
  n_took = take_answers (epoll, fds, sent_s, end + 1, took_ms, n_took);
  if (n_took < n_asked || n_took == 0)
    g_error ("%d of %d requests were answered", n_took, n_asked);
  qsort (took_ms, (size_t) n_took, sizeof *took_ms, compare);
  printf ("p50 %.3f\np99 %.3f\n", took_ms[n_took / 2], took_ms[n_took * 99 / 100]);
  return 0;
}

int
main (int argc, char **argv)
{
  struct sockaddr_in address = { .sin_family = AF_INET,
    .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
  socklen_t size = sizeof address;
  Dispatcher self = { 0 };
  double cpu_s, at_s;
  Way *way;
  int listener, status;
  pid_t child;

  if (argc != 5 || !(way = find_way (argv[1])))
    return 2;
  self.n = atoi (argv[2]);
  listener = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind (listener, (const struct sockaddr *) &address, sizeof address) < 0
      || listen (listener, 4096) < 0
      || getsockname (listener, (struct sockaddr *) &address, &size) < 0)
    g_error ("listen: %s", g_strerror (errno));
  child = fork ();
  if (child == 0)
    return ask (&address, self.n, atof (argv[3]), atof (argv[4]));
  self.fds = g_new (int, self.n);
  for (int i = 0; i < self.n; i++) {
    self.fds[i] = accept (listener, NULL, NULL);
    if (self.fds[i] < 0)
      g_error ("accept: %s", g_strerror (errno));
    self.most = MAX (self.most, self.fds[i]);
  }
  cpu_s = now_s (CLOCK_PROCESS_CPUTIME_ID);
  at_s = now_s (CLOCK_MONOTONIC);
  way (&self);
  printf ("cpu %.3f\n",
      100 * (now_s (CLOCK_PROCESS_CPUTIME_ID) - cpu_s) / (now_s (CLOCK_MONOTONIC) - at_s));
  return waitpid (child, &status, 0) == child && status == 0 ? 0 : 1;
}
