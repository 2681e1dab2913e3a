// SPDX-License-Identifier: LGPL-2.1-or-later
// One state machine: a connection reads a request, asks for access, finds a title or a route,
// answers, and goes on with the next request. All of it runs in the connection's task.
#include "outlets/http/http_connection.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/log.h"
#include "config/host_names.h"
#include "outlets/http/http_answer.h"
#include "outlets/http/http_counts.h"
#include "outlets/http/http_elsewhere.h"
#include "outlets/http/http_opening.h"
#include "outlets/http/http_passer.h"
#include "outlets/http/http_pieces.h"
#include "outlets/http/http_reader.h"
#include "outlets/http/http_refusal.h"
#include "outlets/http/http_sender.h"
#include "readers/reader_limit.h"

#define NS_PER_MS 1000000
#define NS_PER_S G_GINT64_CONSTANT (1000000000)
#define READ_BYTES 4096
#define OUT_BYTES 512 // of most answers
#define BURST 2       // seconds of requests that may come at once
#define GONE (EPOLLRDHUP | EPOLLHUP | EPOLLERR)
#define LINGER_NS (2 * NS_PER_S)      // for the client to read the last answer
#define LINGER_BYTES_MAX (256 * 1024) // of the client, which are read and dropped meanwhile
#define STALL_NS (60 * NS_PER_S)      // a reader that takes nothing for so long is closed

typedef enum {
  STATE_READING,  // a request
  STATE_ASKING,   // for access
  STATE_OPENING,  // the title
  STATE_WRITING,  // the head of the answer, or all of it
  STATE_SENDING,  // the title
  STATE_REPLYING, // waiting for the reply of a route
  STATE_PASSING,  // the reply
  STATE_TAKEN,    // the reply itself writes to the socket
  STATE_LINGERING,
  STATE_ENDED,
} State;

struct _HttpConnection {
  WeirTask task;
  LoopWatch watch;      // of the socket
  gatomicrefcount refs; // one for the loop, one for each case that is not decided
  const HttpContext *context;
  GSocket *socket;
  int fd; // of the socket
  GInetAddress *address;
  AccessPeer *visitor;
  gchar *peer;
  gint gone, closing; // atomic: the client has closed the connection; it is to be closed
  gint can_read;      // atomic: bytes may have come since the last that were received

  // The fields below are the task's.
  State state;
  gint64 wake_ns; // when the task runs again at the latest
  Limits limits;
  GByteArray *in; // received
  RequestCheck check;
  gint64 deadline_ns; // of the request, or of writing the answer
  gint64 earliest_ns; // when a request would have come at the allowed rate
  gsize lingered;
  HttpRequest request;
  Demand *demand;
  Resolved resolved; // `mount` is NULL if nothing was found
  AccessDecision *asked;
  gchar *place; // the mount on which the reader has a place
  HttpOpening *opening;
  StoreBytes *entered; // the title as a stream of its store; NULL: not counted
  gboolean has_piece;  // of the address, under way
  HttpBody body;
  gboolean keeps;   // the connection stays open after the answer
  GString *headers; // of a route's reply
  GString *out;     // the answer
  gsize out_at;
  HttpSender sender;
  HttpReader *reader;
  const HttpRoute *route; // that answers the request, or NULL
  HttpAsked question;
  HttpReply *reply;
  HttpPasser passer;
  gboolean takes_over; // the reply takes the socket over after the head
};

// ---- waking ----

GInetAddress *
http_connection_get_address (HttpConnection *self)
{
  return self->address;
}

static void
wake_connection (gpointer connection)
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
  wake_connection (self);
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
  wake_connection (self);
}

static void
on_left (LoopWatch *watch)
{
  unref (connection_of (watch));
}

// Returns whether the task goes on: not before `wake_ns`, or an event.
static gboolean
wait_until (HttpConnection *self, gint64 wake_ns)
{
  self->wake_ns = MIN (self->wake_ns, wake_ns);
  return FALSE;
}

// ---- answers ----

