// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/asker.h"

#include "base/log.h"
#include "outlets/rtsp/answer.h"
#include "outlets/rtsp/resume.h"
#include "weir-rtsp.h"

#include <string.h>

// Shared by all clients, because any peer can cause refusals as fast as it sends requests.
static LogLimit refusals = { .burst = 100, .interval_ms = 100 };

void
asker_init (Asker *self, GstRTSPClient *client, Mounts *mounts, Access *access)
{
  *self = (Asker) { .client = client,
    .mounts = mounts,
    .access = access,
    .layers = WEIR_LAYER_SET_ALL,
    .delay_ns = -1 };
  g_mutex_init (&self->lock);
}

void
asker_clear (Asker *self)
{
  g_clear_pointer (&self->content, content_unref);
  g_clear_pointer (&self->demand, demand_free);
  g_mutex_clear (&self->lock);
  g_free (self->url);
  g_free (self->token);
  g_clear_pointer (&self->asked, access_case_unref);
  g_clear_pointer (&self->visitor, access_peer_unref);
  g_free (self->used);
  g_free (self->full);
  g_free (self->peer);
}

// gst-rtsp-server needs the demand several times for each request, so the last one is kept.
const Demand *
asker_get_demand (Asker *self, const GstRTSPUrl *url)
{
  const gchar *path = url->abspath ? url->abspath : "";
  gchar *text = url->query ? g_strconcat (path, "?", url->query, NULL) : g_strdup (path);

  if (!self->demand || !g_str_equal (self->url, text)) {
    g_clear_pointer (&self->demand, demand_free);
    g_clear_pointer (&self->url, g_free);
    self->demand = demand_new (text);
    self->url = g_steal_pointer (&text);
  }
  g_free (text);
  return self->demand;
}

void
asker_use (Asker *self, Content *content)
{
  Content *old;

  g_mutex_lock (&self->lock);
  old = self->content;
  self->content = content;
  g_mutex_unlock (&self->lock);
  g_clear_pointer (&old, content_unref);
}

Content *
asker_dup_content (Asker *self)
{
  Content *content;

  g_mutex_lock (&self->lock);
  content = self->content ? content_ref (self->content) : NULL;
  g_mutex_unlock (&self->lock);
  return content;
}

void
asker_hand_over (Asker *self)
{
  Content *content = asker_dup_content (self);

  if (content)
    content_hand_over (content);
  g_clear_pointer (&content, content_unref);
}

// Keeps the choices of the DESCRIBE for the SETUPs that follow it: their URLs are made from the
// Content-Base of the answer, which has no query.
static void
note_choice (Asker *self, GstRTSPContext *ctx, const Demand *demand)
{
  gboolean described = ctx->method == GST_RTSP_DESCRIBE;

  if (described || !weir_layer_set_equal (demand->layers, WEIR_LAYER_SET_ALL))
    self->layers = demand->layers;
  if (described || demand->delay_ns >= 0)
    self->delay_ns = demand->delay_ns;
}

// ---- checking a request ----

// Logs the error and returns the status to answer. Takes ownership of `error`.
static GstRTSPStatusCode
refuse (Asker *self, GError *error)
{
  static const struct {
    gint code;
    GstRTSPStatusCode status;
  } known[] = {
    { G_IO_ERROR_BUSY, GST_RTSP_STS_SERVICE_UNAVAILABLE },
    { G_IO_ERROR_NO_SPACE, GST_RTSP_STS_NOT_ENOUGH_BANDWIDTH },
    { G_IO_ERROR_NOT_SUPPORTED, GST_RTSP_STS_UNSUPPORTED_MEDIA_TYPE },
    { G_IO_ERROR_PROXY_FAILED, GST_RTSP_STS_BAD_GATEWAY },
    { G_IO_ERROR_TIMED_OUT, GST_RTSP_STS_GATEWAY_TIMEOUT },
    { G_IO_ERROR_INVALID_DATA, GST_RTSP_STS_INTERNAL_SERVER_ERROR },
  };
  GstRTSPStatusCode status = GST_RTSP_STS_NOT_FOUND;

  for (gsize i = 0; i < G_N_ELEMENTS (known); i++) {
    if (g_error_matches (error, G_IO_ERROR, known[i].code))
      status = known[i].status;
  }
  log_event_limited (&refusals, "reader %s refused: %s", self->peer, error->message);
  g_free (self->full);
  self->full = status == GST_RTSP_STS_NOT_ENOUGH_BANDWIDTH ? g_strdup (error->message) : NULL;
  g_error_free (error);
  return status;
}

static Content *
make_content (Asker *self, const Resolved *resolved, GError **error)
{
  GstRTSPMountPoints *points = gst_rtsp_client_get_mount_points (self->client);
  Content *content = content_new (points, resolved, error);

  g_object_unref (points);
  return content;
}

// Returns the title in use if it is the requested one. Otherwise releases it before it opens the
// requested one, because the old title may hold the last slot.
static Content *
use_title (Asker *self, const Resolved *resolved, GError **error)
{
  Content *content = asker_dup_content (self);

  if (content_is (content, resolved))
    return content;
  g_clear_pointer (&content, content_unref);
  asker_use (self, NULL);
  return make_content (self, resolved, error);
}

