// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Lists what mounts have recorded, and sends stretches of it. Other threads read the files.

#include "control/api_handlers.h"

#include "outlets/http/http_request.h"
#include "outlets/recording/recording_cut.h"
#include "outlets/recording/recordings.h"

#define PAGE 100
#define PAGE_MAX 1000
#define SENDINGS_MAX 16

// ---- parameters ----

// Reads a time of ISO 8601. Leaves `us` if there is no parameter. Answers 400 and returns FALSE if
// it is not one.
static gboolean
read_time (ApiRequest *request, const gchar *name, gboolean required, gint64 *us)
{
  g_autofree gchar *text = api_dup_query (request, name);
  gboolean ok = text ? api_parse_time (text, us) : !required;

  if (!ok)
    api_fail (request->message, SOUP_STATUS_BAD_REQUEST, name,
        "expected a time such as 2026-11-23T11:15:00Z");
  return ok;
}

static gboolean
read_limit (ApiRequest *request, guint *limit)
{
  g_autofree gchar *text = api_dup_query (request, "limit");
  guint64 value = PAGE;
  gboolean ok = !text || g_ascii_string_to_unsigned (text, 10, 1, PAGE_MAX, &value, NULL);

  *limit = (guint) value;
  if (!ok)
    api_fail (request->message, SOUP_STATUS_BAD_REQUEST, "limit", "expected a number from 1 to %u",
        PAGE_MAX);
  return ok;
}

static gboolean
read_duration (ApiRequest *request, guint *ms)
{
  g_autofree gchar *text = api_dup_query (request, "duration");
  gboolean ok = text && schema_parse_duration (text, ms) && *ms > 0;

  if (!ok)
    api_fail (request->message, SOUP_STATUS_BAD_REQUEST, "duration",
        "expected a time such as 90s or 1h, of a day at most");
  return ok;
}

// Returns the recording of the mount that the query names. If there is none, answers and returns
// NULL. (transfer none)
static Recording *
find (ApiRequest *request)
{
  g_autofree gchar *path = api_dup_query (request, "path");
  Recording *recording = path ? recordings_find (path) : NULL;

  if (!path || !*path)
    api_fail (request->message, SOUP_STATUS_BAD_REQUEST, "path",
        "expected the path of a mount, such as path=/cam");
  else if (!recording)
    api_fail (request->message, SOUP_STATUS_NOT_FOUND, "path", "no mount %.255s is recorded", path);
  return recording;
}

// ---- the list ----

static void
write_segment (JsonBuilder *builder, const RecordingFacts *facts)
{
  g_autofree gchar *name = recording_file_dup_name (facts->start_us);
  g_autofree gchar *start = recording_file_dup_time (facts->start_us);

  json_builder_begin_object (builder);
  api_add_text (builder, "name", name);
  api_add_text (builder, "start", start);
  json_builder_set_member_name (builder, "duration");
  json_builder_add_double_value (builder, (gdouble) recording_facts_get_duration_ns (facts) / 1e9);
  api_add_number (builder, "bytes", (gint64) facts->size);
  json_builder_set_member_name (builder, "complete");
  json_builder_add_boolean_value (builder, facts->complete);
  json_builder_end_object (builder);
}

static void
write_list (JsonBuilder *builder, const GArray *found, gint64 from_us, guint limit)
{
  const RecordingFacts *facts = NULL;
  guint i = 0, n = 0;
  g_autofree gchar *next = NULL;

  json_builder_set_member_name (builder, "recordings");
  json_builder_begin_array (builder);
  for (; i < found->len && n < limit; i++) {
    facts = &g_array_index (found, RecordingFacts, i);
    if (facts->start_us < from_us)
      continue;
    write_segment (builder, facts);
    n++;
  }
  json_builder_end_array (builder);
  if (i == found->len)
    return;
  next = recording_file_dup_time (g_array_index (found, RecordingFacts, i).start_us);
  api_add_text (builder, "next", next);
}

