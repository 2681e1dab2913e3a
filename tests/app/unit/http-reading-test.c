// SPDX-License-Identifier: LGPL-2.1-or-later

// A connection reads all that its client sends, though it asks the socket only when the loop has
// told of bytes.

#include "outlets/http/http_connection.h"

#include "config/limits.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE_S 30
#define IDLE_MS 120000 // so long that the end of a connection is not of its idleness

typedef struct {
  HttpReply reply; // the first field
  HttpContext context;
  int client;
  gint ended; // atomic
} Served;

// ---- the reply: 404 ----

static gboolean
begin (HttpReply *reply, HttpHead *head, gint64 now_ns, gint64 *wake_ns)
{
  *head = (HttpHead) { 404, NULL, "nothing", head->headers, 0 };
  return TRUE;
}

static void
free_reply (HttpReply *reply)
{
}

static HttpReply *
answer (gpointer served, const HttpAsked *asked)
{
  return &((Served *) served)->reply;
}

static gchar *
dup_target (gpointer served, const gchar *target)
{
  return NULL;
}

static void
on_ended (HttpConnection *connection, gpointer data)
{
  g_atomic_int_set (&((Served *) data)->ended, TRUE);
}

// ---- the client ----

// Of TCP: the loop tells of bytes once, when they come.
static void
connect_pair (int fds[2])
{
  struct sockaddr_in address = { .sin_family = AF_INET,
    .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
  socklen_t size = sizeof address;
  int listening = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

  g_assert_cmpint (bind (listening, (struct sockaddr *) &address, size), ==, 0);
  g_assert_cmpint (listen (listening, 1), ==, 0);
  g_assert_cmpint (getsockname (listening, (struct sockaddr *) &address, &size), ==, 0);
  fds[1] = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  g_assert_cmpint (connect (fds[1], (struct sockaddr *) &address, size), ==, 0);
  fds[0] = accept (listening, NULL, NULL);
  g_assert_cmpint (fds[0], >=, 0);
  close (listening);
}

static void
serve (void (*test) (Served *self))
{
  static const HttpReplyOps ops = { .begin = begin, .free = free_reply };
  Served self = { .reply = { &ops } };
  const HttpRoute routes[] = { { "/served", ACCESS_READ, dup_target, answer, &self }, { 0 } };
  GInetAddress *address = g_inet_address_new_loopback (G_SOCKET_FAMILY_IPV4);
  const struct timeval patience = { .tv_sec = PATIENCE_S };
  GError *error = NULL;
  GSocket *socket;
  Limits limits;
  int fds[2];

  limits_get (&limits);
  limits.idle_ms = limits.request_ms = IDLE_MS;
  limits_set (&limits);
  self.context = (HttpContext) { .workers = weir_workers_new (1, 0),
    .loop = loop_new (&(LoopSettings) { .name = "http-poll" }, &error),
    .routes = routes,
    .ended = on_ended,
    .data = &self };
  g_assert_no_error (error);
  connect_pair (fds);
  self.client = fds[1];
  setsockopt (self.client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  socket = g_socket_new_from_fd (fds[0], &error);
  g_assert_no_error (error);
  http_connection_start (
      http_connection_new (&self.context, socket, address, "127.0.0.1:1", FALSE));
  test (&self);
  close (self.client);
  for (gint64 end = g_get_monotonic_time () + PATIENCE_S * G_USEC_PER_SEC;
      !g_atomic_int_get (&self.ended);) {
    g_assert_cmpint (g_get_monotonic_time (), <, end);
    g_usleep (10000);
  }
  loop_free (self.context.loop);
  weir_workers_free (self.context.workers);
  g_object_unref (address);
}

static void
ask (Served *self, guint n, gsize size)
{
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < n; i++) {
    gsize start = text->len;

    g_string_append (text, "GET /served HTTP/1.1\r\nHost: localhost\r\nX-Filler: ");
    while (text->len - start < size - 4)
      g_string_append_c (text, 'x');
    g_string_append (text, "\r\n\r\n");
  }
  g_assert_cmpint (write (self->client, text->str, text->len), ==, (gssize) text->len);
  g_string_free (text, TRUE);
}

static void
check_answers (Served *self, guint n)
{
  gchar bytes[8192] = "", *at = bytes;
  gsize len = 0;

  for (guint found = 0; found < n;) {
    gssize got = recv (self->client, bytes + len, sizeof bytes - 1 - len, 0);

    g_assert_cmpint (got, >, 0);
    len += (gsize) got;
    bytes[len] = 0;
    for (gchar *next; (next = strstr (at, "Not Found: nothing\n")); at = next + 1)
      found++;
  }
  g_assert_true (g_str_has_prefix (bytes, "HTTP/1.1 404 Not Found\r\nDate: "));
  g_assert_nonnull (strstr (bytes, " GMT\r\nConnection: keep-alive\r\nContent-Type: text/plain"));
  g_assert_nonnull (strstr (bytes, "\r\nContent-Length: 19\r\n\r\nNot Found"));
}

static void
ask_one_after_the_other (Served *self)
{
  for (guint i = 0; i < 3; i++) {
    ask (self, 1, 100);
    check_answers (self, 1);
  }
}

static void
requests_are_answered_one_after_the_other (void)
{
  serve (ask_one_after_the_other);
}

static void
ask_together (Served *self)
{
  ask (self, 5, 2000);
  check_answers (self, 5);
  ask (self, 2, 2048); // as much as is read at once
  check_answers (self, 2);
}

static void
requests_that_come_together_are_answered (void)
{
  serve (ask_together);
}

static void
ask_and_leave (Served *self)
{
  ask (self, 1, 100);
  check_answers (self, 1);
  shutdown (self->client, SHUT_WR);
}

static void
a_client_that_leaves_ends_its_connection (void)
{
  serve (ask_and_leave);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func (
      "/http/requests-are-answered-one-after-the-other", requests_are_answered_one_after_the_other);
  g_test_add_func (
      "/http/requests-that-come-together-are-answered", requests_that_come_together_are_answered);
  g_test_add_func (
      "/http/a-client-that-leaves-ends-its-connection", a_client_that_leaves_ends_its_connection);
  return g_test_run ();
}
