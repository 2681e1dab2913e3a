// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/srt/srt_connection.h"

#include <srt/access_control.h>
#include <unistd.h>

#include "base/log.h"
#include "outlets/caller/caller.h"
#include "outlets/srt/srt_counts.h"
#include "outlets/srt/srt_reader.h"
#include "text/stream_id.h"

// Shared by all callers, because any peer can cause refusals as fast as it calls.
static LogLimit refusals = { .burst = 100, .interval_ms = 100 };

typedef enum {
  STATE_ASKING, // for the decision on access
  STATE_PUBLISHING,
  STATE_READING,
} State;

struct _SrtConnection {
  Caller caller; // first
  const SrtContext *context;
  guint32 id; // the worker's
  gboolean publishes, has_begun;
  State state;
  SrtReader *reader;
  SrtSample sample; // the last
};

static void
on_woken (Caller *caller)
{
  SrtConnection *self = (SrtConnection *) caller;

  self->context->woken (self, self->context->outlet);
}

static void
connection_free (Caller *caller)
{
  g_free (caller);
}

// ---- the handshake ----

static const gchar *
kind_of (const SrtConnection *self)
{
  return self->publishes ? "publisher" : "reader";
}

static int
refuse (SrtConnection *self, int code, const gchar *why)
{
  log_event_limited (&refusals, "%s %s refused: %s", kind_of (self), self->caller.peer, why);
  return code;
}

// Returns 0, or a code of SRT.
static int
check_verdict (SrtConnection *self)
{
  switch (access_decision_get_verdict (self->caller.asked)) {
    case ACCESS_PENDING:
    case ACCESS_ADMITTED:
      return 0;
    case ACCESS_ASKED:
      return refuse (self, SRT_REJX_UNAUTHORIZED,
          "its stream id must bring credentials: publish:PATH:USER:SECRET, or u=USER,s=SECRET");
    case ACCESS_REFUSED:
      return refuse (self, SRT_REJX_FORBIDDEN, "it has no permission");
    case ACCESS_BUSY:
      break;
  }
  return refuse (self, SRT_REJX_OVERLOAD, "no decision is possible now");
}

static int
check_publisher (SrtConnection *self)
{
  static const int codes[] = { [PUBLISH_NO_MOUNT] = SRT_REJX_NOTFOUND,
    [PUBLISH_NOT_TAKEN] = SRT_REJX_BAD_MODE,
    [PUBLISH_CONFLICT] = SRT_REJX_CONFLICT };
  const gchar *why;
  PublishCheck check = caller_check_publish (&self->caller, &why);

  return check == PUBLISH_POSSIBLE ? 0 : refuse (self, codes[check], why);
}

static int
check_reader (SrtConnection *self)
{
  gboolean found;
  Resolved resolved;
  GError *error = NULL;
  int code = 0;

  if (!mounts_resolve (self->caller.context->mounts, self->caller.demand, &resolved, &error)) {
    code = refuse (self, SRT_REJX_NOTFOUND, error->message);
    g_error_free (error);
    return code;
  }
  found = !resolved.title;
  resolved_clear (&resolved);
  return found ? 0 : refuse (self, SRT_REJX_NOTFOUND, "a title cannot be read over SRT");
}

static int
check_target (SrtConnection *self)
{
  return self->publishes ? check_publisher (self) : check_reader (self);
}

// Returns 0, or a code of SRT.
static int
read_stream_id (SrtConnection *self, const gchar *text)
{
  const gchar *wrong;
  StreamId id;
  StreamIdVerdict verdict = stream_id_read (&id, text, &wrong);

  if (verdict != STREAM_ID_GOOD) {
    refusals_note (REFUSED_MALFORMED, self->caller.peer, "its stream id cannot be used: %s", wrong);
    return verdict == STREAM_ID_BAD_MODE ? SRT_REJX_BAD_MODE : SRT_REJX_BAD_REQUEST;
  }
  self->publishes = id.publishes;
  self->caller.demand = demand_new (id.url);
  caller_ask (&self->caller, self->publishes ? ACCESS_PUBLISH : ACCESS_READ, id.user, id.secret,
      !id.user && id.secret ? id.secret : self->caller.demand->token);
  stream_id_clear (&id);
  return check_verdict (self);
}

SrtConnection *
srt_connection_new (const SrtContext *context, GInetSocketAddress *from, const gchar *stream_id,
    guint32 id, int *reject)
{
  static const CallerOps ops = { "SRT", on_woken, connection_free };
  g_autofree gchar *peer = g_socket_connectable_to_string (G_SOCKET_CONNECTABLE (from));
  SrtConnection *self = NULL;

  *reject = SRT_REJX_OVERLOAD;
  if (connections_admit (context->callers->connections, g_inet_socket_address_get_address (from),
          "SRT connections", peer, NULL)) {
    self = g_new0 (SrtConnection, 1);
    caller_init (&self->caller, &ops, context->callers, from, "srt");
    self->context = context;
    self->id = id;
    *reject = read_stream_id (self, stream_id);
    // Only those who may do it find out which mounts exist.
    if (!*reject && access_decision_get_verdict (self->caller.asked) == ACCESS_ADMITTED)
      *reject = check_target (self);
    if (*reject) {
      caller_leave (&self->caller, NULL);
      self = NULL;
    }
  }
  return self;
}

