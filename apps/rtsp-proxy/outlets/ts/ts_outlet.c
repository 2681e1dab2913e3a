// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/ts/ts_outlet.h"

#include <libsoup/soup.h>
#include <string.h>

#include "base/log.h"
#include "mounts/start_wait.h"
#include "outlets/http/http_answer.h"
#include "outlets/http/http_refusal.h"
#include "outlets/ts/ts_reader.h"
#include "outlets/ts/ts_stream.h"
#include "readers/reader_limit.h"

#define TS_PREFIX "/ts/"

typedef struct {
  HttpReply reply;
  const HttpAsked *asked;
  Presentation *presentation;
  TsStream *stream; // from the start, so that it has the presentation's first packets
  StartWait *wait;  // NULL: the presentation is not in use
  guint status;
  gchar *reason;
  const gchar *place; // the mount on which the reader has a place
  GSocket *socket;
  gchar *name; // in the stream's sink
  TsReader *reader;
} Reply;

// ---- the answer ----

// Takes ownership of the reason.
static void
fail_reply (Reply *self, guint status, gchar *reason)
{
  self->status = status;
  self->reason = reason;
}

// Takes ownership of the error, which may be NULL.
static void
fail_with (Reply *self, GError *error)
{
  fail_reply (self,
      g_error_matches (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED)
          ? SOUP_STATUS_UNSUPPORTED_MEDIA_TYPE
          : SOUP_STATUS_SERVICE_UNAVAILABLE,
      g_strdup (error ? error->message : NULL));
  g_clear_error (&error);
}

static void
take_place (Reply *self)
{
  Mount *mount = self->asked->resolved->mount;
  const HttpRefusal *problem = http_refusal_of_reader (mount);

  if (!problem) {
    self->place = mount_get_path (mount);
    return;
  }
  refusals_note (problem->reason, self->asked->peer, "%s", problem->text);
  fail_reply (self, problem->status, g_strdup (problem->text));
}

static void
decide (Reply *self)
{
  GError *error = NULL;
  gchar *problem;

  switch (presentation_ask (self->presentation, &error)) {
    case PRESENTATION_READY:
      break;
    case PRESENTATION_DOWN:
      fail_with (self, error);
      return;
    default:
      fail_reply (self, SOUP_STATUS_SERVICE_UNAVAILABLE,
          g_strdup ("the upstream takes too long to start (start-timeout)"));
      return;
  }
  problem = ts_stream_dup_problem (self->stream);
  self->status = SOUP_STATUS_OK;
  if (problem)
    fail_reply (self, SOUP_STATUS_UNSUPPORTED_MEDIA_TYPE, problem);
  else if (!self->asked->request->head)
    take_place (self);
}

static gboolean
begin_reply (HttpReply *reply, HttpHead *head, gint64 now_ns, gint64 *wake_ns)
{
  Reply *self = (Reply *) reply;

  if (self->status == 0 && !start_wait_is_over (self->wait))
    return FALSE;
  if (self->status == 0)
    decide (self);
  *head = (HttpHead) { self->status, NULL, self->reason, head->headers, -1 };
  if (self->status == SOUP_STATUS_OK)
    head->type = "video/mp2t";
  if (self->status == SOUP_STATUS_SERVICE_UNAVAILABLE)
    http_answer_add (head->headers, "Retry-After", HTTP_RETRY_AFTER);
  http_answer_add (head->headers, "Cache-Control", "no-store");
  return TRUE;
}

// ---- the stream ----

static void
close_reader (gpointer owner, const gchar *reason)
{
  Reply *self = owner;

  log_event ("reader %s out: %s", self->asked->peer, reason);
  g_socket_shutdown (self->socket, TRUE, TRUE, NULL);
}

static gboolean
take_over (HttpReply *reply, GSocket *socket)
{
  Reply *self = (Reply *) reply;
  g_autofree gchar *left_out = NULL;

  self->name = ts_stream_add_socket (self->stream, socket);
  if (!self->name)
    return FALSE;
  self->socket = g_object_ref (socket);
  left_out = ts_stream_dup_left_out (self->stream);
  self->reader = ts_reader_new (ts_stream_get_sink (self->stream), self->name, 0, self->place,
      self->asked->peer, "HTTP-TS", left_out, close_reader, self);
  return TRUE;
}

static void
free_reply (HttpReply *reply)
{
  Reply *self = (Reply *) reply;

  g_clear_pointer (&self->wait, start_wait_free);
  g_clear_pointer (&self->reader, ts_reader_end);
  if (self->name)
    ts_stream_remove_socket (self->stream, self->name);
  if (self->place)
    reader_limit_leave (self->place);
  g_clear_object (&self->socket);
  g_clear_pointer (&self->stream, ts_stream_unref);
  g_clear_pointer (&self->presentation, presentation_leave);
  g_free (self->name);
  g_free (self->reason);
  g_free (self);
}

static const HttpReplyOps reply_ops = {
  .begin = begin_reply, .take_over = take_over, .free = free_reply
};

// ---- requests ----

static HttpReply *
answer (gpointer outlet, const HttpAsked *asked)
{
  const Resolved *resolved = asked->resolved;
  Reply *self = g_new0 (Reply, 1);
  GError *error = NULL;

  self->reply.ops = &reply_ops;
  self->asked = asked;
  if (!resolved->mount || resolved->title) {
    fail_reply (self, SOUP_STATUS_NOT_FOUND, NULL);
    return &self->reply;
  }
  self->presentation = mounts_use (resolved, &error);
  if (self->presentation)
    self->stream = ts_stream_get (self->presentation, asked->demand->layers, &error);
  if (self->stream)
    self->wait = start_wait_new (self->presentation, asked->wake, asked->wake_data);
  else
    fail_with (self, error);
  return &self->reply;
}

static gchar *
dup_target (gpointer outlet, const gchar *target)
{
  return g_strdup (target + strlen (TS_PREFIX) - 1);
}

static gboolean
begins (const HttpRequest *request)
{
  return request->kind == HTTP_GET;
}

HttpRoute
ts_outlet_get_route (Mounts *mounts)
{
  return (HttpRoute) { TS_PREFIX, ACCESS_READ, dup_target, answer, mounts, .begins = begins };
}
