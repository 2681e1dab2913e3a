// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/http/http_connection_private.h"

#include "base/log.h"
#include "outlets/http/http_answer.h"
#include "outlets/http/http_pieces.h"

#define STALL_NS (60 * NS_PER_S) // a reader that takes nothing for so long is closed

// Answers that the title cannot be had now. Takes ownership of the reason.
static gboolean
answer_unavailable (HttpConnection *self, gchar *reason)
{
  http_connection_answer_text (self, SOUP_STATUS_SERVICE_UNAVAILABLE, reason);
  g_free (reason);
  return TRUE;
}

gboolean
http_connection_open_title (HttpConnection *self)
{
  Mount *mount = self->resolved.mount;
  Store *store = mount && self->resolved.title ? mount_dup_store (mount) : NULL;
  gchar *name = store ? title_decode_name (self->resolved.title) : NULL;

  if (!name && mount && mount_lacks (mount))
    return answer_unavailable (self, g_strdup_printf (MOUNT_LACKS_PROBLEM, mount_get_path (mount)));
  if (!name) {
    g_clear_pointer (&store, store_unref);
    return http_connection_answer_text (self, SOUP_STATUS_NOT_FOUND, NULL);
  }
  self->opening = http_opening_new (store, name, http_connection_wake, self);
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
    http_connection_begin_answer (self, self->body.status);
    g_string_append_printf (
        self->out, "Content-Range: bytes */%" G_GUINT64_FORMAT "\r\n", bytes->size);
    http_answer_end_text (self->out, self->body.status, NULL, self->request.head);
    self->body.length = 0;
    return TRUE;
  }
  has_body = self->body.length > 0 && !self->request.head;
  problem = has_body ? http_refusal_of_reader (self->resolved.mount) : NULL;
  if (problem)
    return http_connection_answer_refused (self, problem->status, problem->reason, problem->text);
  if (has_body)
    self->place = g_strdup (mount_get_path (self->resolved.mount));
  full = has_body
             ? http_refusal_enter_store (bytes, self->body.start, self->peer, self->demand->path)
             : NULL;
  if (full)
    return answer_unavailable (self, full);
  if (has_body)
    self->entered = store_bytes_ref (bytes);
  http_connection_begin_answer (self, self->body.status);
  http_answer_end_title (self->out, bytes, self->resolved.title, &self->body);
  if (!has_body) {
    self->body.length = 0;
    return TRUE;
  }
  http_sender_init (&self->sender, bytes, self->body.start, self->body.length, enter_piece (self),
      http_connection_wake, self);
  self->reader = http_reader_new (self->place, self->peer, close_reader, self);
  return TRUE;
}

gboolean
http_connection_step_opening (HttpConnection *self, gint64 now)
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
  http_connection_answer_text (self, status, text);
  g_error_free (error);
  return TRUE;
}

gboolean
http_connection_step_sending (HttpConnection *self, gint64 now)
{
  static LogLimit limit = { .burst = 10, .interval_ms = 1000 };
  HttpSenderState state = g_atomic_int_get (&self->gone)
                              ? HTTP_SENDER_GONE
                              : http_sender_run (&self->sender, self->fd, now);

  http_reader_update (self->reader, self->sender.sent, self->sender.deficit_ns);
  switch (state) {
    case HTTP_SENDER_DONE:
      return http_connection_end_answer (self, now);
    case HTTP_SENDER_AGAIN:
      return http_connection_wait_until (self, self->sender.wake_ns);
    case HTTP_SENDER_SOCKET_FULL:
      if (now < self->sender.full_since_ns + STALL_NS)
        return http_connection_wait_until (self, self->sender.full_since_ns + STALL_NS);
      refusals_note (REFUSED_WRITE, self->peer, "the reader has taken nothing for 60 s");
      return http_connection_end (self);
    case HTTP_SENDER_FAILED:
      log_event_limited (&limit, "reader %s out: %s: %s", self->peer, self->demand->path,
          self->sender.error->message);
      return http_connection_end (self);
    case HTTP_SENDER_GONE:
      break;
  }
  return http_connection_end (self);
}
