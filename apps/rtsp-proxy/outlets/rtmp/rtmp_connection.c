// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtmp/rtmp_connection.h"

#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/log.h"
#include "outlets/caller/caller.h"
#include "outlets/rtmp/rtmp_counts.h"
#include "outlets/rtmp/rtmp_media.h"
#include "text/rtmp_name.h"

#define INPUT (64 * 1024) // bytes; a client's first step has 3 KiB
#define READS_MAX 16      // of one connection, before others get their turn
#define TICK_MS 1000
#define LEAVE_NS (2 * G_GINT64_CONSTANT (1000000000))

// Shared by all clients, because any peer can cause refusals as fast as it connects.
static LogLimit refusals = { .burst = 100, .interval_ms = 100 };

typedef enum {
  STATE_OPENING, // until the client asks to publish
  STATE_ASKING,  // for the decision on access
  STATE_PUBLISHING,
  STATE_LEAVING, // the last answer is on its way
} State;

enum { SOCKET, PIPE }; // what the loop waits for

struct _RtmpConnection {
  Caller caller; // first
  LoopWatch watch;
  const RtmpContext *context;
  GSocket *socket;
  guint32 events; // of the socket, that the loop waits for
  gint64 since;   // when it came; then when it began to leave
  State state;
  WeirRtmpSession *session;
  guint8 *input;
  gsize n_input;
  gboolean named; // it has sent credentials
  RtmpMedia *media;
  GQueue parts; // of GBytes, which the published stream does not take yet
};

// ---- access ----

// Tells the client, and closes the connection when it has read that.
static void
refuse (RtmpConnection *self, const gchar *code, const gchar *why)
{
  log_event_limited (&refusals, "publisher %s refused: %s", self->caller.peer, why);
  weir_rtmp_session_refuse (self->session, code, why);
  self->state = STATE_LEAVING;
  self->since = clock_now ();
}

static void
begin_publishing (RtmpConnection *self)
{
  GError *error = NULL;

  if (!caller_publish (&self->caller, &error)) {
    // The message has the address of the other one.
    refuse (self, "NetStream.Publish.BadName",
        g_error_matches (error, G_IO_ERROR, G_IO_ERROR_BUSY)
            ? "another client publishes to the mount"
            : error->message);
    g_error_free (error);
    return;
  }
  self->media = rtmp_media_new (self->caller.peer);
  self->state = STATE_PUBLISHING;
  weir_rtmp_session_accept (self->session);
}

static void
check_target (RtmpConnection *self)
{
  const gchar *why;

  if (caller_check_publish (&self->caller, &why) == PUBLISH_POSSIBLE)
    begin_publishing (self);
  else
    refuse (self, "NetStream.Publish.BadName", why);
}

static void
check_verdict (RtmpConnection *self)
{
  switch (access_decision_get_verdict (self->caller.asked)) {
    case ACCESS_PENDING:
      break;
    case ACCESS_ASKED:
      refuse (self, "NetStream.Publish.Denied",
          self->named ? "its credentials are not accepted"
                      : "its URL needs credentials: rtmp://HOST/MOUNT?user=USER&pass=PASSWORD");
      break;
    case ACCESS_REFUSED:
      refuse (self, "NetStream.Publish.Denied", "it has no permission");
      break;
    case ACCESS_BUSY:
      refuse (self, "NetStream.Failed", "no decision is possible now");
      break;
    case ACCESS_ADMITTED:
      // Only those who may do it find out which mounts exist.
      check_target (self);
  }
}

static void
take_publish (RtmpConnection *self, const WeirRtmpEvent *event)
{
  const gchar *wrong;
  RtmpName name;

  if (!rtmp_name_read (&name, event->app, event->name, &wrong)) {
    g_autofree gchar *why = g_strdup_printf ("the name of its stream cannot be used: %s", wrong);

    refusals_count (REFUSED_MALFORMED);
    refuse (self, "NetStream.Publish.BadName", why);
    return;
  }
  self->caller.demand = demand_new (name.url);
  self->state = STATE_ASKING;
  self->named = name.user || self->caller.demand->token;
  caller_ask (&self->caller, ACCESS_PUBLISH, name.user, name.secret, self->caller.demand->token);
  rtmp_name_clear (&name);
  check_verdict (self);
}

// ---- sending ----

// Returns FALSE if the connection has failed.
static gboolean
send_output (RtmpConnection *self)
{
  g_autoptr (GError) error = NULL;
  const uint8_t *output;
  size_t len;
  gssize n;

  for (;;) {
    output = weir_rtmp_session_get_output (self->session, &len);
    if (len == 0)
      return TRUE;
    n = g_socket_send (self->socket, (const gchar *) output, len, NULL, &error);
    if (n < 0)
      break;
    weir_rtmp_session_drop_output (self->session, (size_t) n);
  }
  return g_error_matches (error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK);
}