void
api_list_recordings (ApiRequest *request)
{
  gint64 from_us = 0, to_us = G_MAXINT64;
  Recording *recording;
  JsonBuilder *builder;
  g_autoptr (GArray) found = NULL;
  guint limit;

  if (!api_check_query (request, "path", "from", "to", "limit", NULL)
      || !read_time (request, "from", FALSE, &from_us) || !read_time (request, "to", FALSE, &to_us)
      || !read_limit (request, &limit) || !(recording = find (request)))
    return;
  // The first one may have begun before, and one more tells whether there is a next page.
  found = recording_list_dup (
      recording_writer_get_list (recording_get_writer (recording)), from_us, to_us, limit + 2);
  builder = json_builder_new ();
  json_builder_begin_object (builder);
  write_list (builder, found, from_us, limit);
  json_builder_end_object (builder);
  api_answer (request->message, SOUP_STATUS_OK, builder);
}

// ---- a stretch ----

typedef struct {
  Api *api;
  SoupServerMessage *message;
  RecordingWriter *writer;
  gint64 start_us, duration_us;
  RecordingCut *cut;
  guint64 first, left; // the first byte of the answer, and how many are to be sent
  gboolean begun, placed, busy, gone;
  gulong on_chunk, on_finished;
} Sending;

static void
sending_free (Sending *self)
{
  g_signal_handler_disconnect (self->message, self->on_chunk);
  g_signal_handler_disconnect (self->message, self->on_finished);
  self->api->n_sending--;
  g_clear_pointer (&self->cut, recording_cut_free);
  recording_writer_unref (self->writer);
  g_object_unref (self->message);
  g_free (self);
}

// Adds the headers of a stretch, of which `body` is sent.
static void
begin_answer (Sending *self, const gchar *tag, const HttpBody *body)
{
  SoupMessageHeaders *headers = soup_server_message_get_response_headers (self->message);
  const gint64 next_us = recording_cut_get_next_us (self->cut);
  g_autofree gchar *next = next_us > 0 ? recording_file_dup_time (next_us) : NULL;
  g_autofree gchar *start = recording_file_dup_time (recording_cut_get_start_us (self->cut));

  self->begun = TRUE;
  self->first = body->start;
  self->left = body->length;
  // It has the answer for a malformed request so far.
  soup_message_body_truncate (soup_server_message_get_response_body (self->message));
  soup_server_message_set_status (self->message, body->status, NULL);
  soup_message_headers_replace (headers, "Content-Type", "video/mp4");
  soup_message_headers_replace (headers, "Accept-Ranges", "bytes");
  soup_message_headers_replace (headers, "Cache-Control", "no-store");
  soup_message_headers_replace (headers, "ETag", tag);
  soup_message_headers_replace (headers, "Recording-Start", start);
  if (next)
    soup_message_headers_replace (headers, "Recording-Next", next);
  if (body->status == SOUP_STATUS_PARTIAL_CONTENT)
    soup_message_headers_set_content_range (headers, (goffset) body->start,
        (goffset) (body->start + body->length - 1), (goffset) recording_cut_get_size (self->cut));
  soup_message_headers_set_content_length (headers, (goffset) body->length);
  soup_message_body_set_accumulate (soup_server_message_get_response_body (self->message), FALSE);
}

static void read_next (Sending *self);

static void
plan_or_read (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  Sending *self = data;
  GError *error = NULL;
  GBytes *bytes = NULL;

  if (!self->cut)
    self->cut = recording_cut_new (recording_writer_get_folder (self->writer),
        recording_writer_get_mount (self->writer), recording_writer_get_list (self->writer),
        self->start_us, self->duration_us, &error);
  else if (self->placed || recording_cut_seek (self->cut, self->first, &error))
    bytes = recording_cut_read (self->cut, &error);
  self->placed = self->begun;
  if (error)
    g_task_return_error (task, error);
  else
    g_task_return_pointer (task, bytes, bytes ? (GDestroyNotify) g_bytes_unref : NULL);
}

// Answers that the plan has failed. The connection ends if the answer has begun: then what is
// missing cannot be sent in another way.
static void
fail_sending (Sending *self, const GError *error)
{
  if (!self->begun)
    api_fail (self->message,
        g_error_matches (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND)
            ? SOUP_STATUS_NOT_FOUND
            : SOUP_STATUS_INTERNAL_SERVER_ERROR,
        NULL, "%s", error->message);
  else
    g_socket_shutdown (soup_server_message_get_socket (self->message), TRUE, TRUE, NULL);
  soup_server_message_unpause (self->message);
}

