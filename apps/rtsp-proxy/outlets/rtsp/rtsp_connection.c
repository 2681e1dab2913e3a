// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/rtsp_connection.h"

#include "outlets/rtsp/media.h"
#include "weir-rtsp.h"

#include <string.h>

// ---- content ----

static void
clear_content (gpointer content)
{
  Content *self = content;

  if (self->live)
    live_media_unuse (self->live);
  g_clear_pointer (&self->live, live_media_unref);
  g_clear_pointer (&self->presentation, presentation_leave);
  g_clear_pointer (&self->title, title_leave);
}

Content *
content_ref (Content *self)
{
  return g_atomic_rc_box_acquire (self);
}

void
content_unref (Content *self)
{
  g_atomic_rc_box_release_full (self, clear_content);
}

// `title` and `presentation`, of which one is NULL, are in use; this takes over. `points` has the
// media of presentations. Returns NULL if both are NULL. (transfer full)
static Content *
content_new (GstRTSPClient *client, Title *title, Presentation *presentation)
{
  Content *self = g_atomic_rc_box_new0 (Content);
  GstRTSPMountPoints *points = gst_rtsp_client_get_mount_points (client);

  self->title = title;
  self->presentation = presentation;
  if (self->presentation)
    self->live = media_find_live (points, presentation_get_path (self->presentation));
  g_object_unref (points);
  if (self->live)
    live_media_use (self->live);
  if (!self->title && !self->presentation)
    g_clear_pointer (&self, content_unref);
  return self;
}

// Reports whether the content is the target. `self` may be NULL.
static gboolean
content_is (const Content *self, const Resolved *target)
{
  if (target->title)
    return self && self->title && mount_has_title (target->mount, self->title, target->title);
  if (!self || !self->presentation)
    return FALSE;
  if (target->path)
    return g_str_equal (target->path, content_get_path (self));
  // A session of the mount's stored title.
  return g_str_equal (mount_get_path (target->mount), content_get_mount_path (self));
}

static PresentationState
ask_title (Title *title, GError **error)
{
  TitleState state = title_ask (title, error);

  if (state == TITLE_FAILED)
    g_prefix_error (error, "%s: ", title_get_label (title));
  return state == TITLE_READY    ? PRESENTATION_READY
         : state == TITLE_FAILED ? PRESENTATION_DOWN
                                 : PRESENTATION_STARTING;
}

PresentationState
content_ask (Content *self, GError **error)
{
  if (self->title)
    return ask_title (self->title, error);
  return self->live ? live_media_ask (self->live, error)
                    : presentation_ask (self->presentation, error);
}

void
content_wait (Content *self, PresentationDoneFunc done, gpointer data)
{
  if (self->title)
    title_wait (self->title, done, data);
  else if (self->live)
    live_media_wait (self->live, done, data);
  else
    done (data);
}

const gchar *
content_get_path (const Content *self)
{
  return self->title ? title_get_path (self->title) : presentation_get_path (self->presentation);
}

const gchar *
content_get_mount_path (const Content *self)
{
  return self->title ? title_get_mount_path (self->title)
                     : presentation_get_mount_path (self->presentation);
}

const gchar *
content_get_label (const Content *self)
{
  if (!self)
    return "?";
  return self->title ? title_get_label (self->title) : presentation_get_label (self->presentation);
}

// ---- the connection ----

void
rtsp_connection_init (RtspConnection *self, GstRTSPClient *client, Mounts *mounts, Access *access)
{
  *self = (RtspConnection) { .client = client,
    .mounts = mounts,
    .access = access,
    .answered = g_get_monotonic_time (),
    .layers = WEIR_LAYER_SET_ALL,
    .delay_ns = -1 };
  g_mutex_init (&self->lock);
}

void
rtsp_connection_clear (RtspConnection *self)
{
  g_clear_pointer (&self->content, content_unref);
  g_clear_pointer (&self->context, g_main_context_unref);
  g_clear_pointer (&self->demand, demand_free);
  g_mutex_clear (&self->lock);
  g_free (self->url);
  g_free (self->token);
  g_clear_pointer (&self->asked, access_decision_unref);
  g_clear_pointer (&self->visitor, access_peer_unref);
  g_free (self->used);
  g_free (self->full);
  g_free (self->peer);
}

// gst-rtsp-server needs the demand several times for each request, so the last one is kept.
const Demand *
rtsp_connection_get_demand (RtspConnection *self, const GstRTSPUrl *url)
{
  const gchar *path = url->abspath ? url->abspath : "";
  g_autofree gchar *text = url->query ? g_strconcat (path, "?", url->query, NULL) : g_strdup (path);

  if (!self->demand || !g_str_equal (self->url, text)) {
    g_clear_pointer (&self->demand, demand_free);
    g_clear_pointer (&self->url, g_free);
    self->demand = demand_new (text);
    self->url = g_steal_pointer (&text);
  }
  return self->demand;
}

