// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/hls/page_list.h"

#include <libsoup/soup.h>
#include <string.h>

#include "config/host_names.h"
#include "outlets/http/http_answer.h"

#define MOUNTS_MAX 1000 // that are asked about

typedef struct {
  HttpReply reply;
  gatomicrefcount refs; // one for the connection, one for a question that is not decided
  Access *access;
  const HttpAsked *asked;
  Demand *demand;    // of the list itself
  GPtrArray *mounts; // of Mount
  guint at;
  AccessCase *current; // about mount `at`, or NULL
  GPtrArray *challenges;
  gboolean busy;
  gboolean misnamed; // something is left out because the Host header names another machine
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
  g_clear_pointer (&self->current, access_case_unref);
  g_clear_pointer (&self->body, g_bytes_unref);
  demand_free (self->demand);
  g_ptr_array_unref (self->mounts);
  g_ptr_array_unref (self->challenges);
  g_string_free (self->items, TRUE);
  g_mutex_clear (&self->lock);
  g_free (self);
}

static void
on_decided (AccessCase *decided, gpointer data)
{
  List *self = data;

  g_mutex_lock (&self->lock);
  if (self->wake)
    self->wake (self->wake_data);
  g_mutex_unlock (&self->lock);
  unref (self);
}

static void
ask (List *self, Mount *mount)
{
  const HttpAsked *asked = self->asked;
  const AccessRequest request = { .action = ACCESS_READ,
    .path = mount_get_path (mount),
    .mount = mount_get_path (mount),
    .user_agent = http_request_get (asked->request, "User-Agent"),
    .method = asked->request->method,
    .authorization = http_request_get (asked->request, "Authorization"),
    .token = self->demand->token };

  g_atomic_ref_count_inc (&self->refs);
  self->current = access_ask (self->access, asked->visitor, &request, on_decided, self);
  if (!access_case_is_later (self->current))
    unref (self);
}

static void
add_item (List *self, Mount *mount)
{
  const gchar *path = mount_get_path (mount), *token = self->demand->token;
  gchar *url = g_uri_escape_string (path + 1, "/", FALSE);
  gchar *query = token ? g_uri_escape_string (token, NULL, FALSE) : NULL;
  gchar *item = g_markup_printf_escaped ("<li><a href=\"/watch/%s%s%s\">%s</a></li>\n", url,
      query ? "?token=" : "", query ? query : "", path);

  g_string_append (self->items, item);
  g_free (item);
  g_free (query);
  g_free (url);
}

static void
take_verdict (List *self, Mount *mount)
{
  const gchar *const *challenge;

  switch (access_case_get_verdict (self->current)) {
    case ACCESS_ADMITTED:
      if (self->asked->names_us || access_case_get_basis (self->current) == ACCESS_BY_SECRET)
        add_item (self, mount);
      else
        self->misnamed = TRUE;
      break;
    case ACCESS_ASKED:
      challenge = access_case_get_challenges (self->current);
      for (; self->challenges->len < 4 && challenge && *challenge; challenge++)
        g_ptr_array_add (self->challenges, g_strdup (*challenge));
      break;
    case ACCESS_BUSY:
      self->busy = TRUE;
      break;
    default:
      break;
  }
  g_clear_pointer (&self->current, access_case_unref);
}

// Returns whether all mounts are decided.
static gboolean
decide (List *self)
{
  while (self->at < MIN (self->mounts->len, MOUNTS_MAX) && !self->busy) {
    Mount *mount = g_ptr_array_index (self->mounts, self->at);

    if (!self->current && !mount_has_titles (mount))
      ask (self, mount);
    if (self->current && access_case_get_verdict (self->current) == ACCESS_PENDING)
      return FALSE;
    if (self->current)
      take_verdict (self, mount);
    self->at++;
  }
  return TRUE;
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

  if (!decide (self))
    return FALSE;
  *head = (HttpHead) { .status = SOUP_STATUS_OK, .headers = head->headers };
  http_answer_add (head->headers, "Cache-Control", "no-store");
  if (self->busy) {
    *head = (HttpHead) { .status = SOUP_STATUS_SERVICE_UNAVAILABLE,
      .reason = "no decision is possible now",
      .headers = head->headers };
  } else if (self->items->len == 0 && self->misnamed) {
    *head = (HttpHead) {
      .status = SOUP_STATUS_FORBIDDEN, .reason = HOST_NAMES_WRONG, .headers = head->headers
    };
  } else if (self->items->len == 0 && self->challenges->len > 0) {
    head->status = SOUP_STATUS_UNAUTHORIZED;
    for (guint i = 0; i < self->challenges->len; i++)
      http_answer_add (head->headers, "WWW-Authenticate", g_ptr_array_index (self->challenges, i));
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
  self->challenges = g_ptr_array_new_with_free_func (g_free);
  self->items = g_string_new (NULL);
  self->wake = asked->wake;
  self->wake_data = asked->wake_data;
  return &self->reply;
}
