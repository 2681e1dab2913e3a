// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/http/http_connection_private.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "config/host_names.h"
#include "outlets/http/http_answer.h"
#include "outlets/http/http_counts.h"
#include "outlets/http/http_pieces.h"
#include "readers/reader_limit.h"

#define READ_BYTES 4096
#define OUT_BYTES 512 // of most answers
#define BURST 2       // seconds of requests that may come at once
#define GONE (EPOLLRDHUP | EPOLLHUP | EPOLLERR)
#define LINGER_NS (2 * NS_PER_S)      // for the client to read the last answer
#define LINGER_BYTES_MAX (256 * 1024) // of the client, which are read and dropped meanwhile

// ---- waking ----

GInetAddress *
http_connection_get_address (HttpConnection *self)
{
  return self->address;
}

void
http_connection_wake (gpointer connection)
{
  weir_task_wake (&((HttpConnection *) connection)->task);
}

static void
unref (HttpConnection *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  weir_task_clear (&self->task);
  self->context->ended (self, self->context->data);
  g_object_unref (self->address);
  access_peer_unref (self->visitor);
  g_free (self->peer);
  g_free (self);
}

void
http_connection_close (HttpConnection *self)
{
  g_atomic_int_set (&self->closing, TRUE);
  http_connection_wake (self);
}

static HttpConnection *
connection_of (LoopWatch *watch)
{
  return (HttpConnection *) ((guint8 *) watch - G_STRUCT_OFFSET (HttpConnection, watch));
}

// The socket can be read or written after it could not, or bytes have come.
static void
on_ready (LoopWatch *watch, guint number, guint32 events)
{
  HttpConnection *self = connection_of (watch);

  if (events & GONE)
    g_atomic_int_set (&self->gone, TRUE);
  if (events & (EPOLLIN | GONE)) // after `gone`, see receive()
    g_atomic_int_set (&self->can_read, TRUE);
  http_connection_wake (self);
}

static void
on_left (LoopWatch *watch)
{
  unref (connection_of (watch));
}

// Returns whether the task goes on: not before `wake_ns`, or an event.
gboolean
http_connection_wait_until (HttpConnection *self, gint64 wake_ns)
{
  self->wake_ns = MIN (self->wake_ns, wake_ns);
  return FALSE;
}

// ---- answers ----

// Returns the origin whose pages may read what their user gets by an address alone, "*" for all, or
// NULL for none. (transfer none)
static const gchar *
get_allowed (HttpConnection *self)
{
  const gchar *const *allowed = (const gchar *const *) self->context->allow_origins;
  const gchar *origin = http_request_get (&self->request, "Origin");

  if (allowed && g_strv_contains (allowed, "*"))
    return "*";
  return allowed && origin && g_strv_contains (allowed, origin) ? origin : NULL;
}

// Says which pages may read the answer (CORS): all, unless the address of their user is the reason
// for it. Any page could then read the streams of a network by the browser of somebody inside.
static void
add_readers (HttpConnection *self)
{
  gboolean is_by_address = self->asked && access_case_get_verdict (self->asked) == ACCESS_ADMITTED
                           && access_case_get_basis (self->asked) == ACCESS_BY_ADDRESS;
  const gchar *origin = is_by_address ? get_allowed (self) : "*";

  if (origin)
    http_answer_add (self->out, "Access-Control-Allow-Origin", origin);
  if (is_by_address)
    http_answer_add (self->out, "Vary", "Origin");
}

void
http_connection_begin_answer (HttpConnection *self, guint status)
{
  http_counts_add_answer (status);
  http_answer_begin (self->out, status, self->keeps);
  if (self->route && self->route->is_shared)
    add_readers (self);
  self->out_at = 0;
  self->deadline_ns = weir_now_ns () + (gint64) self->limits.write_ms * NS_PER_MS;
  self->state = STATE_WRITING;
}

gboolean
http_connection_answer_text (HttpConnection *self, guint status, const gchar *reason)
{
  self->body.length = 0;
  http_connection_begin_answer (self, status);
  if (status == SOUP_STATUS_METHOD_NOT_ALLOWED)
    http_answer_add (self->out, "Allow", "GET, HEAD");
  if (status == SOUP_STATUS_SERVICE_UNAVAILABLE)
    http_answer_add (self->out, "Retry-After", HTTP_RETRY_AFTER);
  for (const gchar *const *challenge =
           status == SOUP_STATUS_UNAUTHORIZED ? access_case_get_challenges (self->asked) : NULL;
      challenge && *challenge; challenge++)
    http_answer_add (self->out, "WWW-Authenticate", *challenge);
  http_answer_end_text (self->out, status, reason, self->request.head);
  return TRUE;
}