// Says which pages may read the answer (CORS): all, unless the address of their user is the reason
// for it. Any page could then read the streams of a network by the browser of somebody inside.
static void
add_readers (HttpConnection *self)
{
  gboolean is_by_address = self->asked
                           && access_decision_get_verdict (self->asked) == ACCESS_ADMITTED
                           && access_decision_get_basis (self->asked) == ACCESS_BY_ADDRESS;
  const gchar *const *allowed = (const gchar *const *) self->context->allow_origins;
  const gchar *origin = is_by_address ? http_request_find_origin (&self->request, allowed) : "*";

  if (origin)
    http_answer_add (self->out, "Access-Control-Allow-Origin", origin);
  if (origin && self->route->exposed)
    http_answer_add (self->out, "Access-Control-Expose-Headers", self->route->exposed);
  if (is_by_address)
    http_answer_add (self->out, "Vary", "Origin");
}

// Begins the answer: its head is in `out`.
static void
begin_answer (HttpConnection *self, guint status)
{
  http_counts_add_answer (status);
  http_answer_begin (self->out, status, self->keeps);
  if (self->route && self->route->is_shared)
    add_readers (self);
  self->out_at = 0;
  self->deadline_ns = weir_now_ns () + (gint64) self->limits.write_ms * NS_PER_MS;
  self->state = STATE_WRITING;
}

// Answers with a text; `reason` may be NULL.
static gboolean
answer_text (HttpConnection *self, guint status, const gchar *reason)
{
  self->body.length = 0;
  begin_answer (self, status);
  if (status == SOUP_STATUS_METHOD_NOT_ALLOWED)
    http_route_add_allow (self->route, self->out);
  if (status == SOUP_STATUS_SERVICE_UNAVAILABLE)
    http_answer_add (self->out, "Retry-After", HTTP_RETRY_AFTER);
  for (const gchar *const *challenge =
           status == SOUP_STATUS_UNAUTHORIZED ? access_decision_get_challenges (self->asked) : NULL;
      challenge && *challenge; challenge++)
    http_answer_add (self->out, "WWW-Authenticate", *challenge);
  http_answer_end_text (self->out, status, reason, self->request.head);
  return TRUE;
}

// Answers with the reason of a limit, which is logged, too.
static gboolean
answer_refused (HttpConnection *self, guint status, RefusedReason reason, const gchar *text)
{
  refusals_note (reason, self->peer, "%s", text);
  return answer_text (self, status, text);
}

// Tells a browser that pages of other sites may send credentials here (CORS preflight). It asks
// without credentials, so access is not asked for.
static gboolean
answer_options (HttpConnection *self)
{
  self->body.length = 0;
  begin_answer (self, SOUP_STATUS_NO_CONTENT);
  http_route_add_options (self->route, self->out);
  g_string_append (self->out, "\r\n");
  return TRUE;
}

static gboolean
end_connection (HttpConnection *self)
{
  self->state = STATE_ENDED;
  return FALSE;
}

static gboolean end_answer (HttpConnection *self, gint64 now);

// ---- titles ----

// Answers that the title cannot be had now. Takes ownership of the reason.
static gboolean
answer_unavailable (HttpConnection *self, gchar *reason)
{
  answer_text (self, SOUP_STATUS_SERVICE_UNAVAILABLE, reason);
  g_free (reason);
  return TRUE;
}

static gboolean
open_title (HttpConnection *self)
{
  Mount *mount = self->resolved.mount;
  Store *store = mount && self->resolved.title ? mount_dup_store (mount) : NULL;
  gchar *name = store ? title_decode_name (self->resolved.title) : NULL;

  if (!name && mount && mount_lacks (mount))
    return answer_unavailable (self, g_strdup_printf (MOUNT_LACKS_PROBLEM, mount_get_path (mount)));
  if (!name) {
    g_clear_pointer (&store, store_unref);
    return answer_text (self, SOUP_STATUS_NOT_FOUND, NULL);
  }
  self->opening = http_opening_new (store, name, wake_connection, self);
  self->state = STATE_OPENING;
  return TRUE;
}

static void
close_reader (gpointer connection, const gchar *reason)
{
  HttpConnection *self = connection;

  log_event ("reader %s out: %s", self->peer, reason);
  http_connection_close (self);
}