// Resolves an admitted request, and uses its content. Returns the content (transfer full), or NULL
// and sets `error`.
static Content *
find_content (Asker *self, GstRTSPContext *ctx, const GstRTSPUrl *url, GError **error)
{
  const Demand *demand = asker_get_demand (self, url);
  Content *content = NULL;
  Resolved resolved;

  if (!mounts_resolve (self->mounts, demand, &resolved, error))
    return NULL;
  content =
      resolved.title ? use_title (self, &resolved, error) : make_content (self, &resolved, error);
  resolved_clear (&resolved);
  if (!content)
    return NULL;
  asker_use (self, content_ref (content));
  g_free (self->used);
  self->used = g_strndup (demand->url, strlen (demand->url) - strlen (demand->track));
  note_choice (self, ctx, demand);
  return content;
}

// Reports whether the current request was put aside until its content is ready.
static gboolean
has_waited (Asker *self, GstRTSPContext *ctx)
{
  return self->waits_for_content && weir_client_was_deferred (self->client, ctx);
}

// Checks that the content is ready. Puts the request aside while the content starts; the request is
// then checked once more.
static GstRTSPStatusCode
check_ready (Asker *self, GstRTSPContext *ctx, Content *content)
{
  GError *error = NULL;
  PresentationState state = content_ask (content, &error);

  if (state == PRESENTATION_READY)
    return GST_RTSP_STS_OK;
  if (state == PRESENTATION_STARTING && !has_waited (self, ctx)
      && weir_client_defer (self->client, ctx)) {
    self->waits_for_content = TRUE;
    content_wait (content, resume_run, resume_new (self->client));
    return GST_RTSP_STS_SERVICE_UNAVAILABLE;
  }
  // The next request opens the title again.
  if (content->title)
    asker_use (self, NULL);
  if (!error)
    g_set_error (&error, G_IO_ERROR, G_IO_ERROR_BUSY, "%s has no media at the moment",
        content_get_label (content));
  return refuse (self, error);
}

void
asker_explain (Asker *self, GstRTSPContext *ctx)
{
  gchar *why = self->full ? g_strconcat (self->full, "\r\n", NULL) : NULL;

  if (why)
    answer_add_body (ctx, "text/plain", why, strlen (why));
  g_free (why);
  g_clear_pointer (&self->full, g_free);
}

void
asker_explain_ports (Asker *self, GstRTSPContext *ctx)
{
  static const gchar why[] = "the server has no free UDP ports; use TCP\r\n";

  if (!ctx->stream || !weir_stream_is_tcp_only (ctx->stream))
    return;
  log_event_limited (
      &refusals, "reader %s refused: SETUP: %.*s", self->peer, (int) strlen (why) - 2, why);
  answer_add_body (ctx, "text/plain", why, strlen (why));
}

void
asker_note_session (Asker *self, GstRTSPContext *ctx)
{
  log_event_limited (&refusals,
      "reader %s refused: %s: its header Session names no session of this connection", self->peer,
      gst_rtsp_method_as_text (ctx->method));
}

// Reports whether a SETUP needs a session, and the connection can have no other.
static gboolean
lacks_session (Asker *self, GstRTSPContext *ctx)
{
  GstRTSPSessionPool *pool = gst_rtsp_client_get_session_pool (self->client);
  gboolean full =
      gst_rtsp_session_pool_get_n_sessions (pool) >= gst_rtsp_session_pool_get_max_sessions (pool);

  g_object_unref (pool);
  return full && ctx->method == GST_RTSP_SETUP && !ctx->session;
}

GstRTSPStatusCode
asker_check (Asker *self, GstRTSPContext *ctx, const GstRTSPUrl *url)
{
  // A request that was put aside uses the content for which it has waited, not another session of a
  // title. Later requests of the client have waited, too.
  Content *content = has_waited (self, ctx) ? asker_dup_content (self) : NULL;
  GError *error = NULL;
  GstRTSPStatusCode status;

  if (!content && lacks_session (self, ctx))
    g_set_error_literal (&error, G_IO_ERROR, G_IO_ERROR_BUSY,
        "SETUP: the connection has too many sessions (limits.sessions)");
  else if (!content)
    content = find_content (self, ctx, url, &error);
  if (!content)
    return refuse (self, error);
  status = check_ready (self, ctx, content);
  content_unref (content);
  return status;
}

// Reports whether the demand has the URL of the content in use. That URL stays valid for a session
// of a title, and for content that the mount no longer offers.
static gboolean
is_used (Asker *self, const Demand *demand)
{
  gsize len = strlen (demand->url) - strlen (demand->track);

  return self->used && strncmp (self->used, demand->url, len) == 0 && self->used[len] == '\0';
}

// Returns the path of the demand's content (transfer full). Returns "", a path that gst-rtsp-server
// does not know, for choices that do not run; otherwise the library would match the mount's path.
// Returns NULL if nothing is served there, or if each client gets its own path.
static gchar *
resolve_path (Asker *self, const Demand *demand, Content *content)
{
  gchar *path = NULL;
  Resolved resolved;

  if (!mounts_resolve (self->mounts, demand, &resolved, NULL))
    return NULL;
  if (content_is (content, &resolved))
    path = g_strdup (content_get_path (content));
  else if (resolved.path)
    path = g_strdup (mount_has_path (resolved.mount, resolved.path) ? resolved.path : "");
  resolved_clear (&resolved);
  return path;
}

gchar *
asker_make_path (Asker *self, const GstRTSPUrl *url)
{
  const Demand *demand = asker_get_demand (self, url);
  Content *content = asker_dup_content (self);
  gchar *found, *path;

  if (content && is_used (self, demand))
    found = g_strdup (content_get_path (content));
  else
    found = resolve_path (self, demand, content);
  if (!found)
    path = g_strdup (url->abspath && *url->abspath ? url->abspath : "/");
  else
    path = g_strconcat (found, *found ? demand->track : "", NULL);
  g_clear_pointer (&content, content_unref);
  g_free (found);
  return path;
}