// Answers with the reason of a limit, which is logged, too.
gboolean
http_connection_answer_refused (
    HttpConnection *self, guint status, RefusedReason reason, const gchar *text)
{
  refusals_note (reason, self->peer, "%s", text);
  return http_connection_answer_text (self, status, text);
}

// Tells a browser that pages of other sites may send credentials here (CORS preflight). It asks
// without credentials, so access is not asked for.
static gboolean
answer_preflight (HttpConnection *self)
{
  self->body.length = 0;
  http_connection_begin_answer (self, SOUP_STATUS_NO_CONTENT);
  http_answer_add (self->out, "Access-Control-Allow-Methods", "GET, HEAD");
  http_answer_add (self->out, "Access-Control-Allow-Headers", "Authorization, Range");
  http_answer_add (self->out, "Access-Control-Max-Age", "7200");
  g_string_append (self->out, "\r\n");
  return TRUE;
}

gboolean
http_connection_end (HttpConnection *self)
{
  self->state = STATE_ENDED;
  return FALSE;
}

// ---- reading requests ----

// Receives bytes. Returns their number, 0 at the end, or -1 if there are none now. The poll says
// when there are some again: a system call less for each request.
static gssize
receive (HttpConnection *self, guint8 bytes[READ_BYTES])
{
  gssize n;

  if (!g_atomic_int_compare_and_exchange (&self->can_read, TRUE, FALSE))
    return -1;
  do
    n = recv (self->fd, bytes, READ_BYTES, 0);
  while (n < 0 && errno == EINTR);
  if (n < 0 && errno == EAGAIN)
    return -1;
  // All bytes were received if the buffer is not full (epoll(7)), but an end may follow them, of
  // which the loop has told already.
  if (n == READ_BYTES || g_atomic_int_get (&self->gone))
    g_atomic_int_set (&self->can_read, TRUE);
  return MAX (n, 0);
}

static void
begin_request (HttpConnection *self, gint64 now)
{
  self->check = (RequestCheck) { .http = TRUE };
  self->deadline_ns =
      now
      + (gint64) (self->in->len > 0 ? self->limits.request_ms : self->limits.idle_ms) * NS_PER_MS;
  self->state = STATE_READING;
}

static gboolean
check_time (HttpConnection *self, gint64 now)
{
  if (now < self->deadline_ns)
    return http_connection_wait_until (self, self->deadline_ns);
  if (self->in->len > 0)
    return http_connection_answer_refused (self, SOUP_STATUS_REQUEST_TIMEOUT, REFUSED_TIMEOUT,
        "a request takes too long (limits.request-timeout)");
  refusals_count (REFUSED_IDLE);
  return http_connection_end (self);
}

// Delays the requests of a client that sends too many.
static gboolean
may_pass (HttpConnection *self, gint64 now)
{
  self->earliest_ns = MAX (self->earliest_ns, now - BURST * NS_PER_S);
  if (self->earliest_ns > now)
    return http_connection_wait_until (self, self->earliest_ns);
  self->earliest_ns += NS_PER_S / self->limits.requests_rate;
  return TRUE;
}

static gboolean ask (HttpConnection *self, gboolean asks);

static gboolean
take_request (HttpConnection *self, gsize size)
{
  GByteArray *head = request_dup_head (&self->check, self->in->data);
  guint status = http_request_read (&self->request, head->data, head->len);
  gboolean asks;

  g_byte_array_unref (head);
  g_byte_array_remove_range (self->in, 0, (guint) size);
  self->keeps = status != SOUP_STATUS_BAD_REQUEST && self->request.keeps;
  if (status == SOUP_STATUS_BAD_REQUEST)
    return http_connection_answer_refused (
        self, status, REFUSED_MALFORMED, "a request is malformed, or has a body in chunks");
  asks = http_connection_find_route (self);
  if (self->route && self->route->is_shared && g_str_equal (self->request.method, "OPTIONS"))
    return answer_preflight (self);
  return status ? http_connection_answer_text (self, status, NULL) : ask (self, asks);
}