// Reports whether the answer is a piece for a swarm's client, and counts it then.
static gboolean
enter_piece (HttpConnection *self)
{
  const gchar *pace = http_request_get (&self->request, HTTP_PIECES_HEADER);

  self->has_piece = pace && g_ascii_strcasecmp (pace, "off") == 0
                    && self->body.status == SOUP_STATUS_PARTIAL_CONTENT
                    && self->body.length <= HTTP_PIECE_MAX && http_pieces_enter (self->address);
  return self->has_piece;
}

static gboolean
answer_title (HttpConnection *self, StoreBytes *bytes)
{
  gboolean has_body;
  const HttpRefusal *problem;
  gchar *full;

  http_request_choose (&self->request, bytes->size, bytes->etag, bytes->modified, &self->body);
  if (self->body.status == SOUP_STATUS_REQUESTED_RANGE_NOT_SATISFIABLE) {
    begin_answer (self, self->body.status);
    g_string_append_printf (
        self->out, "Content-Range: bytes */%" G_GUINT64_FORMAT "\r\n", bytes->size);
    http_answer_end_text (self->out, self->body.status, NULL, self->request.head);
    self->body.length = 0;
    return TRUE;
  }
  has_body = self->body.length > 0 && !self->request.head;
  problem = has_body ? http_refusal_of_reader (self->resolved.mount) : NULL;
  if (problem)
    return answer_refused (self, problem->status, problem->reason, problem->text);
  if (has_body)
    self->place = g_strdup (mount_get_path (self->resolved.mount));
  full = has_body
             ? http_refusal_enter_store (bytes, self->body.start, self->peer, self->demand->path)
             : NULL;
  if (full)
    return answer_unavailable (self, full);
  if (has_body)
    self->entered = store_bytes_ref (bytes);
  begin_answer (self, self->body.status);
  http_answer_end_title (self->out, bytes, self->resolved.title, &self->body);
  if (!has_body) {
    self->body.length = 0;
    return TRUE;
  }
  http_sender_init (&self->sender, bytes, self->body.start, self->body.length, enter_piece (self),
      wake_connection, self);
  self->reader = http_reader_new (self->place, self->peer, close_reader, self);
  return TRUE;
}

static gboolean
step_opening (HttpConnection *self, gint64 now)
{
  StoreBytes *bytes = NULL;
  GError *error = NULL;
  const gchar *text;
  guint status;

  if (!http_opening_take (self->opening, &bytes, &error))
    return FALSE;
  g_clear_pointer (&self->opening, http_opening_free);
  if (bytes) {
    answer_title (self, bytes);
    store_bytes_unref (bytes);
    return TRUE;
  }
  status = http_refusal_of_error (error, &text);
  answer_text (self, status, text);
  g_error_free (error);
  return TRUE;
}

static gboolean
step_sending (HttpConnection *self, gint64 now)
{
  static LogLimit limit = { .burst = 10, .interval_ms = 1000 };
  HttpSenderState state = g_atomic_int_get (&self->gone)
                              ? HTTP_SENDER_GONE
                              : http_sender_run (&self->sender, self->fd, now);

  http_reader_update (self->reader, self->sender.sent, self->sender.deficit_ns);
  switch (state) {
    case HTTP_SENDER_DONE:
      return end_answer (self, now);
    case HTTP_SENDER_AGAIN:
      return wait_until (self, self->sender.wake_ns);
    case HTTP_SENDER_SOCKET_FULL:
      if (now < self->sender.full_since_ns + STALL_NS)
        return wait_until (self, self->sender.full_since_ns + STALL_NS);
      refusals_note (REFUSED_WRITE, self->peer, "the reader has taken nothing for 60 s");
      return end_connection (self);
    case HTTP_SENDER_FAILED:
      log_event_limited (&limit, "reader %s out: %s: %s", self->peer, self->demand->path,
          self->sender.error->message);
      return end_connection (self);
    case HTTP_SENDER_GONE:
      break;
  }
  return end_connection (self);
}

// ---- routes ----

