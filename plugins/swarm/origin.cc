// SPDX-License-Identifier: LGPL-2.1-or-later
#include "origin.h"

#include <libsoup/soup.h>

#include "loop.h"

#define CONNECTIONS_MAX 1024 // a swarm bounds its own requests
#define IDLE_S 30            // after which an unused connection is closed

// A request, until its end.
struct Call {
  OriginRange range;
  OriginDone done;
  std::vector<char> bytes;
  std::string why;
  SoupMessage *message;
  GCancellable *cancellable;
  GInputStream *stream = nullptr;
  GSource *deadline;
};

static void
finish (Call *call)
{
  g_source_destroy (call->deadline);
  g_source_unref (call->deadline);
  g_clear_object (&call->stream);
  g_object_unref (call->message);
  g_object_unref (call->cancellable);
  call->done (std::move (call->bytes), std::move (call->why));
  delete call;
}

static void
finish_broken (Call *call, GError *error)
{
  if (call->why.empty ())
    call->why = error->message;
  g_error_free (error);
  finish (call);
}

static gboolean
on_deadline (gpointer data)
{
  auto *call = static_cast<Call *> (data);

  call->why = call->stream ? "it sends too slowly: the range was not complete in time"
                           : "it has not answered in time";
  g_cancellable_cancel (call->cancellable);
  return G_SOURCE_REMOVE;
}

// Returns what is wrong with the headers of the answer, or "".
static std::string
judge (const Call *call)
{
  SoupMessageHeaders *headers = soup_message_get_response_headers (call->message);
  const guint status = soup_message_get_status (call->message);
  const OriginRange &range = call->range;
  goffset start, end, total;

  if (status == SOUP_STATUS_OK)
    return "it sends whole files only; a server with ranges is needed";
  if (status == SOUP_STATUS_NOT_FOUND || status == SOUP_STATUS_GONE)
    return "it has no such file";
  if (status == SOUP_STATUS_REQUESTED_RANGE_NOT_SATISFIABLE)
    return "its file is shorter than the torrent's";
  if (status >= 300 && status < 400)
    return "it redirects; write the URL of the server itself";
  if (status != SOUP_STATUS_PARTIAL_CONTENT)
    return "it answers " + std::to_string (status);
  if (!soup_message_headers_get_content_range (headers, &start, &end, &total))
    return "it does not say which range it sends";
  if (total >= 0 && uint64_t (total) != range.file_bytes)
    return "its file has " + std::to_string (total) + " bytes, the torrent's has "
           + std::to_string (range.file_bytes);
  if (start < 0 || uint64_t (start) != range.offset || uint64_t (end - start) + 1 != range.length)
    return "it sends another range";
  return "";
}

static void
on_body (GObject *stream, GAsyncResult *result, gpointer data)
{
  auto *call = static_cast<Call *> (data);
  GError *error = nullptr;
  gsize length;

  if (!g_input_stream_read_all_finish (G_INPUT_STREAM (stream), result, &length, &error)) {
    finish_broken (call, error);
    return;
  }
  if (length < call->range.length)
    call->why = "it ends in the middle of an answer";
  finish (call);
}

static void
on_headers (GObject *session, GAsyncResult *result, gpointer data)
{
  auto *call = static_cast<Call *> (data);
  GError *error = nullptr;

  call->stream = soup_session_send_finish (SOUP_SESSION (session), result, &error);
  if (!call->stream) {
    finish_broken (call, error);
    return;
  }
  call->why = judge (call);
  if (!call->why.empty ()) {
    g_cancellable_cancel (call->cancellable); // the rest is not read
    finish (call);
    return;
  }
  call->bytes.resize (call->range.length);
  g_input_stream_read_all_async (call->stream, call->bytes.data (), call->bytes.size (),
      G_PRIORITY_DEFAULT, call->cancellable, on_body, call);
}

static SoupSession *
get_session ()
{
  static SoupSession *const session = soup_session_new_with_options ("max-conns", CONNECTIONS_MAX,
      "max-conns-per-host", CONNECTIONS_MAX, "idle-timeout", IDLE_S, "user-agent", "Weir", nullptr);

  return session;
}

GCancellable *
origin_get (const OriginRange &range, OriginDone done)
{
  auto *call = new Call{ range, std::move (done), {}, {}, nullptr, g_cancellable_new () };
  const std::string text = "bytes=" + std::to_string (range.offset) + "-"
                           + std::to_string (range.offset + range.length - 1);
  SoupMessageHeaders *headers;

  call->message = soup_message_new ("GET", range.url.c_str ());
  soup_message_add_flags (call->message, SOUP_MESSAGE_NO_REDIRECT);
  headers = soup_message_get_request_headers (call->message);
  soup_message_headers_replace (headers, "Range", text.c_str ());
  soup_message_headers_replace (headers, "Accept-Encoding", "identity");
  // rtsp-proxy sends ranges at the title's rate otherwise (http_pieces.h).
  soup_message_headers_replace (headers, "Weir-Pace", "off");
  call->deadline = g_timeout_source_new (range.timeout_ms);
  g_source_set_callback (call->deadline, on_deadline, call, nullptr);
  g_source_attach (call->deadline, loop_context ());
  soup_session_send_async (
      get_session (), call->message, G_PRIORITY_DEFAULT, call->cancellable, on_headers, call);
  return G_CANCELLABLE (g_object_ref (call->cancellable));
}