void
rtsp_connection_use (RtspConnection *self, Content *content)
{
  g_autoptr (Content) old = NULL;

  g_mutex_lock (&self->lock);
  old = self->content;
  self->content = content;
  g_mutex_unlock (&self->lock);
}

Content *
rtsp_connection_dup_content (RtspConnection *self)
{
  Content *content;

  g_mutex_lock (&self->lock);
  content = self->content ? content_ref (self->content) : NULL;
  g_mutex_unlock (&self->lock);
  return content;
}

gboolean
rtsp_connection_is_of_member (RtspConnection *self)
{
  const gchar *user = self->asked ? access_decision_get_user (self->asked) : NULL;

  return user && g_str_has_prefix (user, "member ");
}

void
rtsp_connection_hand_over (RtspConnection *self)
{
  g_autoptr (Content) content = rtsp_connection_dup_content (self);

  if (content && content->title)
    title_hand_over (content->title);
}

void
rtsp_connection_note_context (RtspConnection *self)
{
  GSource *source = g_main_current_source ();

  g_mutex_lock (&self->lock);
  if (source && !self->context)
    self->context = g_main_context_ref (g_source_get_context (source));
  g_mutex_unlock (&self->lock);
}

GMainContext *
rtsp_connection_dup_context (RtspConnection *self)
{
  GMainContext *context;

  g_mutex_lock (&self->lock);
  context = self->context ? g_main_context_ref (self->context) : NULL;
  g_mutex_unlock (&self->lock);
  return context;
}

// ---- the path for gst-rtsp-server ----

// Reports whether the demand has the URL of the content in use. That URL stays valid for a session
// of a title, and for content that the mount no longer offers.
static gboolean
is_used (RtspConnection *self, const Demand *demand)
{
  gsize len = strlen (demand->url) - strlen (demand->track);

  return self->used && strncmp (self->used, demand->url, len) == 0 && self->used[len] == '\0';
}

// Returns the path of the demand's content (transfer full). Returns "", a path that gst-rtsp-server
// does not know, for choices that do not run; otherwise the library would match the mount's path.
// Returns NULL if nothing is served there, or if each client gets its own path.
static gchar *
resolve_path (RtspConnection *self, const Demand *demand, Content *content)
{
  gchar *path = NULL;
  Resolved resolved;

  if (!mounts_resolve (self->mounts, demand, &resolved, NULL))
    return NULL;
  if (content_is (content, &resolved))
    path = g_strdup (content_get_path (content));
  else if (resolved.path)
    path = g_strdup (
        resolved.mount && mount_has_path (resolved.mount, resolved.path) ? resolved.path : "");
  resolved_clear (&resolved);
  return path;
}

gchar *
rtsp_connection_make_path (RtspConnection *self, const GstRTSPUrl *url)
{
  const Demand *demand = rtsp_connection_get_demand (self, url);
  g_autoptr (Content) content = rtsp_connection_dup_content (self);
  gchar *found, *path;

  if (content && is_used (self, demand))
    found = g_strdup (content_get_path (content));
  else
    found = resolve_path (self, demand, content);
  if (!found)
    path = g_strdup (url->abspath && *url->abspath ? url->abspath : "/");
  else
    path = g_strconcat (found, *found ? demand->track : "", NULL);
  g_free (found);
  return path;
}

// ---- a request, while it is checked ----

void
request_target_init (RequestTarget *self, RtspConnection *connection, GstRTSPContext *ctx)
{
  *self = (RequestTarget) { .connection = connection,
    .ctx = ctx,
    .demand = rtsp_connection_get_demand (connection, ctx->uri) };
}

void
request_target_clear (RequestTarget *self)
{
  resolved_clear (&self->target);
  g_clear_error (&self->problem);
}

const Resolved *
request_target_get (RequestTarget *self, GError **error)
{
  if (!self->is_resolved
      && !mounts_resolve (self->connection->mounts, self->demand, &self->target, &self->problem))
    self->target = (Resolved) { 0 };
  self->is_resolved = TRUE;
  if (self->problem && error)
    *error = g_error_copy (self->problem);
  return self->problem ? NULL : &self->target;
}

const Resolved *
request_target_make (RequestTarget *self, GError **error)
{
  if (!request_target_get (self, error))
    return NULL;
  if (mounts_make (self->connection->mounts, self->demand, &self->target, &self->problem))
    return &self->target;
  if (error)
    *error = g_error_copy (self->problem);
  return NULL;
}