// Sets `route` and `demand` of the request. Returns whether access is asked for.
static gboolean
find_route (HttpConnection *self)
{
  const HttpRoute *route = http_route_find (self->context->routes, self->request.target);
  gchar *target = route ? route->dup_target (route->outlet, self->request.target) : NULL;
  gboolean asks = !route || target;

  self->route = route;
  if (asks)
    self->demand = demand_new (target ? target : self->request.target);
  g_free (target);
  return asks;
}

static gboolean
ask_route (HttpConnection *self)
{
  self->question = (HttpAsked) { &self->request, self->demand, &self->resolved, self->visitor,
    self->asked, self->address, self->peer,
    http_request_names_us (&self->request, self->context->hosts), wake_connection, self };
  self->reply = self->route->answer (self->route->outlet, &self->question);
  self->state = STATE_REPLYING;
  return TRUE;
}

// Writes the head, and the body if that is a text.
static void
write_head (HttpConnection *self, const HttpHead *head)
{
  self->keeps &= !head->type || head->length >= 0;
  begin_answer (self, head->status);
  g_string_append_len (self->out, head->headers->str, (gssize) head->headers->len);
  if (!head->type) {
    http_answer_end_text (self->out, head->status, head->reason, self->request.head);
    return;
  }
  http_answer_add (self->out, "Content-Type", head->type);
  http_answer_add (self->out, "X-Content-Type-Options", "nosniff");
  if (head->length >= 0)
    http_answer_add_length (self->out, (guint64) head->length);
  g_string_append (self->out, "\r\n");
}

static gboolean
step_replying (HttpConnection *self, gint64 now)
{
  HttpHead head = { .headers = g_string_truncate (self->headers, 0) };
  gint64 wake_ns = WEIR_NEVER;
  gboolean known = !g_atomic_int_get (&self->gone)
                   && self->reply->ops->begin (self->reply, &head, now, &wake_ns);

  if (known) {
    gboolean has_body = head.type && !self->request.head && head.length != 0;

    write_head (self, &head);
    self->takes_over = has_body && self->reply->ops->take_over;
    http_passer_init (&self->passer, self->out, has_body && !self->takes_over ? self->reply : NULL);
    self->state = STATE_PASSING;
  }
  if (g_atomic_int_get (&self->gone))
    return end_connection (self);
  return known || wait_until (self, wake_ns);
}

// The head is sent.
static gboolean
hand_over (HttpConnection *self)
{
  self->state = STATE_TAKEN;
  return self->reply->ops->take_over (self->reply, self->socket) || end_connection (self);
}

static gboolean
step_taken (HttpConnection *self, gint64 now)
{
  return g_atomic_int_get (&self->gone) ? end_connection (self) : FALSE;
}

static gboolean
step_passing (HttpConnection *self, gint64 now)
{
  guint64 before = self->passer.sent;
  HttpPasserState state =
      g_atomic_int_get (&self->gone) ? HTTP_PASSER_GONE : http_passer_run (&self->passer, self->fd);

  if (self->passer.sent > before)
    self->deadline_ns = now + (gint64) self->limits.write_ms * NS_PER_MS;
  switch (state) {
    case HTTP_PASSER_DONE:
      return self->takes_over ? hand_over (self) : end_answer (self, now);
    case HTTP_PASSER_AGAIN:
      return FALSE;
    case HTTP_PASSER_TURN:
      return wait_until (self, now);
    case HTTP_PASSER_FULL:
      if (now < self->deadline_ns)
        return wait_until (self, self->deadline_ns);
      refusals_note (REFUSED_WRITE, self->peer,
          "the client does not read its responses (limits.write-timeout)");
      return end_connection (self);
    case HTTP_PASSER_GONE:
      break;
  }
  return end_connection (self);
}

static void
clear_reply (HttpConnection *self)
{
  http_passer_clear (&self->passer);
  self->passer = (HttpPasser) { 0 };
  if (self->reply)
    self->reply->ops->free (self->reply);
  self->reply = NULL;
  self->takes_over = FALSE;
  self->route = NULL;
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
    return wait_until (self, self->deadline_ns);
  if (self->in->len > 0)
    return answer_refused (self, SOUP_STATUS_REQUEST_TIMEOUT, REFUSED_TIMEOUT,
        "a request takes too long (limits.request-timeout)");
  refusals_count (REFUSED_IDLE);
  return end_connection (self);
}