static gboolean
has_output (RtmpConnection *self)
{
  size_t len;

  weir_rtmp_session_get_output (self->session, &len);
  return len > 0;
}

// Gives the published stream what it takes.
static void
write_parts (RtmpConnection *self)
{
  GBytes *part;

  while ((part = g_queue_peek_head (&self->parts))) {
    gsize len;
    const guint8 *bytes = g_bytes_get_data (part, &len);
    gboolean is_taken = len > 0 ? published_stream_write (self->caller.published, bytes, len)
                                : published_stream_begin_anew (self->caller.published);

    if (!is_taken)
      return;
    g_bytes_unref (g_queue_pop_head (&self->parts));
  }
}

// ---- reading ----

static gboolean
may_read (RtmpConnection *self)
{
  return self->state != STATE_ASKING && !has_output (self) && g_queue_is_empty (&self->parts);
}

// Returns NULL, or why the connection has ended.
static const gchar *
take_event (RtmpConnection *self, const WeirRtmpEvent *event)
{
  const gchar *problem = NULL;

  if (event->type == WEIR_RTMP_END)
    return "it has ended the stream";
  if (event->type == WEIR_RTMP_PUBLISH)
    take_publish (self, event);
  else
    problem = rtmp_media_take (self->media, event, &self->parts);
  if (self->caller.published)
    write_parts (self);
  return problem;
}

// Notes what the client has done wrong. What was still to be sent tells it.
static const gchar *
note_problem (RtmpConnection *self)
{
  const gchar *problem = weir_rtmp_session_get_problem (self->session);

  if (!self->caller.published)
    refusals_note (REFUSED_MALFORMED, self->caller.peer, "%s", problem);
  send_output (self);
  return problem;
}

// Reads the messages that are there. Returns NULL, or why the connection has ended.
static const gchar *
take_input (RtmpConnection *self)
{
  const gchar *problem = NULL;
  WeirRtmpEvent event;
  gsize at = 0, used;
  gint result = 1;

  while (!problem && may_read (self) && self->state != STATE_LEAVING && result != 0) {
    result =
        weir_rtmp_session_read (self->session, self->input + at, self->n_input - at, &used, &event);
    at += used;
    if (result > 0)
      problem = take_event (self, &event);
    else if (result < 0)
      problem = note_problem (self);
    else if (has_output (self) && send_output (self) && !has_output (self))
      result = 1; // it stopped at what was to be sent
  }
  self->n_input -= at;
  memmove (self->input, self->input + at, self->n_input);
  return problem;
}

// Reads once. Returns NULL, or why the connection has ended; sets `*more` if there may be more.
static const gchar *
receive (RtmpConnection *self, gboolean *more)
{
  GError *error = NULL;
  gssize n;

  if (self->state == STATE_LEAVING)
    self->n_input = 0;
  n = g_socket_receive (
      self->socket, (gchar *) self->input + self->n_input, INPUT - self->n_input, NULL, &error);
  *more = n > 0;
  self->n_input += (gsize) MAX (n, 0);
  if (n >= 0)
    return n > 0 ? NULL : "the connection has ended";
  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK)) {
    g_error_free (error);
    return NULL;
  }
  g_error_free (error);
  return "the connection has failed";
}

static const gchar *
read_all (RtmpConnection *self)
{
  const gchar *problem = take_input (self);
  gboolean more = TRUE;

  for (guint i = 0; !problem && more && i < READS_MAX && may_read (self); i++) {
    problem = receive (self, &more);
    if (!problem)
      problem = take_input (self);
  }
  return problem;
}

// ---- events ----

static void
end_connection (RtmpConnection *self, const gchar *reason)
{
  self->context->ended (self, reason, self->context->outlet);
}

// The loop always tells of a connection that has failed.
static void
watch_socket (RtmpConnection *self)
{
  guint32 events =
      EPOLLHUP | EPOLLERR | (may_read (self) ? EPOLLIN : 0u) | (has_output (self) ? EPOLLOUT : 0u);

  if (events == self->events)
    return;
  self->events = events;
  if (!loop_watch (&self->watch, SOCKET, g_socket_get_fd (self->socket), events))
    caller_close (&self->caller, "the connection cannot be watched");
}

// The published stream may put another socket in the place of this one.
static void
watch_pipe (RtmpConnection *self)
{
  if (!g_queue_is_empty (&self->parts)
      && !loop_watch (&self->watch, PIPE, published_stream_get_fd (self->caller.published),
          EPOLLOUT | EPOLLONESHOT))
    caller_close (&self->caller, "the connection cannot be watched");
}