// Begins the answer, after which the bytes are read. Returns FALSE if there are none to send.
static gboolean
begin_sending (Sending *self)
{
  const HttpRequest request = { .headers =
                                    soup_server_message_get_request_headers (self->message) };
  const guint64 size = recording_cut_get_size (self->cut);
  g_autofree gchar *tag =
      g_strdup_printf ("\"%016" G_GINT64_MODIFIER "x\"", recording_cut_get_tag (self->cut));
  gboolean is_head = g_str_equal (soup_server_message_get_method (self->message), "HEAD");
  HttpBody body;

  http_request_choose_range (&request, size, tag, 0, &body);
  if (body.status == SOUP_STATUS_REQUESTED_RANGE_NOT_SATISFIABLE)
    api_fail (
        self->message, body.status, "Range", "the recording has %" G_GUINT64_FORMAT " bytes", size);
  else
    begin_answer (self, tag, &body);
  if (self->begun && !is_head)
    return TRUE;
  soup_server_message_unpause (self->message);
  return FALSE;
}

static void
send_bytes (Sending *self, GBytes *bytes)
{
  gsize size = g_bytes_get_size (bytes);
  g_autoptr (GBytes) part = g_bytes_new_from_bytes (bytes, 0, MIN (size, self->left));

  self->left -= g_bytes_get_size (part);
  soup_message_body_append_bytes (soup_server_message_get_response_body (self->message), part);
  if (self->left == 0)
    soup_message_body_complete (soup_server_message_get_response_body (self->message));
  soup_server_message_unpause (self->message);
}

static void
on_read (GObject *source, GAsyncResult *result, gpointer data)
{
  Sending *self = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = g_task_propagate_pointer (G_TASK (result), &error);

  self->busy = FALSE;
  if (self->gone) {
    sending_free (self);
  } else if (error) {
    fail_sending (self, error);
  } else if (!self->begun) {
    if (begin_sending (self))
      read_next (self);
  } else if (bytes) {
    send_bytes (self, bytes);
  }
}

static void
read_next (Sending *self)
{
  g_autoptr (GTask) task = g_task_new (NULL, NULL, on_read, self);

  self->busy = TRUE;
  g_task_set_task_data (task, self, NULL);
  g_task_run_in_thread (task, plan_or_read);
}

static void
on_wrote_chunk (SoupServerMessage *message, gpointer data)
{
  Sending *self = data;

  if (self->left == 0 || self->busy)
    return;
  soup_server_message_pause (message);
  read_next (self);
}

// Called after the answer was sent, or when the client leaves before.
static void
on_finished (SoupServerMessage *message, gpointer data)
{
  Sending *self = data;

  self->gone = TRUE;
  if (!self->busy)
    sending_free (self);
}

void
api_get_recording (ApiRequest *request)
{
  gint64 start_us = 0;
  Recording *recording;
  Sending *self;
  guint ms;

  if (!api_check_query (request, "path", "start", "duration", NULL)
      || !read_time (request, "start", TRUE, &start_us) || !read_duration (request, &ms)
      || !(recording = find (request)))
    return;
  if (request->api->n_sending >= SENDINGS_MAX) {
    api_fail (request->message, SOUP_STATUS_SERVICE_UNAVAILABLE, NULL,
        "%u recordings are being sent already; try again later", SENDINGS_MAX);
    return;
  }
  self = g_new0 (Sending, 1);
  self->api = request->api;
  self->api->n_sending++;
  self->message = g_object_ref (request->message);
  self->writer = recording_writer_ref (recording_get_writer (recording));
  self->start_us = start_us;
  self->duration_us = ms * G_GINT64_CONSTANT (1000);
  self->on_chunk =
      g_signal_connect (self->message, "wrote-chunk", G_CALLBACK (on_wrote_chunk), self);
  self->on_finished = g_signal_connect (self->message, "finished", G_CALLBACK (on_finished), self);
  soup_server_message_pause (self->message);
  read_next (self);
}