// Delays the requests of a client that sends too many.
static gboolean
may_pass (HttpConnection *self, gint64 now)
{
  self->earliest_ns = MAX (self->earliest_ns, now - BURST * NS_PER_S);
  if (self->earliest_ns > now)
    return wait_until (self, self->earliest_ns);
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
  if (self->check.body > 0)
    self->request.body = g_bytes_new (self->in->data + self->check.head, self->check.body);
  g_byte_array_remove_range (self->in, 0, (guint) size);
  self->keeps = status == 0 && self->request.keeps;
  if (status != 0)
    return answer_refused (self, status, REFUSED_MALFORMED,
        status == SOUP_STATUS_LENGTH_REQUIRED
            ? "a request has a body in chunks; its length must be in Content-Length"
            : "a request is malformed");
  asks = find_route (self);
  if (!(http_route_get_methods (self->route) & self->request.kind))
    return answer_text (self, SOUP_STATUS_METHOD_NOT_ALLOWED, NULL);
  return self->request.kind == HTTP_OPTIONS ? answer_options (self) : ask (self, asks);
}

// Lets the client send the body for which it waits. If its buffer has no room for this, it sends
// the body after a while, or the request takes too long; with room for a part, the connection ends.
static void
let_continue (HttpConnection *self)
{
  static const gchar text[] = "HTTP/1.1 100 Continue\r\n\r\n";
  gssize n;

  if (!self->check.continues || self->check.head == 0 || self->in->len > self->check.head)
    return;
  self->check.continues = FALSE;
  n = send (self->fd, text, sizeof text - 1, MSG_NOSIGNAL);
  if (n > 0 && n < (gssize) sizeof text - 1)
    http_connection_close (self);
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

    return answer_refused (self, refusal->status, refusal->reason, refusal->text);
  }
  if (size > 0)
    return may_pass (self, now) && take_request (self, size);
  let_continue (self);
  n = receive (self, bytes);
  if (n < 0)
    return check_time (self, now);
  if (n == 0)
    return end_connection (self);
  if (self->in->len == 0)
    self->deadline_ns = now + (gint64) self->limits.request_ms * NS_PER_MS;
  g_byte_array_append (self->in, bytes, (guint) n);
  return TRUE;
}

// ---- access ----

static void
on_decided (AccessDecision *decided, gpointer connection)
{
  wake_connection (connection);
  unref (connection);
}

// Returns why the client may not ask although it was admitted, or NULL: without a secret of its
// user, a web page may have made the browser ask.
static const gchar *
find_stranger (HttpConnection *self)
{
  const gchar *scheme = access_peer_get_protocol (self->visitor);
  const gchar *const *allowed = (const gchar *const *) self->context->allow_origins;

  if (access_decision_get_basis (self->asked) == ACCESS_BY_SECRET)
    return NULL;
  if (!http_request_names_us (&self->request, self->context->hosts))
    return HOST_NAMES_WRONG;
  return self->route && self->route->changes && self->request.kind == HTTP_POST
                 && http_request_is_foreign (&self->request, scheme, allowed)
             ? "the page is of another site, so its user must send a password or a token, or "
               "http.allow-origins must name the site"
             : NULL;
}

// Sends a new reader to another member of the cluster. Returns FALSE if it stays here.
static gboolean
answer_elsewhere (HttpConnection *self)
{
  g_autofree gchar *url = http_elsewhere_dup_url (
      self->route, &self->request, self->demand, &self->resolved, self->visitor);

  if (url) {
    begin_answer (self, SOUP_STATUS_TEMPORARY_REDIRECT);
    http_answer_add (self->out, "Location", url);
    http_answer_end_text (self->out, SOUP_STATUS_TEMPORARY_REDIRECT, NULL, self->request.head);
  }
  return url != NULL;
}

