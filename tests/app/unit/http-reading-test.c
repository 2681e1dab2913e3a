// SPDX-License-Identifier: LGPL-2.1-or-later

// A connection reads all that its client sends, though it asks the socket only when the loop has
// told of bytes. Routes have methods, and get bodies.

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

// ---- the reply that has the method, the end of the target and the body ----

typedef struct {
  HttpReply reply;
  GBytes *body;
} Echo;

static gboolean
begin_echo (HttpReply *reply, HttpHead *head, gint64 now_ns, gint64 *wake_ns)
{
  gsize size = g_bytes_get_size (((Echo *) reply)->body);

  *head = (HttpHead) { 201, "text/x-echo", NULL, head->headers, (gint64) size };
  return TRUE;
}

static GBytes *
next_echo (HttpReply *reply, gboolean *ended)
{
  *ended = TRUE;
  return g_bytes_ref (((Echo *) reply)->body);
}

static void
free_echo (HttpReply *reply)
{
  g_bytes_unref (((Echo *) reply)->body);
  g_free (reply);
}

static HttpReply *
echo (gpointer served, const HttpAsked *asked)
{
  static const HttpReplyOps ops = { .begin = begin_echo, .next = next_echo, .free = free_echo };
  const HttpRequest *request = asked->request;
  GByteArray *bytes = g_byte_array_new ();
  gchar *line = g_strdup_printf ("%s %s ", request->method, request->target);
  Echo *self = g_new0 (Echo, 1);

  g_byte_array_append (bytes, (const guint8 *) line, (guint) strlen (line));
  if (request->body)
    g_byte_array_append (
        bytes, g_bytes_get_data (request->body, NULL), (guint) g_bytes_get_size (request->body));
  g_byte_array_append (bytes, (const guint8 *) ".", 1);
  self->reply.ops = &ops;
  self->body = g_byte_array_free_to_bytes (bytes);
  g_free (line);
  return &self->reply;
}

// Another reply without a body of its own.
static gboolean
begin_nothing (HttpReply *reply, HttpHead *head, gint64 now_ns, gint64 *wake_ns)
{
  *head = (HttpHead) { .status = 204, .headers = head->headers };
  return TRUE;
}

