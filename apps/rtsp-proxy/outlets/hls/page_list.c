// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/hls/page_list.h"

#include <libsoup/soup.h>
#include <string.h>

#include "config/host_names.h"
#include "outlets/http/http_answer.h"

#define MOUNTS_MAX 1000 // that are listed

typedef struct {
  HttpReply reply;
  gatomicrefcount refs; // one for the connection, one for the question while it is not decided
  Access *access;
  const HttpAsked *asked;
  Demand *demand;           // of the list itself
  GPtrArray *mounts;        // of Mount
  AccessDecision *question; // which mounts the client may read; NULL: not asked yet
  gboolean misnamed;        // something is left out because the Host header names another machine
  GString *items;
  GBytes *body;

  GMutex lock; // protects `wake`
  void (*wake) (gpointer data);
  gpointer wake_data;
} List;

static void
unref (List *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_clear_pointer (&self->question, access_decision_unref);
  g_clear_pointer (&self->body, g_bytes_unref);
  demand_free (self->demand);
  g_ptr_array_unref (self->mounts);
  g_string_free (self->items, TRUE);
  g_mutex_clear (&self->lock);
  g_free (self);
}

static void
on_decided (AccessDecision *decided, gpointer data)
{
  List *self = data;

  g_mutex_lock (&self->lock);
  if (self->wake)
    self->wake (self->wake_data);
  g_mutex_unlock (&self->lock);
  unref (self);
}

static void
ask (List *self)
{
  const HttpAsked *asked = self->asked;
  const AccessRequest request = { .action = ACCESS_READ,
    .path = "/",
    .query = self->demand->query,
    .lists = TRUE,
    .user_agent = http_request_get (asked->request, "User-Agent"),
    .method = asked->request->method,
    .authorization = http_request_get (asked->request, "Authorization"),
    .token = self->demand->token };

  g_atomic_ref_count_inc (&self->refs);
  self->question = access_ask (self->access, asked->visitor, &request, on_decided, self);
  if (!access_decision_is_later (self->question))
    unref (self);
}

static void
add_item (List *self, const gchar *path)
{
  const gchar *token = self->demand->token;
  g_autofree gchar *url = g_uri_escape_string (path + 1, "/", FALSE);
  g_autofree gchar *query = token ? g_uri_escape_string (token, NULL, FALSE) : NULL;
  g_autofree gchar *item = g_markup_printf_escaped ("<li><a href=\"/watch/%s%s%s\">%s</a></li>\n",
      url, query ? "?token=" : "", query ? query : "", path);

  g_string_append (self->items, item);
}

static void
add_items (List *self)
{
  for (guint i = 0; i < MIN (self->mounts->len, MOUNTS_MAX); i++) {
    Mount *mount = g_ptr_array_index (self->mounts, i);
    AccessBasis basis;

    if (mount_has_titles (mount)
        || !access_decision_lists (self->question, mount_get_path (mount), &basis))
      continue;
    if (self->asked->names_us || basis == ACCESS_BY_SECRET)
      add_item (self, mount_get_path (mount));
    else
      self->misnamed = TRUE;
  }
}

static void
make_body (List *self)
{
  gchar *text = g_strdup_printf (
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>Streams</title>\n<link rel=\"stylesheet\" href=\"/watch/~/watch.css\">\n</head>\n"
      "<body>\n<h1>Streams</h1>\n<ul>\n%s</ul>\n%s</body>\n</html>\n",
      self->items->str,
      self->items->len > 0 ? "" : "<p>There is no stream that you may watch.</p>\n");

  self->body = g_bytes_new_take (text, strlen (text));
}

static gboolean
begin (HttpReply *reply, HttpHead *head, gint64 now_ns, gint64 *wake_ns)
{
  List *self = (List *) reply;
  AccessVerdict verdict;

  if (!self->question)
    ask (self);
  verdict = access_decision_get_verdict (self->question);
  if (verdict == ACCESS_PENDING)
    return FALSE;
  *head = (HttpHead) { .status = SOUP_STATUS_OK, .headers = head->headers };
  http_answer_add (head->headers, "Cache-Control", "no-store");
  if (verdict != ACCESS_BUSY)
    add_items (self);
  if (verdict == ACCESS_BUSY) {
    *head = (HttpHead) { .status = SOUP_STATUS_SERVICE_UNAVAILABLE,
      .reason = access_decision_get_reason (self->question),
      .headers = head->headers };
    http_answer_add (head->headers, "Retry-After", HTTP_RETRY_AFTER);
  } else if (self->items->len == 0 && self->misnamed) {
    *head = (HttpHead) {
      .status = SOUP_STATUS_FORBIDDEN, .reason = HOST_NAMES_WRONG, .headers = head->headers
    };
  } else if (self->items->len == 0 && verdict == ACCESS_ASKED) {
    head->status = SOUP_STATUS_UNAUTHORIZED;
    for (const gchar *const *challenge = access_decision_get_challenges (self->question);
        *challenge; challenge++)
      http_answer_add (head->headers, "WWW-Authenticate", *challenge);
  } else {
    http_answer_add (head->headers, "Content-Security-Policy", "default-src 'self'");
    make_body (self);
    head->type = "text/html; charset=utf-8";
    head->length = (gint64) g_bytes_get_size (self->body);
  }
  return TRUE;
}

static GBytes *
next (HttpReply *reply, gboolean *ended)
{
  *ended = TRUE;
  return g_bytes_ref (((List *) reply)->body);
}

static void
free_list (HttpReply *reply)
{
  List *self = (List *) reply;

  g_mutex_lock (&self->lock);
  self->wake = NULL;
  g_mutex_unlock (&self->lock);
  unref (self);
}

static const HttpReplyOps list_ops = { .begin = begin, .next = next, .free = free_list };

HttpReply *
page_list_new (Mounts *mounts, Access *access, const HttpAsked *asked)
{
  List *self = g_new0 (List, 1);

  self->reply.ops = &list_ops;
  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->access = access;
  self->asked = asked;
  self->demand = demand_new (asked->request->target);
  self->mounts = mounts_dup_all (mounts);
  self->items = g_string_new (NULL);
  self->wake = asked->wake;
  self->wake_data = asked->wake_data;
  return &self->reply;
}