// A path that no mount serves is asked about too, so that only those who may read find out which
// paths exist.
static gboolean
ask (HttpConnection *self, gboolean asks)
{
  AccessRequest request = { .method = self->request.method };
  const gchar *problem = http_proxies_find_client (
      self->context->proxies, &self->request, self->address, &self->visitor);

  if (problem)
    return answer_text (self, SOUP_STATUS_BAD_REQUEST, problem);
  if (!asks)
    return ask_route (self);
  request.user_agent = http_request_get (&self->request, "User-Agent");
  request.authorization = http_request_get (&self->request, "Authorization");
  if (!mounts_resolve (self->context->mounts, self->demand, &self->resolved, NULL))
    self->resolved = (Resolved) { 0 };
  request.action = self->route ? self->route->action : ACCESS_PLAYBACK;
  request.prefix = self->route ? self->route->prefix : NULL;
  request.path = self->demand->path;
  request.query = self->demand->query;
  request.token = self->demand->token;
  request.mount = resolved_get_mount_path (&self->resolved);
  self->state = STATE_ASKING;
  g_atomic_ref_count_inc (&self->refs);
  self->asked = access_ask (self->context->access, self->visitor, &request, on_decided, self);
  if (!access_decision_is_later (self->asked))
    unref (self);
  return TRUE;
}

static gboolean
step_asking (HttpConnection *self, gint64 now)
{
  g_autoptr (GError) error = NULL;
  const gchar *problem;

  switch (access_decision_get_verdict (self->asked)) {
    case ACCESS_PENDING:
      return FALSE;
    case ACCESS_ADMITTED:
      problem = find_stranger (self);
      if (problem)
        return answer_text (self, SOUP_STATUS_FORBIDDEN, problem);
      if (answer_elsewhere (self))
        return TRUE;
      if (self->route
          && !mounts_make (self->context->mounts, self->demand, &self->resolved, &error))
        return answer_unavailable (self, g_strdup (error->message));
      return self->route ? ask_route (self) : open_title (self);
    case ACCESS_ASKED:
      return answer_text (self, SOUP_STATUS_UNAUTHORIZED, NULL);
    case ACCESS_REFUSED:
      return answer_text (self, SOUP_STATUS_FORBIDDEN, NULL);
    case ACCESS_BUSY:
      break;
  }
  return answer_text (
      self, SOUP_STATUS_SERVICE_UNAVAILABLE, access_decision_get_reason (self->asked));
}

// ---- sending ----

// Ends the answer.
static void
clear_answer (HttpConnection *self)
{
  clear_reply (self);
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
  g_clear_pointer (&self->asked, access_decision_unref);
  resolved_clear (&self->resolved);
  self->resolved = (Resolved) { 0 };
  g_clear_pointer (&self->demand, demand_free);
  http_request_clear (&self->request);
  self->body = (HttpBody) { 0 };
}

static gboolean
end_answer (HttpConnection *self, gint64 now)
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
    return end_connection (self);
  if (n < 0 && now >= self->deadline_ns) {
    refusals_note (
        REFUSED_WRITE, self->peer, "the client does not read its responses (limits.write-timeout)");
    return end_connection (self);
  }
  if (n < 0)
    return wait_until (self, self->deadline_ns);
  self->out_at += (gsize) n;
  if (self->out_at < self->out->len)
    return TRUE;
  if (!self->reader)
    return end_answer (self, now);
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
    return wait_until (self, self->deadline_ns);
  self->lingered += (gsize) MAX (n, 0);
  return n > 0 && self->lingered < LINGER_BYTES_MAX ? TRUE : end_connection (self);
}

// ---- the task ----

// A step returns whether the task goes on with the next step.
static gboolean (*const steps[]) (HttpConnection *self, gint64 now) = {
  [STATE_READING] = step_reading,
  [STATE_ASKING] = step_asking,
  [STATE_OPENING] = step_opening,
  [STATE_WRITING] = step_writing,
  [STATE_SENDING] = step_sending,
  [STATE_REPLYING] = step_replying,
  [STATE_PASSING] = step_passing,
  [STATE_TAKEN] = step_taken,
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
