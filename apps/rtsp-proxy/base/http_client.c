// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/http_client.h"

#include "base/timer.h"

#define IDLE_S 30 // after which an unused connection is closed

// libsoup does not end a request that waits for a connection when it is cancelled, so requests wait
// here.
struct _HttpClient {
  GMainContext *context;
  SoupSession *session;
  guint connections_max;
  GHashTable *sent; // of HttpCall
  GQueue waiting;   // of HttpCall
};

struct _HttpCall {
  HttpClient *client;
  SoupMessage *message;
  GCancellable *cancellable;
  Timer *deadline;
  gboolean late;
  GInputStream *stream;
  guint8 *bytes; // of the body
  gsize size;    // room for them
  gsize size_max;
  guint8 *buffer; // `bytes`, if they are the call's own
  gboolean (*head) (gpointer data);
  HttpDone done;
  gpointer data;
};

static void send_next (HttpClient *self);

// Frees the call, which is neither sent nor waiting any more, and `answer->error`.
static void
finish (HttpCall *call, HttpAnswer *answer)
{
  if (g_error_matches (answer->error, G_IO_ERROR, G_IO_ERROR_CANCELLED) && call->late) {
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
finish_sent (HttpCall *call, HttpAnswer *answer)
{
  HttpClient *self = call->client;

  g_hash_table_remove (self->sent, call);
  finish (call, answer);
  send_next (self);
}

static void
finish_waiting (HttpCall *call)
{
  HttpAnswer answer = { .error =
                            g_error_new_literal (G_IO_ERROR, G_IO_ERROR_CANCELLED, "cancelled") };

  g_queue_remove (&call->client->waiting, call);
  finish (call, &answer);
}

static void
on_body (GObject *stream, GAsyncResult *result, gpointer data)
{
  HttpCall *call = data;
  HttpAnswer answer = { 0 };

  if (!g_input_stream_read_all_finish (
          G_INPUT_STREAM (stream), result, &answer.size, &answer.error)) {
    finish_sent (call, &answer);
    return;
  }
  if (answer.size > call->size_max) {
    g_set_error (&answer.error, G_IO_ERROR, G_IO_ERROR_MESSAGE_TOO_LARGE,
        "the answer has more than %zu bytes", call->size_max);
  } else {
    answer.status = soup_message_get_status (call->message);
    if (call->buffer)
      answer.body = g_bytes_new_take (g_steal_pointer (&call->buffer), answer.size);
  }
  finish_sent (call, &answer);
  g_clear_pointer (&answer.body, g_bytes_unref);
}

static void
on_headers (GObject *session, GAsyncResult *result, gpointer data)
{
  HttpCall *call = data;
  HttpAnswer answer = { 0 };

  call->stream = soup_session_send_finish (SOUP_SESSION (session), result, &answer.error);
  if (call->stream && call->head && !call->head (call->data)) {
    g_cancellable_cancel (call->cancellable); // the rest is not read
    g_set_error_literal (&answer.error, G_IO_ERROR, G_IO_ERROR_CANCELLED, "cancelled");
  }
  if (answer.error) {
    finish_sent (call, &answer);
    return;
  }
  if (!call->bytes)
    call->bytes = call->buffer = g_malloc (call->size);
  g_input_stream_read_all_async (
      call->stream, call->bytes, call->size, G_PRIORITY_DEFAULT, call->cancellable, on_body, call);
}

static void
send_next (HttpClient *self)
{
  HttpCall *call;

  if (self->waiting.length == 0 || g_hash_table_size (self->sent) >= self->connections_max)
    return;
  call = g_queue_pop_head (&self->waiting);
  g_hash_table_add (self->sent, call);
  soup_session_send_async (
      self->session, call->message, G_PRIORITY_DEFAULT, call->cancellable, on_headers, call);
}

void
http_call_cancel (HttpCall *call)
{
  if (g_hash_table_contains (call->client->sent, call))
    g_cancellable_cancel (call->cancellable);
  else
    finish_waiting (call);
}

static gboolean
on_deadline (gpointer data)
{
  HttpCall *call = data;

  call->deadline = NULL;
  call->late = TRUE;
  http_call_cancel (call);
  return G_SOURCE_REMOVE;
}

static HttpCall *
call_new (HttpClient *self, SoupMessage *message, gsize size, HttpDone done, gpointer data)
{
  HttpCall *call = g_new0 (HttpCall, 1);

  call->client = self;
  call->message = message;
  call->cancellable = g_cancellable_new ();
  call->size = call->size_max = size;
  call->done = done;
  call->data = data;
  soup_message_add_flags (message, SOUP_MESSAGE_NO_REDIRECT | SOUP_MESSAGE_DO_NOT_USE_AUTH_CACHE);
  return call;
}

static void
send_soon (HttpCall *call)
{
  g_queue_push_tail (&call->client->waiting, call);
  send_next (call->client);
}

void
http_client_send_message (HttpClient *self, SoupMessage *message, guint timeout_ms, gsize size_max,
    HttpDone done, gpointer data)
{
  HttpCall *call = call_new (self, message, size_max, done, data);

  call->size = size_max + 1; // shows a longer one
  call->deadline = timer_add (timeout_ms, on_deadline, call);
  send_soon (call);
}

void
http_client_send (HttpClient *self, const gchar *url, GBytes *json, guint timeout_ms,
    gsize size_max, HttpDone done, gpointer data)
{
  SoupMessage *message = soup_message_new (json ? "POST" : "GET", url);

  if (json)
    soup_message_set_request_body_from_bytes (message, "application/json", json);
  http_client_send_message (self, message, timeout_ms, size_max, done, data);
}

HttpCall *
http_client_call (HttpClient *self, SoupMessage *message, guint8 *bytes, gsize size,
    gboolean (*head) (gpointer data), HttpDone done, gpointer data)
{
  HttpCall *call = call_new (self, message, size, done, data);

  call->bytes = bytes;
  call->head = head;
  send_soon (call);
  return call;
}

HttpClient *
http_client_new (guint connections_max)
{
  HttpClient *self = g_new0 (HttpClient, 1);

  self->context = g_main_context_ref_thread_default ();
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
    g_cancellable_cancel (((HttpCall *) call)->cancellable);
  while (g_hash_table_size (self->sent) > 0)
    g_main_context_iteration (self->context, TRUE);
  soup_session_abort (self->session);
  g_object_unref (self->session);
  g_hash_table_unref (self->sent);
  g_main_context_unref (self->context);
  g_free (self);
}

SoupSession *
http_client_get_session (HttpClient *self)
{
  return self->session;
}
