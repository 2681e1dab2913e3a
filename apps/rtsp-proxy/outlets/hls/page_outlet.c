// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/hls/page_outlet.h"

#include <libsoup/soup.h>
#include <string.h>

#include "mounts/publish_check.h"
#include "outlets/hls/page_list.h"
#include "outlets/http/http_answer.h"
#include "rtsp-proxy-page.h"

#define FILES PAGE_PREFIX "~/" // of the pages
#define PUBLISH_PREFIX "/publish/"
#define PUBLISH_PAGE "publish.html"
#define POLICY                                                                                     \
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "                  \
  "media-src 'self' blob:; worker-src blob:; img-src 'self' data:"
// Nobody is to click on a page that publishes without knowing which.
#define PUBLISH_POLICY POLICY "; frame-ancestors 'none'"

typedef struct {
  HttpReply reply;
  const gchar *type, *policy;
  GBytes *body;     // NULL: there is no such page
  const gchar *why; // there is none, or NULL
} Page;

static gboolean
begin (HttpReply *reply, HttpHead *head, gint64 now_ns, gint64 *wake_ns)
{
  Page *self = (Page *) reply;

  *head =
      (HttpHead) { .status = SOUP_STATUS_NOT_FOUND, .reason = self->why, .headers = head->headers };
  if (!self->body)
    return TRUE;
  head->status = SOUP_STATUS_OK;
  head->reason = NULL;
  head->type = self->type;
  head->length = (gint64) g_bytes_get_size (self->body);
  http_answer_add (head->headers, "Content-Security-Policy", self->policy);
  // Another version of the proxy may have other files.
  http_answer_add (head->headers, "Cache-Control", "max-age=60");
  return TRUE;
}

static GBytes *
next (HttpReply *reply, gboolean *ended)
{
  *ended = TRUE;
  return g_bytes_ref (((Page *) reply)->body);
}

static void
free_page (HttpReply *reply)
{
  g_clear_pointer (&((Page *) reply)->body, g_bytes_unref);
  g_free (reply);
}

static const HttpReplyOps page_ops = { .begin = begin, .next = next, .free = free_page };

static GBytes *
find_file (const gchar *name)
{
  g_autofree gchar *path = g_strconcat ("/weir/page/", name, NULL);

  return g_resource_lookup_data (
      rtsp_proxy_page_get_resource (), path, G_RESOURCE_LOOKUP_FLAGS_NONE, NULL);
}

static const gchar *
get_type (const gchar *name)
{
  return g_str_has_suffix (name, ".js")     ? "text/javascript; charset=utf-8"
         : g_str_has_suffix (name, ".css")  ? "text/css; charset=utf-8"
         : g_str_has_suffix (name, ".svg")  ? "image/svg+xml"
         : g_str_has_suffix (name, ".html") ? "text/html; charset=utf-8"
                                            : "text/plain; charset=utf-8";
}

// Makes the reply with a file, or 404, which `why` explains unless it is NULL, if `name` is NULL.
static HttpReply *
make_page (const gchar *name, const gchar *why)
{
  Page *self = g_new0 (Page, 1);

  self->reply.ops = &page_ops;
  self->body = name ? find_file (name) : NULL;
  self->type = name ? get_type (name) : NULL;
  self->policy = g_strcmp0 (name, PUBLISH_PAGE) == 0 ? PUBLISH_POLICY : POLICY;
  self->why = why;
  return &self->reply;
}

static HttpReply *
answer_watch (gpointer outlet, const HttpAsked *asked)
{
  const gchar *target = asked->request->target;
  const gchar *name = g_str_has_prefix (target, FILES)                    ? target + strlen (FILES)
                      : asked->resolved->mount && !asked->resolved->title ? "watch.html"
                                                                          : NULL;

  return make_page (name, NULL);
}

// The files are not secret.
static gchar *
dup_watched (gpointer outlet, const gchar *target)
{
  return g_str_has_prefix (target, FILES) ? NULL : g_strdup (target + strlen (PAGE_PREFIX) - 1);
}

HttpRoute
page_outlet_get_watch_route (PageOutlet *self)
{
  return (HttpRoute) { PAGE_PREFIX, ACCESS_READ, dup_watched, answer_watch, self };
}

// Somebody else may publish now: the page says so when it is to publish.
static HttpReply *
answer_publish (gpointer outlet, const HttpAsked *asked)
{
  PageOutlet *self = outlet;
  const gchar *why;
  PublishCheck check = publish_check (self->mounts, asked->demand->path, NULL, &why);
  gboolean can = check == PUBLISH_POSSIBLE || check == PUBLISH_CONFLICT;

  return make_page (can ? PUBLISH_PAGE : NULL, why);
}

static gchar *
dup_published (gpointer outlet, const gchar *target)
{
  return g_strdup (target + strlen (PUBLISH_PREFIX) - 1);
}

HttpRoute
page_outlet_get_publish_route (PageOutlet *self)
{
  return (HttpRoute) { PUBLISH_PREFIX, ACCESS_PUBLISH, dup_published, answer_publish, self };
}

static gchar *
dup_nothing (gpointer outlet, const gchar *target)
{
  return NULL;
}

static HttpReply *
answer_icon (gpointer outlet, const HttpAsked *asked)
{
  return make_page ("icon.svg", NULL);
}

// Browsers ask for it by themselves, with every page that they show.
HttpRoute
page_outlet_get_icon_route (PageOutlet *self)
{
  return (HttpRoute) { "/favicon.ico", ACCESS_READ, dup_nothing, answer_icon, self };
}

// ---- the list ----

static HttpReply *
answer_list (gpointer outlet, const HttpAsked *asked)
{
  PageOutlet *self = outlet;

  return page_list_new (self->mounts, self->access, asked);
}

HttpRoute
page_outlet_get_list_route (PageOutlet *self)
{
  return (HttpRoute) { "/", ACCESS_READ, dup_nothing, answer_list, self };
}