// ---- the connection ----

void
srt_connection_begin (SrtConnection *self)
{
  if (self->has_begun)
    return;
  self->has_begun = TRUE;
  srt_counts_add_connections (1);
}

static gboolean
begin_publishing (SrtConnection *self)
{
  GError *error = NULL;

  if (!caller_publish (&self->caller, &error)) {
    refuse (self, SRT_REJX_CONFLICT, error->message);
    g_error_free (error);
    return FALSE;
  }
  self->state = STATE_PUBLISHING;
  srt_link_send (self->context->link, SRT_COMMAND_PUBLISH, self->id,
      published_stream_get_fd (self->caller.published));
  return TRUE;
}

static gboolean
begin_reading (SrtConnection *self)
{
  GError *error = NULL;

  self->reader = srt_reader_new (self->caller.context->mounts, self->caller.demand,
      self->caller.peer, caller_wake, caller_close, self, &error);
  if (!self->reader) {
    refuse (self, SRT_REJX_OVERLOAD, error->message);
    g_error_free (error);
    return FALSE;
  }
  self->state = STATE_READING;
  return TRUE;
}

static gboolean
run_asking (SrtConnection *self)
{
  AccessVerdict verdict = access_decision_get_verdict (self->caller.asked);

  if (verdict == ACCESS_PENDING)
    return TRUE;
  if (check_verdict (self) || check_target (self))
    return FALSE;
  return self->publishes ? begin_publishing (self) : begin_reading (self);
}

static gboolean
run_reading (SrtConnection *self)
{
  const gchar *reason;
  gint fd = -1;

  if (!srt_reader_run (self->reader, &fd, &reason)) {
    caller_close (&self->caller, reason);
    return FALSE;
  }
  if (fd >= 0) {
    srt_link_send (self->context->link, SRT_COMMAND_READ, self->id, fd);
    close (fd);
  }
  return TRUE;
}

gboolean
srt_connection_run (SrtConnection *self)
{
  if (caller_get_closing (&self->caller))
    return FALSE;
  if (!self->has_begun)
    return TRUE;
  if (self->state == STATE_ASKING && !run_asking (self))
    return FALSE;
  return self->state == STATE_READING ? run_reading (self) : TRUE;
}

// A worker in the hands of a caller may say anything, so sums that shrink are kept as they were.
void
srt_connection_sample (SrtConnection *self, const SrtSample *sample)
{
  const SrtSample last = self->sample;

  if (sample->late < last.late || sample->sent < last.sent || sample->overflow < last.overflow)
    return;
  self->sample = *sample;
  srt_counts_add_late (self->publishes, sample->late - last.late);
  if (self->caller.published && sample->overflow > last.overflow)
    published_stream_count_overflow (self->caller.published, sample->overflow - last.overflow);
  if (self->reader && srt_reader_is_slow (self->reader, sample->late, sample->sent))
    caller_close (
        &self->caller, "it is too slow: for 10 s, more packets came too late than in time");
}

void
srt_connection_tick (SrtConnection *self)
{
  if (self->state == STATE_PUBLISHING)
    caller_check_mount (&self->caller);
}

// ---- the end ----

void
srt_connection_refuse (SrtConnection *self, SrtProblem problem)
{
  static const gchar *const texts[SRT_PROBLEMS] = {
    [SRT_PROBLEM_UNKNOWN] = "its handshake was not completed",
    [SRT_PROBLEM_SECRET_WRONG] = "its passphrase is wrong",
    [SRT_PROBLEM_SECRET_MISSING] =
        "it has no passphrase, and the listener has one (srt.passphrase)",
    [SRT_PROBLEM_SECRET_UNEXPECTED] =
        "it has a passphrase, and the listener has none (srt.passphrase)",
  };

  if (problem == SRT_PROBLEM_UNKNOWN)
    refuse (self, 0, texts[problem]);
  else
    refusals_note (REFUSED_PASSPHRASE, self->caller.peer, "%s", texts[problem]);
}

void
srt_connection_free (SrtConnection *self, const gchar *reason)
{
  const gchar *closing = caller_get_closing (&self->caller);

  if (self->has_begun)
    srt_counts_add_connections (-1);
  if (self->context->link)
    srt_link_send (self->context->link, SRT_COMMAND_CLOSE, self->id, -1);
  if (closing)
    reason = closing;
  if (self->reader)
    srt_reader_free (self->reader, reason);
  caller_leave (&self->caller, reason);
}

guint32
srt_connection_get_id (const SrtConnection *self)
{
  return self->id;
}