static gboolean
step_reading (HttpConnection *self, gint64 now)
{
  guint8 bytes[READ_BYTES];
  gsize size = self->in->len > 0 ? request_check (&self->check, &self->limits.request,
                                       self->in->data, self->in->len)
                                 : 0;
  gssize n;

  self->keeps = FALSE;
  if (self->check.fault != REQUEST_FINE) {
    const HttpRefusal *refusal = http_refusal_of (self->check.fault);

    return http_connection_answer_refused (self, refusal->status, refusal->reason, refusal->text);
  }
  if (size > 0)
    return may_pass (self, now) && take_request (self, size);
  n = receive (self, bytes);
  if (n < 0)
    return check_time (self, now);
  if (n == 0)
    return http_connection_end (self);
  if (self->in->len == 0)
    self->deadline_ns = now + (gint64) self->limits.request_ms * NS_PER_MS;
  g_byte_array_append (self->in, bytes, (guint) n);
  return TRUE;
}

// ---- access ----

static void
on_decided (AccessCase *decided, gpointer connection)
{
  http_connection_wake (connection);
  unref (connection);
}

// A path that no mount serves is asked about too, so that only those who may read find out which
// paths exist.
static gboolean
ask (HttpConnection *self, gboolean asks)
{
  AccessRequest request = { .method = self->request.method };

  if (!asks)
    return http_connection_ask_route (self);
  request.user_agent = http_request_get (&self->request, "User-Agent");
  request.authorization = http_request_get (&self->request, "Authorization");
  if (!mounts_resolve (self->context->mounts, self->demand, &self->resolved, NULL))
    self->resolved = (Resolved) { 0 };
  request.action = self->route ? self->route->action : ACCESS_PLAYBACK;
  request.prefix = self->route ? self->route->prefix : NULL;
  request.path = self->demand->path;
  request.query = self->demand->query;
  request.token = self->demand->token;
  if (self->resolved.mount)
    request.mount = mount_get_path (self->resolved.mount);
  self->state = STATE_ASKING;
  g_atomic_ref_count_inc (&self->refs);
  self->asked = access_ask (self->context->access, self->visitor, &request, on_decided, self);
  if (!access_case_is_later (self->asked))
    unref (self);
  return TRUE;
}

static gboolean
step_asking (HttpConnection *self, gint64 now)
{
  switch (access_case_get_verdict (self->asked)) {
    case ACCESS_PENDING:
      return FALSE;
    case ACCESS_ADMITTED:
      if (access_case_get_basis (self->asked) != ACCESS_BY_SECRET
          && !http_request_names_us (&self->request, self->context->hosts))
        return http_connection_answer_text (self, SOUP_STATUS_FORBIDDEN, HOST_NAMES_WRONG);
      return self->route ? http_connection_ask_route (self) : http_connection_open_title (self);
    case ACCESS_ASKED:
      return http_connection_answer_text (self, SOUP_STATUS_UNAUTHORIZED, NULL);
    case ACCESS_REFUSED:
      return http_connection_answer_text (self, SOUP_STATUS_FORBIDDEN, NULL);
    case ACCESS_BUSY:
      break;
  }
  return http_connection_answer_text (
      self, SOUP_STATUS_SERVICE_UNAVAILABLE, access_case_get_reason (self->asked));
}

// ---- sending ----

// Ends the answer.
static void
clear_answer (HttpConnection *self)
{
  http_connection_clear_reply (self);
  g_clear_pointer (&self->reader, http_reader_end);
  http_sender_clear (&self->sender);
  if (self->entered)
    store_bytes_leave (self->entered);
  g_clear_pointer (&self->entered, store_bytes_unref);
  if (self->has_piece)
    http_pieces_leave (self->address);
  self->has_piece = FALSE;
  if (self->place)
    reader_limit_leave (self->place);
  g_clear_pointer (&self->place, g_free);
  g_clear_pointer (&self->opening, http_opening_free);
  g_clear_pointer (&self->asked, access_case_unref);
  if (self->resolved.mount)
    resolved_clear (&self->resolved);
  self->resolved = (Resolved) { 0 };
  g_clear_pointer (&self->demand, demand_free);
  http_request_clear (&self->request);
  self->body = (HttpBody) { 0 };
}

gboolean
http_connection_end_answer (HttpConnection *self, gint64 now)
{
  clear_answer (self);
  if (self->keeps) {
    begin_request (self, now);
    return TRUE;
  }
  shutdown (self->fd, SHUT_WR);
  self->deadline_ns = now + LINGER_NS;
  self->state = STATE_LINGERING;
  return TRUE;
}