static HttpReply *
answer_nothing (gpointer served, const HttpAsked *asked)
{
  static const HttpReplyOps ops = { .begin = begin_nothing, .free = free_reply };
  static HttpReply reply = { &ops };

  return &reply;
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
serve_for (guint request_ms, void (*test) (Served *self))
{
  static const HttpReplyOps ops = { .begin = begin, .free = free_reply };
  Served self = { .reply = { &ops } };
  const HttpRoute routes[] = {
    { "/served", ACCESS_READ, dup_target, answer, &self },
    { "/nothing", ACCESS_READ, dup_target, answer_nothing, &self },
    { .suffix = "echo",
        .action = ACCESS_READ,
        .dup_target = dup_target,
        .answer = echo,
        .outlet = &self,
        .is_shared = TRUE,
        .methods = HTTP_POST | HTTP_PATCH | HTTP_DELETE,
        .given = "X-Given",
        .exposed = "X-Exposed",
        .accepts = "text/x-echo" },
    { 0 },
  };
  GInetAddress *address = g_inet_address_new_loopback (G_SOCKET_FAMILY_IPV4);
  const struct timeval patience = { .tv_sec = PATIENCE_S };
  GError *error = NULL;
  GSocket *socket;
  Limits limits;
  int fds[2];

  limits_get (&limits);
  limits.idle_ms = IDLE_MS;
  limits.request_ms = request_ms;
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
serve (void (*test) (Served *self))
{
  serve_for (IDLE_MS, test);
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

// ---- methods and bodies ----

static void
say (Served *self, const gchar *text)
{
  g_assert_cmpint (write (self->client, text, strlen (text)), ==, (gssize) strlen (text));
}

// Receives up to and with `end`. (transfer full)
static gchar *
hear (Served *self, const gchar *end)
{
  GString *text = g_string_new (NULL);
  gchar byte;

  while (!g_str_has_suffix (text->str, end)) {
    g_assert_cmpint (recv (self->client, &byte, 1, 0), ==, 1);
    g_string_append_c (text, byte);
  }
  return g_string_free (text, FALSE);
}

static void
expect (Served *self, const gchar *end, const gchar *status)
{
  gchar *heard = hear (self, end);

  g_test_message ("%s", heard);
  g_assert_true (g_str_has_prefix (heard, status));
  g_free (heard);
}

static void
expect_end (Served *self)
{
  gchar bytes[4096];
  gssize n;

  while ((n = recv (self->client, bytes, sizeof bytes, 0)) > 0)
    ;
  g_assert_cmpint (n, ==, 0);
}

static void
ask_with_bodies (Served *self)
{
  say (self, "POST /a/echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello"
             "DELETE /a/echo/0123 HTTP/1.1\r\nHost: localhost\r\n\r\n"
             "PATCH /a/echo?b=/c HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n");
  expect (self, "POST /a/echo hello.", "HTTP/1.1 201 ");
  expect (self, "DELETE /a/echo/0123 .", "HTTP/1.1 201 ");
  say (self, "h");
  say (self, "iPOST /echo HTTP/1.1\r\nHost: localhost\r\n\r\n"); // no path before the suffix
  expect (self, "PATCH /a/echo?b=/c hi.", "HTTP/1.1 201 ");
  expect (self, "Not Allowed\n", "HTTP/1.1 405 ");
}

static void
a_route_gets_bodies_also_of_requests_that_come_together (void)
{
  serve (ask_with_bodies);
}

static void
ask_with_wrong_methods (Served *self)
{
  static const struct {
    const gchar *method, *target, *allow;
  } wrong[] = {
    { "GET", "/a/echo", "POST, PATCH, DELETE, OPTIONS" },
    { "HEAD", "/a/echo/b", "POST, PATCH, DELETE, OPTIONS" },
    { "PUT", "/a/echo", "POST, PATCH, DELETE, OPTIONS" },
    { "get", "/served", "GET, HEAD" },
    { "POST", "/served", "GET, HEAD" },
    { "OPTIONS", "/served", "GET, HEAD" },
    { "DELETE", "/a/echo/b/c", "GET, HEAD" },
    { "POST", "/a/echoes", "GET, HEAD" },
    { "PATCH", "/a?/echo", "GET, HEAD" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++) {
    gchar *request = g_strdup_printf (
        "%s %s HTTP/1.1\r\nHost: localhost\r\n\r\n", wrong[i].method, wrong[i].target);
    gchar *allow = g_strdup_printf ("\r\nAllow: %s\r\n", wrong[i].allow), *heard;

    say (self, request);
    heard = hear (self, g_str_equal (wrong[i].method, "HEAD") ? "\r\n\r\n" : "Not Allowed\n");
    g_test_message ("%s%s", request, heard);
    g_assert_true (g_str_has_prefix (heard, "HTTP/1.1 405 "));
    g_assert_nonnull (strstr (heard, allow));
    g_free (heard);
    g_free (allow);
    g_free (request);
  }
}

static void
another_method_gets_405_with_those_of_the_route (void)
{
  serve (ask_with_wrong_methods);
}

static void
ask_options (Served *self)
{
  gchar *heard;

  say (self, "OPTIONS /a/echo HTTP/1.1\r\nHost: localhost\r\nOrigin: https://other\r\n\r\n");
  heard = hear (self, "\r\n\r\n");
  g_assert_true (g_str_has_prefix (heard, "HTTP/1.1 204 "));
  g_assert_nonnull (strstr (heard, "\r\nAllow: POST, PATCH, DELETE, OPTIONS\r\n"));
  g_assert_nonnull (
      strstr (heard, "\r\nAccess-Control-Allow-Methods: POST, PATCH, DELETE, OPTIONS\r\n"));
  g_assert_nonnull (strstr (heard, "\r\nAccess-Control-Allow-Headers: X-Given\r\n"));
  g_assert_nonnull (strstr (heard, "\r\nAccess-Control-Allow-Origin: *\r\n"));
  g_assert_nonnull (strstr (heard, "\r\nAccess-Control-Expose-Headers: X-Exposed\r\n"));
  g_assert_nonnull (strstr (heard, "\r\nAccept-Post: text/x-echo\r\n"));
  g_free (heard);
}

static void
options_tell_what_the_route_takes (void)
{
  serve (ask_options);
}

static void
ask_nothing (Served *self)
{
  gchar *heard;

  say (self, "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"
             "GET /served HTTP/1.1\r\nHost: localhost\r\n\r\n");
  heard = hear (self, "\r\n\r\n");
  g_assert_true (g_str_has_prefix (heard, "HTTP/1.1 204 "));
  g_assert_null (strstr (heard, "Content-"));
  g_free (heard);
  expect (self, "nothing\n", "HTTP/1.1 404 ");
}

static void
an_answer_204_has_no_body (void)
{
  serve (ask_nothing);
}

static void
ask_with_large_body (Served *self)
{
  say (self, "POST /a/echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 65537\r\n\r\nx");
  expect (self, "(limits.body)\n", "HTTP/1.1 413 ");
  expect_end (self);
}

static void
a_body_of_more_than_64_kib_gets_413 (void)
{
  serve (ask_with_large_body);
}

static void
ask_with_largest_body (Served *self)
{
  gchar *body = g_strnfill (65536, 'x');

  say (self, "POST /a/echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 65536\r\n\r\n");
  say (self, body);
  expect (self, "xxx.", "HTTP/1.1 201 ");
  g_free (body);
}

static void
a_body_of_64_kib_reaches_the_route (void)
{
  serve (ask_with_largest_body);
}

static void
ask_with_chunks (Served *self)
{
  say (self, "POST /a/echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
             "41\r\nGET /served HTTP/1.1\r\nHost: localhost\r\n\r\n");
  expect (self, "Content-Length\n", "HTTP/1.1 411 ");
  expect_end (self); // what follows is no request
}

static void
a_body_in_chunks_gets_411 (void)
{
  serve (ask_with_chunks);
}

static void
ask_slowly (Served *self)
{
  say (self, "POST /a/echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhe");
  expect (self, "(limits.request-timeout)\n", "HTTP/1.1 408 ");
  expect_end (self);
}

static void
a_body_that_takes_too_long_gets_408 (void)
{
  serve_for (300, ask_slowly);
}

static void
ask_and_wait (Served *self)
{
  say (self, "POST /a/echo HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
             "Content-Length: 5\r\n\r\n");
  expect (self, "\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n");
  say (self, "he");
  say (self, "llo");
  expect (self, "POST /a/echo hello.", "HTTP/1.1 201 ");
  // A body that has come is not waited for, and HTTP/1.0 has no such answer.
  say (self, "POST /a/echo HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
             "Content-Length: 1\r\n\r\n1"
             "POST /a/echo HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n");
  expect (self, "POST /a/echo 1.", "HTTP/1.1 201 ");
  say (self, "2");
  expect (self, "POST /a/echo 2.", "HTTP/1.1 201 ");
}

static void
a_client_that_waits_with_its_body_is_let_go_on (void)
{
  serve (ask_and_wait);
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
  g_test_add_func ("/http/a-route-gets-bodies-also-of-requests-that-come-together",
      a_route_gets_bodies_also_of_requests_that_come_together);
  g_test_add_func ("/http/another-method-gets-405-with-those-of-the-route",
      another_method_gets_405_with_those_of_the_route);
  g_test_add_func ("/http/options-tell-what-the-route-takes", options_tell_what_the_route_takes);
  g_test_add_func ("/http/an-answer-204-has-no-body", an_answer_204_has_no_body);
  g_test_add_func (
      "/http/a-body-of-more-than-64-kib-gets-413", a_body_of_more_than_64_kib_gets_413);
  g_test_add_func ("/http/a-body-of-64-kib-reaches-the-route", a_body_of_64_kib_reaches_the_route);
  g_test_add_func ("/http/a-body-in-chunks-gets-411", a_body_in_chunks_gets_411);
  g_test_add_func (
      "/http/a-body-that-takes-too-long-gets-408", a_body_that_takes_too_long_gets_408);
  g_test_add_func ("/http/a-client-that-waits-with-its-body-is-let-go-on",
      a_client_that_waits_with_its_body_is_let_go_on);
  return g_test_run ();
}
