// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/picture/picture_outlet.h"

#include <libsoup/soup.h>

#include "mounts/start_wait.h"
#include "outlets/http/http_answer.h"
#include "outlets/picture/picture_source.h"
#include "outlets/picture/picture_target.h"

#define PATIENCE_NS G_GINT64_CONSTANT (20000000000) // for a keyframe and its picture

struct _PictureOutlet {
  PictureSources *sources;
};

typedef struct {
  HttpReply reply;
  const HttpAsked *asked;
  guint width;
  Presentation *presentation; // with a use; NULL: the request is wrong
  PictureSource *source;
  StartWait *wait;
  gint64 deadline_ns; // 0: the presentation has not started yet
  guint status;       // 0: not known yet
  gchar *reason;
  PictureAnswer answer;
} Reply;

// ---- the answer ----

static void
fail (Reply *self, guint status, const gchar *reason)
{
  self->status = status;
  self->reason = g_strdup (reason);
}

// Takes ownership of the error, which may be NULL.
static void
fail_with (Reply *self, GError *error)
{
  fail (self,
      g_error_matches (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND) ? SOUP_STATUS_NOT_FOUND
                                                                : SOUP_STATUS_SERVICE_UNAVAILABLE,
      error ? error->message : NULL);
  g_clear_error (&error);
}

// Asks whether the presentation is there.
static void
ask_presentation (Reply *self, gint64 now_ns)
{
  GError *error = NULL;

  switch (presentation_ask (self->presentation, &error)) {
    case PRESENTATION_READY:
      self->deadline_ns = now_ns + PATIENCE_NS;
      break;
    case PRESENTATION_DOWN:
      fail_with (self, error);
      break;
    default:
      fail (self, SOUP_STATUS_SERVICE_UNAVAILABLE,
          "the upstream takes too long to start (start-timeout)");
      break;
  }
}

static void
ask_source (Reply *self, gint64 now_ns)
{
  HttpBody body;

  picture_answer_clear (&self->answer);
  picture_source_ask (self->source, self->width, &self->answer);
  if (self->answer.jpeg) {
    http_request_choose (self->asked->request, g_bytes_get_size (self->answer.jpeg),
        self->answer.etag, self->answer.taken_s, &body);
    self->status =
        body.status == SOUP_STATUS_NOT_MODIFIED ? SOUP_STATUS_NOT_MODIFIED : SOUP_STATUS_OK;
  } else if (self->answer.problem) {
    fail (self, self->answer.has_no_video ? SOUP_STATUS_NOT_FOUND : SOUP_STATUS_SERVICE_UNAVAILABLE,
        self->answer.problem);
  } else if (now_ns >= self->deadline_ns) {
    fail (self, SOUP_STATUS_SERVICE_UNAVAILABLE,
        picture_source_has_frame (self->source) ? "too many pictures wait to be decoded"
                                                : "no keyframe has come within 20 s");
  }
}

static gboolean
begin (HttpReply *reply, HttpHead *head, gint64 now_ns, gint64 *wake_ns)
{
  Reply *self = (Reply *) reply;

  if (self->status == 0 && self->deadline_ns == 0) {
    if (!start_wait_is_over (self->wait))
      return FALSE;
    ask_presentation (self, now_ns);
  }
  if (self->status == 0)
    ask_source (self, now_ns);
  if (self->status == 0) {
    *wake_ns = self->deadline_ns;
    return FALSE;
  }
  *head = (HttpHead) { self->status, NULL, self->reason, head->headers, 0 };
  http_answer_add (
      head->headers, "Cache-Control", self->answer.jpeg ? "private, no-cache" : "no-store");
  if (self->status == SOUP_STATUS_SERVICE_UNAVAILABLE)
    http_answer_add (head->headers, "Retry-After", "5");
  if (!self->answer.jpeg)
    return TRUE;
  http_answer_add (head->headers, "ETag", self->answer.etag);
  http_answer_add_date (head->headers, "Last-Modified", self->answer.taken_s);
  if (self->status == SOUP_STATUS_OK) {
    head->type = "image/jpeg";
    head->length = (gint64) g_bytes_get_size (self->answer.jpeg);
  }
  return TRUE;
}

static GBytes *
next (HttpReply *reply, gboolean *ended)
{
  *ended = TRUE;
  return g_bytes_ref (((Reply *) reply)->answer.jpeg);
}

static void
free_reply (HttpReply *reply)
{
  Reply *self = (Reply *) reply;

  g_clear_pointer (&self->wait, start_wait_free);
  if (self->source)
    picture_source_leave (self->source, self->asked->wake_data);
  g_clear_pointer (&self->presentation, presentation_leave);
  picture_answer_clear (&self->answer);
  g_free (self->reason);
  g_free (self);
}

static const HttpReplyOps reply_ops = { .begin = begin, .next = next, .free = free_reply };

// ---- requests ----

static HttpReply *
answer (gpointer outlet, const HttpAsked *asked)
{
  const Resolved *resolved = asked->resolved;
  Reply *self = g_new0 (Reply, 1);
  GError *error = NULL;

  self->reply.ops = &reply_ops;
  self->asked = asked;
  if (!asked->demand || !resolved->mount || resolved->title) {
    fail (self, SOUP_STATUS_NOT_FOUND, NULL);
  } else if (!picture_target_read_width (asked->request->target, &self->width)) {
    fail (self, SOUP_STATUS_BAD_REQUEST, "width must be one number from 16 to 4096");
  } else if ((self->presentation = mounts_use (resolved, &error))) {
    self->source = picture_sources_join (
        ((PictureOutlet *) outlet)->sources, self->presentation, asked->wake, asked->wake_data);
    self->wait = start_wait_new (self->presentation, asked->wake, asked->wake_data);
  } else {
    fail_with (self, error);
  }
  return &self->reply;
}

static gchar *
dup_target (gpointer outlet, const gchar *target)
{
  return picture_target_dup_mount (target);
}

HttpRoute
picture_outlet_get_route (PictureOutlet *self)
{
  return (HttpRoute) { .suffix = PICTURE_SUFFIX,
    .action = ACCESS_READ,
    .dup_target = dup_target,
    .answer = answer,
    .outlet = self };
}

static void
close_pictures (Presentation *presentation, const gchar *reason, gpointer data)
{
  picture_sources_close (((PictureOutlet *) data)->sources, presentation);
}

PictureOutlet *
picture_outlet_new (Proxy *proxy)
{
  PictureOutlet *self = g_new0 (PictureOutlet, 1);

  self->sources = picture_sources_new ();
  proxy_add_closer (proxy, close_pictures, self);
  return self;
}

void
picture_outlet_free (PictureOutlet *self)
{
  picture_sources_free (self->sources);
  g_free (self);
}