// Keeps the choices of the DESCRIBE for the SETUPs that follow it: their URLs are made from the
// Content-Base of the answer, which has no query.
static void
note_choice (RtspConnection *self, GstRTSPContext *ctx, const Demand *demand)
{
  gboolean described = ctx->method == GST_RTSP_DESCRIBE;

  if (described || !weir_layer_set_equal (demand->layers, WEIR_LAYER_SET_ALL))
    self->layers = demand->layers;
  if (described || demand->feedback)
    self->feedback = demand->feedback;
  if (described || demand->delay_ns >= 0)
    self->delay_ns = demand->delay_ns;
}

// Starts or joins the target. Returns NULL and sets `error` on failure. (transfer full)
static Content *
make_content (RtspConnection *self, const Resolved *target, GError **error)
{
  return target->title ? content_new (self->client, mounts_open_title (target, error), NULL)
                       : content_new (self->client, NULL, mounts_use (target, error));
}

// Returns the title in use if it is the requested one. Otherwise releases it before it opens the
// requested one, because the old title may hold the last slot.
static Content *
use_title (RtspConnection *self, const Resolved *target, GError **error)
{
  Content *content = rtsp_connection_dup_content (self);

  if (content_is (content, target))
    return content;
  g_clear_pointer (&content, content_unref);
  rtsp_connection_use (self, NULL);
  return make_content (self, target, error);
}

// Returns the content in use if it is this reader's own, or if tracks of it are set up. Otherwise
// finds a session of the stored title.
static Content *
use_session (RtspConnection *self, GstRTSPContext *ctx, const Resolved *target, GError **error)
{
  Content *content = rtsp_connection_dup_content (self);

  if (content_is (content, target)
      && (ctx->session || presentation_follows (content->presentation)))
    return content;
  g_clear_pointer (&content, content_unref);
  return make_content (self, target, error);
}

Content *
request_target_use_own (RequestTarget *self, const Content *content, GError **error)
{
  RtspConnection *connection = self->connection;
  const Resolved *target = request_target_make (self, error);
  Presentation *session = content->presentation, *own;
  TitlePlace place;
  Content *made;

  if (!target || !session || presentation_follows (session) || !presentation_get_instance (session)
      || !presentation_get_place (session, &place))
    return NULL;
  own = mount_follow (target->mount, session, error);
  made = content_new (connection->client, NULL, own);
  if (made)
    rtsp_connection_use (connection, content_ref (made));
  return made;
}

Content *
request_target_use (RequestTarget *self, GError **error)
{
  RtspConnection *connection = self->connection;
  const Resolved *target = request_target_get (self, error);
  Content *content;

  if (!target)
    return NULL;
  content = target->title  ? use_title (connection, target, error)
            : target->path ? make_content (connection, target, error)
                           : use_session (connection, self->ctx, target, error);
  if (!content)
    return NULL;
  rtsp_connection_use (connection, content_ref (content));
  g_free (connection->used);
  connection->used =
      g_strndup (self->demand->url, strlen (self->demand->url) - strlen (self->demand->track));
  note_choice (connection, self->ctx, self->demand);
  return content;
}

const gchar *
request_get_header (GstRTSPContext *ctx, GstRTSPHeaderField field, gint number)
{
  gchar *value = NULL;

  gst_rtsp_message_get_header (ctx->request, field, &value, number);
  return value;
}

// ---- requests that are put aside ----

gpointer
resume_new (GstRTSPClient *client)
{
  GWeakRef *weak = g_new (GWeakRef, 1);

  g_weak_ref_init (weak, client);
  return weak;
}

void
resume_free (gpointer weak)
{
  g_weak_ref_clear (weak);
  g_free (weak);
}

static gboolean
resume_client (gpointer weak)
{
  GstRTSPClient *client = g_weak_ref_get (weak);

  if (client) {
    weir_client_resume (client);
    g_object_unref (client);
  }
  return G_SOURCE_REMOVE;
}

void
resume_run (gpointer weak)
{
  resume_client (weak);
  resume_free (weak);
}

void
resume_after (GstRTSPClient *client, guint ms)
{
  GSource *source = g_timeout_source_new (ms);

  g_source_set_callback (source, resume_client, resume_new (client), resume_free);
  g_source_attach (source, g_source_get_context (g_main_current_source ()));
  g_source_unref (source);
}

Mount *
rtsp_connection_dup_varying (const RtspConnection *self, Presentation *presentation)
{
  const gchar *path = presentation_get_path (presentation);

  if (!self->feedback || presentation_get_query (presentation)
      || presentation_get_instance (presentation) != 0 || presentation_has_cache (presentation)
      || !weir_layer_set_equal (self->layers, WEIR_LAYER_SET_ALL)
      || !g_str_equal (path, presentation_get_mount_path (presentation)))
    return NULL;
  return mounts_get (self->mounts, path);
}