// Returns NULL, or why the connection has ended.
static const gchar *
step (RtmpConnection *self)
{
  const gchar *closing = caller_get_closing (&self->caller);

  if (closing)
    return closing;
  if (self->state == STATE_ASKING)
    check_verdict (self);
  if (!send_output (self))
    return "the connection has failed";
  if (self->caller.published)
    write_parts (self);
  return read_all (self);
}

static void
run_connection (RtmpConnection *self)
{
  const gchar *problem = step (self);

  if (problem) {
    end_connection (self, problem);
    return;
  }
  // Whoever is refused closes the connection; until then it must get the answer.
  if (self->state == STATE_LEAVING && !has_output (self))
    g_socket_shutdown (self->socket, FALSE, TRUE, NULL);
  watch_socket (self);
  watch_pipe (self);
}

static RtmpConnection *
connection_of (LoopWatch *watch)
{
  return (RtmpConnection *) ((guint8 *) watch - G_STRUCT_OFFSET (RtmpConnection, watch));
}

static void
on_ready (LoopWatch *watch, guint number, guint32 events)
{
  RtmpConnection *self = connection_of (watch);

  // A read would say so.
  if (number == SOCKET && (events & (EPOLLHUP | EPOLLERR)) && !may_read (self))
    end_connection (self, "the connection has failed");
  else
    run_connection (self);
}

static void
on_woken (Caller *caller)
{
  run_connection ((RtmpConnection *) caller);
}

// Checks what no event says.
static void
on_tick (LoopWatch *watch, gint64 now)
{
  RtmpConnection *self = connection_of (watch);
  const gchar *problem = NULL;
  Limits limits;

  loop_set_due (watch, loop_next_tick (now, TICK_MS));
  limits_get (&limits);
  if (self->state == STATE_OPENING && now - self->since > (gint64) limits.request_ms * 1000000) {
    problem = "it did not ask to publish in time (limits.request-timeout)";
    refusals_note (REFUSED_TIMEOUT, self->caller.peer, "%s", problem);
  } else if (self->state == STATE_LEAVING && now - self->since > LEAVE_NS) {
    problem = "it was refused";
  } else if (self->state == STATE_PUBLISHING) {
    caller_check_mount (&self->caller);
  }
  if (problem)
    end_connection (self, problem);
}

static void
on_left (LoopWatch *watch)
{
  caller_unref (&connection_of (watch)->caller);
}

// ---- the beginning and the end ----

static WeirRtmpSession *
make_session (void)
{
  uint8_t random[WEIR_RTMP_RANDOM];

  for (gsize i = 0; i < sizeof random; i++)
    random[i] = (uint8_t) g_random_int ();
  return weir_rtmp_session_new (random);
}

static void
connection_free (Caller *caller)
{
  g_free (caller);
}

static void
join (RtmpConnection *self, Loop *loop)
{
  static const LoopOps ops = { on_ready, on_tick, on_left };

  caller_ref (&self->caller); // of the loop
  loop_join (loop, &self->watch, &ops);
  loop_set_due (&self->watch, loop_next_tick (self->since, TICK_MS));
}

RtmpConnection *
rtmp_connection_new (
    const RtmpContext *context, GSocket *socket, GInetSocketAddress *from, gboolean has_tls)
{
  static const CallerOps ops = { "RTMP", on_woken, connection_free };
  WeirRtmpSession *session = make_session ();
  RtmpConnection *self;

  if (!session) {
    connections_leave (context->callers->connections, g_inet_socket_address_get_address (from));
    g_object_unref (socket);
    return NULL;
  }
  self = g_new0 (RtmpConnection, 1);
  caller_init (&self->caller, &ops, context->callers, from, has_tls ? "rtmps" : "rtmp");
  self->context = context;
  self->socket = socket;
  self->session = session;
  self->since = clock_now ();
  self->input = g_malloc (INPUT);
  g_queue_init (&self->parts);
  rtmp_counts_add_connections (1);
  join (self, context->callers->loop);
  return self;
}

void
rtmp_connection_start (RtmpConnection *self)
{
  run_connection (self);
}

void
rtmp_connection_free (RtmpConnection *self, const gchar *reason)
{
  rtmp_counts_add_connections (-1);
  loop_watch (&self->watch, SOCKET, g_socket_get_fd (self->socket), 0);
  loop_leave (&self->watch);
  g_queue_clear_full (&self->parts, (GDestroyNotify) g_bytes_unref);
  g_clear_pointer (&self->media, rtmp_media_free);
  g_clear_pointer (&self->session, weir_rtmp_session_free);
  g_clear_pointer (&self->input, g_free);
  g_clear_object (&self->socket);
  caller_leave (&self->caller, reason);
}
