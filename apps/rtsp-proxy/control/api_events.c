// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Sends events as they happen (server-sent events, HTML Living Standard, 9.2). A client that reads
// slowly gets them later, and is told of those that are not kept any more: nothing queues for it.

#include "control/api_handlers.h"

#include "base/timer.h"
#include "control/api_limits.h"
#include "events/events.h"

#define CLIENTS_MAX 16
#define BATCH_MAX 64 // events in one chunk
// A line that says nothing, so that a client that is gone is noticed, and proxies between keep the
// connection.
#define BEAT_MS 15000

static const gchar begin[] = ": events\n\n", beat[] = ":\n\n";
static const gchar lost_event[] = "event: lost\ndata: {\"event\": \"lost\"}\n\n";

typedef struct {
  SoupServerMessage *message;
  EventsWatch *watch;
  Timer *timer;
  guint64 number;   // of the last event that was sent
  gboolean writing; // a chunk is under way
  gulong on_chunk, on_finished, on_left;
} Stream;

static guint n_streams; // main thread only

// ---- sending ----

static void
send_text (Stream *self, gchar *text, gsize len)
{
  self->writing = TRUE;
  soup_message_body_append_take (
      soup_server_message_get_response_body (self->message), (guchar *) text, len);
  soup_server_message_unpause (self->message);
}

// Appends the next events. Returns FALSE if there are none.
static gboolean
append_events (Stream *self, GString *out)
{
  for (guint i = 0; i < BATCH_MAX; i++) {
    gboolean lost;
    g_autoptr (Event) event = events_next (self->number, &lost);

    if (lost && event)
      g_string_append (out, lost_event);
    if (!event)
      break;
    g_string_append_printf (out, "id: %" G_GUINT64_FORMAT "\nevent: %s\ndata: %s\n\n",
        event->number, event_get_name (event->kind), event->json);
    self->number = event->number;
  }
  return out->len > 0;
}

static void
send_next (Stream *self)
{
  GString *out;
  gsize len;

  if (self->writing)
    return;
  out = g_string_new (NULL);
  if (!append_events (self, out)) {
    g_string_free (out, TRUE);
    return;
  }
  len = out->len;
  send_text (self, g_string_free (out, FALSE), len);
}

static void
on_added (gpointer self)
{
  send_next (self);
}

static gboolean
on_beat (gpointer data)
{
  Stream *self = data;

  if (!self->writing)
    send_text (self, g_strdup (beat), sizeof beat - 1);
  return G_SOURCE_CONTINUE;
}

static void
on_wrote_chunk (SoupServerMessage *message, gpointer data)
{
  Stream *self = data;

  self->writing = FALSE;
  soup_server_message_pause (message);
  api_limits_rest (message);
  send_next (self);
}

// Called when the client leaves. After that, libsoup takes nothing more for it.
static void
on_finished (SoupServerMessage *message, gpointer data)
{
  Stream *self = data;

  g_signal_handler_disconnect (message, self->on_chunk);
  g_signal_handler_disconnect (message, self->on_finished);
  g_signal_handler_disconnect (message, self->on_left);
  events_watch_free (self->watch);
  timer_remove (self->timer);
  n_streams--;
  g_object_unref (self->message);
  g_free (self);
}

// ---- the request ----

// Sets the number of the last event that the client has got. Answers 400 and returns FALSE if it
// sends something else.
static gboolean
read_last (ApiRequest *request, guint64 *number)
{
  const gchar *text = soup_message_headers_get_one (
      soup_server_message_get_request_headers (request->message), "Last-Event-ID");
  const gboolean ok =
      !text || !*text || g_ascii_string_to_unsigned (text, 10, 0, G_MAXINT64, number, NULL);

  if (!text || !*text)
    *number = events_get_newest ();
  if (!ok)
    api_fail (request->message, SOUP_STATUS_BAD_REQUEST, "Last-Event-ID",
        "expected the number of an event");
  return ok;
}

static void
begin_answer (SoupServerMessage *message)
{
  SoupMessageHeaders *headers = soup_server_message_get_response_headers (message);
  SoupMessageBody *body = soup_server_message_get_response_body (message);

  // It has the answer for a malformed request so far.
  soup_message_body_truncate (body);
  soup_message_body_set_accumulate (body, FALSE);
  soup_server_message_set_status (message, SOUP_STATUS_OK, NULL);
  soup_message_headers_replace (headers, "Content-Type", "text/event-stream");
  soup_message_headers_replace (headers, "Cache-Control", "no-store");
  soup_message_headers_replace (headers, "X-Accel-Buffering", "no"); // nginx passes events at once
  soup_message_headers_set_encoding (headers, SOUP_ENCODING_CHUNKED);
}

void
api_get_events (ApiRequest *request)
{
  guint64 number = 0;
  Stream *self;

  if (!api_check_query (request, NULL) || !read_last (request, &number))
    return;
  if (n_streams >= CLIENTS_MAX) {
    api_fail (request->message, SOUP_STATUS_SERVICE_UNAVAILABLE, NULL,
        "%u clients get events already; try again later", CLIENTS_MAX);
    return;
  }
  begin_answer (request->message);
  if (g_str_equal (soup_server_message_get_method (request->message), "HEAD"))
    return;
  n_streams++;
  self = g_new0 (Stream, 1);
  self->message = g_object_ref (request->message);
  self->number = number;
  self->watch = events_watch_new (on_added, self);
  self->timer = timer_add (BEAT_MS, on_beat, self);
  self->on_chunk =
      g_signal_connect (self->message, "wrote-chunk", G_CALLBACK (on_wrote_chunk), self);
  self->on_finished = g_signal_connect (self->message, "finished", G_CALLBACK (on_finished), self);
  self->on_left = g_signal_connect (self->message, "disconnected", G_CALLBACK (on_finished), self);
  send_text (self, g_strdup (begin), sizeof begin - 1);
}
