// SPDX-License-Identifier: LGPL-2.1-or-later
#include "access/http_client.h"

#include "base/timer.h"

#include <libsoup/soup.h>

#define IDLE_S 30 // after which an unused connection is closed

// libsoup does not end a request that waits for a connection when it is cancelled, so requests wait
// here.
struct _HttpClient {
  SoupSession *session;
  guint connections_max;
  GHashTable *sent; // of Call
  GQueue waiting;   // of Call
};

typedef struct {
  HttpClient *client;
  SoupMessage *message;
  GCancellable *cancellable;
  Timer *deadline; // NULL: it has passed
  GInputStream *stream;
  guint8 *buffer;
  gsize size_max;
  HttpDone done;
  gpointer data;
} Call;

static void send_next (HttpClient *self);

// Frees the call, which is neither sent nor waiting any more, and `answer->error`.
static void
finish (Call *call, HttpAnswer *answer)
{
  if (g_error_matches (answer->error, G_IO_ERROR, G_IO_ERROR_CANCELLED) && !call->deadline) {
    g_clear_error (&answer->error);
    g_set_error_literal (&answer->error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT, "no answer in time");
  }
  call->done (answer, call->data);
  g_clear_error (&answer->error);
  g_clear_pointer (&call->deadline, timer_remove);
  g_clear_object (&call->stream);
  g_object_unref (call->message);
  g_object_unref (call->cancellable);
  g_free (call->buffer);
  g_free (call);
}

static void
finish_sent (Call *call, HttpAnswer *answer)
{
  HttpClient *self = call->client;

  g_hash_table_remove (self->sent, call);
  finish (call, answer);
  send_next (self);
}

static void
finish_waiting (Call *call)
{
  HttpAnswer answer = { .error =
                            g_error_new_literal (G_IO_ERROR, G_IO_ERROR_CANCELLED, "cancelled") };

  g_queue_remove (&call->client->waiting, call);
  finish (call, &answer);
}

static void
on_body (GObject *stream, GAsyncResult *result, gpointer data)
{
  Call *call = data;
  HttpAnswer answer = { 0 };
  gsize len;

  if (!g_input_stream_read_all_finish (G_INPUT_STREAM (stream), result, &len, &answer.error)) {
    finish_sent (call, &answer);
    return;
  }
  if (len > call->size_max) {
    g_set_error (&answer.error, G_IO_ERROR, G_IO_ERROR_MESSAGE_TOO_LARGE,
        "the answer has more than %zu bytes", call->size_max);
  } else {
    answer.status = soup_message_get_status (call->message);
    answer.body = g_bytes_new_take (g_steal_pointer (&call->buffer), len);
  }
  finish_sent (call, &answer);
  g_clear_pointer (&answer.body, g_bytes_unref);
}

static void
on_headers (GObject *session, GAsyncResult *result, gpointer data)
{
  Call *call = data;
  HttpAnswer answer = { 0 };

  call->stream = soup_session_send_finish (SOUP_SESSION (session), result, &answer.error);
  if (!call->stream) {
    finish_sent (call, &answer);
    return;
  }
  call->buffer = g_malloc (call->size_max + 1);
  g_input_stream_read_all_async (call->stream, call->buffer, call->size_max + 1, G_PRIORITY_DEFAULT,
      call->cancellable, on_body, call);
}

static void
send_next (HttpClient *self)
{
  Call *call;

  if (self->waiting.length == 0 || g_hash_table_size (self->sent) >= self->connections_max)
    return;
  call = g_queue_pop_head (&self->waiting);
  g_hash_table_add (self->sent, call);
  soup_session_send_async (
      self->session, call->message, G_PRIORITY_DEFAULT, call->cancellable, on_headers, call);
}

static gboolean
on_deadline (gpointer data)
{
  Call *call = data;

  call->deadline = NULL;
  if (g_hash_table_contains (call->client->sent, call))
    g_cancellable_cancel (call->cancellable);
  else
    finish_waiting (call);
  return G_SOURCE_REMOVE;
}

void
http_client_send (HttpClient *self, const gchar *url, GBytes *json, guint timeout_ms,
    gsize size_max, HttpDone done, gpointer data)
{
  Call *call = g_new0 (Call, 1);

  call->client = self;
  call->message = soup_message_new (json ? "POST" : "GET", url);
  call->cancellable = g_cancellable_new ();
  call->size_max = size_max;
  call->done = done;
  call->data = data;
  call->deadline = timer_add (timeout_ms, on_deadline, call);
  soup_message_add_flags (
      call->message, SOUP_MESSAGE_NO_REDIRECT | SOUP_MESSAGE_DO_NOT_USE_AUTH_CACHE);
  if (json)
    soup_message_set_request_body_from_bytes (call->message, "application/json", json);
  g_queue_push_tail (&self->waiting, call);
  send_next (self);
}

HttpClient *
http_client_new (guint connections_max)
{
  HttpClient *self = g_new0 (HttpClient, 1);

  // A connection may end a little later than its request.
  self->session =
      soup_session_new_with_options ("max-conns", 2 * connections_max, "max-conns-per-host",
          2 * connections_max, "idle-timeout", IDLE_S, "user-agent", "rtsp-proxy", NULL);
  self->connections_max = connections_max;
  g_queue_init (&self->waiting);
  self->sent = g_hash_table_new (NULL, NULL);
  return self;
}

void
http_client_free (HttpClient *self)
{
  GHashTableIter iter;
  gpointer call;

  while (self->waiting.length > 0)
    finish_waiting (g_queue_peek_head (&self->waiting));
  g_hash_table_iter_init (&iter, self->sent);
  while (g_hash_table_iter_next (&iter, &call, NULL))
    g_cancellable_cancel (((Call *) call)->cancellable);
  while (g_hash_table_size (self->sent) > 0)
    g_main_context_iteration (NULL, TRUE);
  soup_session_abort (self->session);
  g_object_unref (self->session);
  g_hash_table_unref (self->sent);
  g_free (self);
}