static gboolean
step_writing (HttpConnection *self, gint64 now)
{
  int more = self->body.length > 0 && !self->request.head ? MSG_MORE : 0;
  gssize n;

  do
    n = send (self->fd, self->out->str + self->out_at, self->out->len - self->out_at,
        MSG_NOSIGNAL | more);
  while (n < 0 && errno == EINTR);
  if (n < 0 && errno != EAGAIN)
    return http_connection_end (self);
  if (n < 0 && now >= self->deadline_ns) {
    refusals_note (
        REFUSED_WRITE, self->peer, "the client does not read its responses (limits.write-timeout)");
    return http_connection_end (self);
  }
  if (n < 0)
    return http_connection_wait_until (self, self->deadline_ns);
  self->out_at += (gsize) n;
  if (self->out_at < self->out->len)
    return TRUE;
  if (!self->reader)
    return http_connection_end_answer (self, now);
  self->state = STATE_SENDING;
  return TRUE;
}

// Gives the client time to read the answer: a connection with unread bytes ends with a reset, after
// which the answer may be lost.
static gboolean
step_lingering (HttpConnection *self, gint64 now)
{
  guint8 bytes[READ_BYTES];
  gssize n = receive (self, bytes);

  if (n < 0 && now < self->deadline_ns)
    return http_connection_wait_until (self, self->deadline_ns);
  self->lingered += (gsize) MAX (n, 0);
  return n > 0 && self->lingered < LINGER_BYTES_MAX ? TRUE : http_connection_end (self);
}

// ---- the task ----

static gboolean (*const steps[]) (HttpConnection *self, gint64 now) = {
  [STATE_READING] = step_reading,
  [STATE_ASKING] = step_asking,
  [STATE_OPENING] = http_connection_step_opening,
  [STATE_WRITING] = step_writing,
  [STATE_SENDING] = http_connection_step_sending,
  [STATE_REPLYING] = http_connection_step_replying,
  [STATE_PASSING] = http_connection_step_passing,
  [STATE_TAKEN] = http_connection_step_taken,
  [STATE_LINGERING] = step_lingering,
};

static void
finish (HttpConnection *self)
{
  clear_answer (self);
  g_clear_pointer (&self->in, g_byte_array_unref);
  g_string_free (self->headers, TRUE);
  g_string_free (self->out, TRUE);
  // Before it is closed, as others may keep it open.
  loop_watch (&self->watch, 0, self->fd, 0);
  g_clear_object (&self->socket);
  loop_leave (&self->watch);
}

static gint64
run_connection (WeirTask *task, void *scratch, gint64 now_ns)
{
  HttpConnection *self =
      (HttpConnection *) ((guint8 *) task - G_STRUCT_OFFSET (HttpConnection, task));

  if (self->state == STATE_ENDED)
    return WEIR_NEVER;
  self->wake_ns = WEIR_NEVER;
  if (g_atomic_int_get (&self->closing))
    self->state = STATE_ENDED;
  while (self->state != STATE_ENDED && steps[self->state](self, now_ns))
    ;
  if (self->state != STATE_ENDED)
    return self->wake_ns;
  finish (self);
  return WEIR_NEVER;
}

HttpConnection *
http_connection_new (const HttpContext *context, GSocket *socket, GInetAddress *address,
    const gchar *peer, gboolean has_tls)
{
  static const LoopOps ops = { .ready = on_ready, .left = on_left };
  HttpConnection *self = g_new0 (HttpConnection, 1);
  gchar *ip = g_inet_address_to_string (address);

  g_atomic_ref_count_init (&self->refs);
  self->context = context;
  self->socket = socket;
  self->fd = g_socket_get_fd (socket);
  self->address = g_object_ref (address);
  self->visitor = access_peer_new (ip, has_tls ? "https" : "http");
  self->peer = g_strdup (peer);
  self->in = g_byte_array_new ();
  self->headers = g_string_new (NULL);
  self->out = g_string_sized_new (OUT_BYTES);
  limits_get (&self->limits);
  g_free (ip);
  g_socket_set_blocking (socket, FALSE);
  begin_request (self, weir_now_ns ());
  if (weir_task_init (&self->task, context->workers, 0, run_connection) < 0)
    g_error ("out of memory");
  loop_join (context->loop, &self->watch, &ops);
  return self;
}

void
http_connection_start (HttpConnection *self)
{
  // Once the loop watches the socket, which can be written, the task runs, and the connection may
  // end and be freed.
  if (!loop_watch (&self->watch, 0, self->fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET))
    http_connection_close (self);
}
