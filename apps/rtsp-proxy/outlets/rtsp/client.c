// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/client.h"

#include "base/log.h"
#include "content/live_content.h"
#include "content/stored_content.h"
#include "content/title_media.h"
#include "outlets/rtsp/timeshift.h"
#include "readers/adaptation.h"
#include "readers/totals.h"
#include "weir-rtsp.h"

#include <gio/gio.h>
#include <string.h>

#define REQUEST_BODY_MAX (64 * 1024)
#define SESSIONS_MAX 8

typedef struct {
  GstRTSPClient parent;
  Mounts *mounts;
  GstRTSPSessionPool *pool; // its own: another connection's sessions can't be had from here
  gchar *peer;              // "127.0.0.1:5004"
  Demand *demand;           // of the request at hand. Of its thread.
  WeirLayerSet layers;      // that its URLs choose. Of its thread.
  gint64 delay_ns;          // that its URL asks for, or -1. Of its thread.

  GMutex lock;           // all below
  GMainContext *context; // of the client's thread
  Content *content;      // in use, or NULL
  gchar *session;        // that plays
  Reader *reader;        // the same, for those who ask
  gchar *leave_reason;
} Client;

typedef struct {
  GstRTSPClientClass parent_class;
} ClientClass;

static gint n_playing; // atomic

GType client_get_type (void);
G_DEFINE_TYPE (Client, client, GST_TYPE_RTSP_CLIENT)

guint
client_n_playing (void)
{
  return (guint) g_atomic_int_get (&n_playing);
}

// ---- what it asks for ----

// Parsed once, though the library asks for it over and over.
static const Demand *
get_demand (Client *self, const GstRTSPUrl *url)
{
  const gchar *path = url->abspath ? url->abspath : "";
  gchar *text = url->query ? g_strconcat (path, "?", url->query, NULL) : g_strdup (path);

  if (!self->demand || !g_str_equal (self->demand->url, text)) {
    g_clear_pointer (&self->demand, demand_free);
    self->demand = demand_new (text);
  }
  g_free (text);
  return self->demand;
}

static void
remember_context (Client *self)
{
  GSource *source = g_main_current_source ();

  if (source && !self->context)
    self->context = g_main_context_ref (g_source_get_context (source));
}

// Takes over the reference.
static void
use (Client *self, Content *content)
{
  Content *old;

  g_mutex_lock (&self->lock);
  remember_context (self);
  old = self->content;
  self->content = content;
  g_mutex_unlock (&self->lock);
  g_clear_pointer (&old, content_unref);
}

static Content *
dup_content (Client *self)
{
  Content *content;

  g_mutex_lock (&self->lock);
  content = self->content ? content_ref (self->content) : NULL;
  g_mutex_unlock (&self->lock);
  return content;
}

// NULL: none is in use.
static Presentation *
dup_presentation (Client *self)
{
  Content *content = dup_content (self);
  Presentation *presentation = live_content_get (content);

  if (presentation)
    presentation_ref (presentation);
  g_clear_pointer (&content, content_unref);
  return presentation;
}

static Title *
dup_title (Client *self)
{
  Content *content = dup_content (self);
  Title *title = stored_content_get (content);

  if (title)
    title_ref (title);
  g_clear_pointer (&content, content_unref);
  return title;
}

static GWeakRef *
weak_new (gpointer object)
{
  GWeakRef *weak = g_new (GWeakRef, 1);

  g_weak_ref_init (weak, object);
  return weak;
}

static void
media_told (gpointer weak)
{
  GstRTSPClient *client = g_weak_ref_get (weak);

  if (client) {
    weir_client_resume (client);
    g_object_unref (client);
  }
  g_weak_ref_clear (weak);
  g_free (weak);
}

// The base that a DESCRIBE is answered with, under which tracks are set up, has no query.
static void
note_choice (Client *self, GstRTSPContext *ctx, const Demand *demand)
{
  gboolean described = ctx->method == GST_RTSP_DESCRIBE;

  if (described || !weir_layer_set_equal (demand->layers, WEIR_LAYER_SET_ALL))
    self->layers = demand->layers;
  if (described || demand->delay_ns >= 0)
    self->delay_ns = demand->delay_ns;
}

// ---- before the library ----

// Why it can't be had, in the log and as a status.
static GstRTSPStatusCode
refuse (Client *self, GError *error)
{
  GstRTSPStatusCode status = GST_RTSP_STS_NOT_FOUND;

  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_BUSY))
    status = GST_RTSP_STS_SERVICE_UNAVAILABLE;
  else if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED))
    status = GST_RTSP_STS_UNSUPPORTED_MEDIA_TYPE;
  log_event ("reader %s: refused, %s", self->peer, error->message);
  g_error_free (error);
  return status;
}

static gboolean
admit (Client *self, GstRTSPContext *ctx, const Demand *demand, GError **error)
{
  gchar *credentials = NULL;

  gst_rtsp_message_get_header (ctx->request, GST_RTSP_HDR_AUTHORIZATION, &credentials, 0);
  return mounts_admit (self->mounts, demand, self->peer, credentials, error);
}

// A title that is open stays, another goes first: it may have the last slot.
static Content *
use_title (Client *self, const Resolved *resolved, GError **error)
{
  Content *content = dup_content (self);

  if (resolved_is (resolved, content))
    return content;
  g_clear_pointer (&content, content_unref);
  use (self, NULL);
  return mounts_use (self->mounts, resolved, error);
}

// A reference.
static Content *
find_content (Client *self, GstRTSPContext *ctx, GError **error)
{
  const Demand *demand = get_demand (self, ctx->uri);
  Content *content = NULL;
  Resolved resolved;

  if (!mounts_resolve (self->mounts, demand, &resolved, error))
    return NULL;
  if (admit (self, ctx, demand, error))
    content = resolved.title ? use_title (self, &resolved, error)
                             : mounts_use (self->mounts, &resolved, error);
  resolved_clear (&resolved);
  if (!content)
    return NULL;
  use (self, content_ref (content));
  if (live_content_get (content))
    note_choice (self, ctx, demand);
  return content;
}

// While it starts, the request is put aside: it comes here once more, when more is known.
static GstRTSPStatusCode
check_ready (Client *self, GstRTSPContext *ctx, Content *content)
{
  GError *error = NULL;
  ContentState state = content_ask (content, &error);

  if (state == CONTENT_READY)
    return GST_RTSP_STS_OK;
  if (state == CONTENT_STARTING && !weir_client_was_deferred (GST_RTSP_CLIENT (self), ctx)
      && weir_client_defer (GST_RTSP_CLIENT (self), ctx)) {
    content_wait (content, media_told, weak_new (self));
    return GST_RTSP_STS_SERVICE_UNAVAILABLE;
  }
  // A title is opened anew when it is asked for once more.
  if (stored_content_get (content))
    use (self, NULL);
  if (!error)
    g_set_error (
        &error, G_IO_ERROR, G_IO_ERROR_BUSY, "%s has no media now", content_get_label (content));
  return refuse (self, error);
}

// Before the library looks at a DESCRIBE or a SETUP, so that neither can build anything for a path
// that is not served, nor wait inside of the library for an upstream.
static GstRTSPStatusCode
on_pre_request (GstRTSPClient *client, GstRTSPContext *ctx, gpointer unused)
{
  Client *self = (Client *) client;
  // It asks for what it has waited for, and not for another session of a title. No other request
  // of the client has been handled since.
  Content *content = weir_client_was_deferred (client, ctx) ? dup_content (self) : NULL;
  GError *error = NULL;
  GstRTSPStatusCode status;

  if (!content)
    content = find_content (self, ctx, &error);
  if (!content)
    return refuse (self, error);
  status = check_ready (self, ctx, content);
  content_unref (content);
  return status;
}

// The library has prepared it once more for itself, or for a session.
static void
on_request (GstRTSPClient *client, GstRTSPContext *ctx, gpointer unused)
{
  Title *title = dup_title ((Client *) client);

  if (title)
    title_hand_over (title);
  g_clear_pointer (&title, title_unref);
}

// The path of what was resolved; "", which the library does not know, of a choice that does not
// run: else it would take the mount's own for it. NULL: it has none yet.
static gchar *
make_path (const Resolved *resolved, Content *content, const gchar *track)
{
  // Its session of a title is found again by the URL that began it.
  if (content && resolved_is (resolved, content))
    return g_strconcat (content_get_path (content), track, NULL);
  if (!resolved->path)
    return NULL;
  if (!mount_has_path (resolved->mount, resolved->path))
    return g_strdup ("");
  return g_strconcat (resolved->path, track, NULL);
}

static gchar *
client_make_path_from_uri (GstRTSPClient *client, const GstRTSPUrl *url)
{
  Client *self = (Client *) client;
  const Demand *demand = get_demand (self, url);
  Content *content = dup_content (self);
  gchar *path = NULL;
  Resolved resolved;

  if (mounts_resolve (self->mounts, demand, &resolved, NULL)) {
    path = make_path (&resolved, content, demand->track);
    resolved_clear (&resolved);
  }
  g_clear_pointer (&content, content_unref);
  if (path)
    return path;
  return g_strdup (url->abspath && *url->abspath ? url->abspath : "/");
}

// ---- PLAY ----

static gboolean
has_cache (Client *self)
{
  Presentation *presentation = dup_presentation (self);
  MountConfig *config = presentation ? presentation_dup_config (presentation) : NULL;
  gboolean cache = config && config->cache.time_ms > 0;

  g_clear_pointer (&config, mount_config_unref);
  g_clear_pointer (&presentation, presentation_unref);
  return cache;
}

static gboolean
title_is_at_work (Client *self)
{
  Title *title = dup_title (self);
  gboolean works = title && title_works (title);

  g_clear_pointer (&title, title_unref);
  return works;
}

static GstRTSPStatusCode
on_pre_pause (GstRTSPClient *client, GstRTSPContext *ctx, gpointer unused)
{
  GstRTSPMedia *media = gst_rtsp_session_media_get_media (ctx->sessmedia);
  Client *self = (Client *) client;
  gboolean cache = has_cache (self);
  Reader *reader;

  // What it was told to do before was given up, and may not have come to its end.
  if (title_is_at_work (self))
    return GST_RTSP_STS_SERVICE_UNAVAILABLE;
  reader = client_dup_reader (client);
  if (reader)
    reader_pause (reader, cache);
  g_clear_pointer (&reader, reader_unref);
  if (title_media_is (media))
    title_media_pausing (media);
  else if (cache)
    timeshift_pause (ctx);
  return GST_RTSP_STS_OK;
}

static void
on_pause (GstRTSPClient *client, GstRTSPContext *ctx, gpointer unused)
{
  GstRTSPMedia *media = gst_rtsp_session_media_get_media (ctx->sessmedia);

  if (title_media_is (media))
    title_media_paused (media);
}

static GstRTSPStatusCode
on_pre_play (GstRTSPClient *client, GstRTSPContext *ctx, gpointer unused)
{
  Client *self = (Client *) client;
  Reader *reader = client_dup_reader (client);
  GstRTSPStatusCode status = GST_RTSP_STS_OK;

  // The library would answer it in a message that it has not made yet.
  gst_rtsp_message_remove_header (ctx->request, GST_RTSP_HDR_SEEK_STYLE, -1);
  if (has_cache (self))
    status = timeshift_play (ctx, self->delay_ns, self->peer, reader);
  g_clear_pointer (&reader, reader_unref);
  return status;
}

static GstSDPMessage *
client_create_sdp (GstRTSPClient *client, GstRTSPMedia *media)
{
  Client *self = (Client *) client;
  GstSDPMessage *sdp = GST_RTSP_CLIENT_CLASS (client_parent_class)->create_sdp (client, media);

  if (sdp && has_cache (self))
    timeshift_describe (media, sdp, self->peer);
  return sdp;
}

// It is put aside until that has come to an end. The library asks once more then.
static GstRTSPStatusCode
begin_play (
    Title *title, GstRTSPContext *ctx, GstRTSPTimeRange **range, GstSeekFlags *flags, gdouble rate)
{
  GstRTSPStatusCode status;

  if (title_works (title))
    return GST_RTSP_STS_SERVICE_UNAVAILABLE;
  // A sink would tell what comes next at the place before.
  weir_media_set_rtp_info_func (ctx->media, NULL, NULL, NULL);
  status = title_media_adjust_play (ctx->media, range, flags, rate);
  if (status != GST_RTSP_STS_OK)
    return status;
  if (!weir_client_defer (ctx->client, ctx))
    return title_media_play (ctx->sessmedia, *range, *flags, rate);
  title_play (title, ctx->sessmedia, g_steal_pointer (range), *flags, rate);
  title_wait (title, media_told, weak_new (ctx->client));
  return GST_RTSP_STS_SERVICE_UNAVAILABLE;
}

// The library, which would go there once more, doesn't look whether there is anything.
static GstRTSPStatusCode
adjust_title (
    Client *self, GstRTSPContext *ctx, GstRTSPTimeRange **range, GstSeekFlags *flags, gdouble *rate)
{
  Title *title = dup_title (self);
  GstRTSPStatusCode status;

  // Another request of this connection may have asked for something else since.
  if (!title)
    return GST_RTSP_STS_METHOD_NOT_VALID_IN_THIS_STATE;
  status = weir_client_was_deferred (ctx->client, ctx)
               ? title_get_play_status (title)
               : begin_play (title, ctx, range, flags, *rate);
  g_clear_pointer (range, gst_rtsp_range_free);
  *flags = GST_SEEK_FLAG_NONE;
  *rate = 1.0;
  title_unref (title);
  return status;
}

// The library asserts that every stream of a PLAY has a segment, and the same rates
// (gst_rtsp_media_get_rates()): that must be so before it looks.
static gboolean
can_be_played (GstRTSPMedia *media)
{
  for (guint i = 0; i < gst_rtsp_media_n_streams (media); i++) {
    GstRTSPStream *stream = gst_rtsp_media_get_stream (media, i);
    gdouble rate, applied;

    if (!gst_rtsp_stream_is_complete (stream) || !gst_rtsp_stream_is_sender (stream))
      continue;
    if (!gst_rtsp_stream_get_rates (stream, &rate, &applied) || rate != 1.0 || applied != 1.0)
      return FALSE;
  }
  return TRUE;
}

static void
prepare_layers (Client *self, Presentation *presentation, GstRTSPSessionMedia *media)
{
  MountConfig *config = presentation_dup_config (presentation);

  reader_prepare_layers (media, adaptation_limit (config, self->layers));
  mount_config_unref (config);
}

static GstRTSPStatusCode
adjust_presentation (Client *self, GstRTSPContext *ctx, gdouble rate)
{
  Presentation *presentation = dup_presentation (self);
  GstRTSPStatusCode status = GST_RTSP_STS_OK;

  if (!presentation)
    return GST_RTSP_STS_METHOD_NOT_VALID_IN_THIS_STATE;
  if (rate != 1.0)
    status = GST_RTSP_STS_PARAMETER_NOT_UNDERSTOOD;
  else if (!can_be_played (ctx->media))
    status = GST_RTSP_STS_SERVICE_UNAVAILABLE;
  else if (gst_rtsp_session_media_get_rtsp_state (ctx->sessmedia) != GST_RTSP_STATE_PLAYING)
    prepare_layers (self, presentation, ctx->sessmedia);
  presentation_unref (presentation);
  return status;
}

static GstRTSPStatusCode
client_adjust_play_mode (GstRTSPClient *client, GstRTSPContext *ctx, GstRTSPTimeRange **range,
    GstSeekFlags *flags, gdouble *rate, GstClockTime *trickmode_interval,
    gboolean *enable_rate_control)
{
  Client *self = (Client *) client;

  return title_media_is (ctx->media) ? adjust_title (self, ctx, range, flags, rate)
                                     : adjust_presentation (self, ctx, *rate);
}

// A PLAY that was to go elsewhere is refused, and what was sent goes on.
static void
on_refused (GstRTSPClient *client, GstRTSPSessionMedia *media)
{
  Reader *reader = client_dup_reader (client);

  if (reader && gst_rtsp_session_media_get_rtsp_state (media) == GST_RTSP_STATE_PLAYING)
    reader_resume (reader);
  g_clear_pointer (&reader, reader_unref);
}

static void
on_send_message (GstRTSPClient *client, GstRTSPContext *ctx, GstRTSPMessage *message)
{
  GstRTSPStatusCode code = GST_RTSP_STS_INVALID;

  if (ctx->method == GST_RTSP_PLAY && ctx->sessmedia
      && gst_rtsp_message_parse_response (message, &code, NULL, NULL) == GST_RTSP_OK
      && code != GST_RTSP_STS_OK)
    on_refused (client, ctx->sessmedia);
}

static GstRTSPStatusCode
client_adjust_play_response (GstRTSPClient *client, GstRTSPContext *ctx)
{
  if (has_cache ((Client *) client))
    timeshift_answer (ctx);
  return GST_RTSP_STS_OK;
}

static const gchar *
transport_name (GstRTSPSessionMedia *media)
{
  guint n = gst_rtsp_media_n_streams (gst_rtsp_session_media_get_media (media));

  for (guint i = 0; i < n; i++) {
    GstRTSPStreamTransport *transport = gst_rtsp_session_media_get_transport (media, i);
    const GstRTSPTransport *t =
        transport ? gst_rtsp_stream_transport_get_transport (transport) : NULL;

    if (t)
      return weir_transport_is_tcp (t) ? "TCP" : "UDP";
  }
  return "nothing";
}

static void
on_play (GstRTSPClient *client, GstRTSPContext *ctx, gpointer unused)
{
  Client *self = (Client *) client;
  Presentation *presentation;
  Content *content;
  const gchar *transport;
  Reader *reader;
  gboolean first;

  g_mutex_lock (&self->lock);
  first = !self->session;
  if (first)
    self->session = g_strdup (gst_rtsp_session_get_sessionid (ctx->session));
  reader = self->reader ? reader_ref (self->reader) : NULL;
  g_mutex_unlock (&self->lock);
  if (reader)
    reader_resume (reader);
  g_clear_pointer (&reader, reader_unref);
  if (!first)
    return;
  transport = transport_name (ctx->sessmedia);
  content = dup_content (self);
  g_atomic_int_inc (&n_playing);
  log_event ("reader %s in: %s over %s", self->peer, content ? content_get_label (content) : "?",
      transport);

  // Asks sinks: not with the lock held.
  reader = reader_new (
      ctx->sessmedia, content ? content_get_mount_path (content) : "?", self->peer, transport);
  presentation = live_content_get (content);
  if (presentation)
    adaptation_watch (reader, presentation, self->layers);
  g_clear_pointer (&content, content_unref);
  g_mutex_lock (&self->lock);
  if (self->session) // not timed out since
    self->reader = g_steal_pointer (&reader);
  g_mutex_unlock (&self->lock);
  if (reader) {
    adaptation_forget (reader);
    reader_unref (reader);
  }
}

Reader *
client_dup_reader (GstRTSPClient *client)
{
  Client *self = (Client *) client;
  Reader *reader;

  g_mutex_lock (&self->lock);
  reader = self->reader ? reader_ref (self->reader) : NULL;
  g_mutex_unlock (&self->lock);
  return reader;
}

// ---- leaving ----

static void
reader_left (Reader *reader)
{
  ReaderSample last;

  adaptation_forget (reader);
  reader_sample_reports (reader, &last);
  totals_reader_left (reader_get_mount (reader), last.lost, last.reports);
  reader_unref (reader);
}

static void
left (Client *self, const gchar *reason)
{
  Reader *reader = NULL;
  gchar *why = NULL;
  Content *content;

  g_mutex_lock (&self->lock);
  if (self->session) {
    why = self->leave_reason ? g_strdup (self->leave_reason) : g_strdup (reason);
    g_clear_pointer (&self->session, g_free);
    g_clear_pointer (&self->leave_reason, g_free);
    reader = g_steal_pointer (&self->reader);
  }
  g_mutex_unlock (&self->lock);
  if (reader)
    reader_left (reader);
  if (why) {
    g_atomic_int_add (&n_playing, -1);
    content = dup_content (self);
    log_event (
        "reader %s out: %s: %s", self->peer, content ? content_get_label (content) : "?", why);
    g_clear_pointer (&content, content_unref);
    g_free (why);
  }
}

static void
set_leave_reason (Client *self, const gchar *reason)
{
  g_mutex_lock (&self->lock);
  if (!self->leave_reason)
    self->leave_reason = g_strdup (reason);
  g_mutex_unlock (&self->lock);
}

static void
on_teardown (GstRTSPClient *client, GstRTSPContext *ctx, gpointer unused)
{
  Client *self = (Client *) client;
  Content *content = dup_content (self);

  left (self, "TEARDOWN");
  if (stored_content_get (content))
    use (self, NULL);
  g_clear_pointer (&content, content_unref);
}

static void
left_with_connection (Client *self)
{
  gchar *reason = weir_client_get_close_reason (GST_RTSP_CLIENT (self));

  left (self, reason ? reason : "connection closed");
  g_free (reason);
}

static void
on_closed (GstRTSPClient *client, gpointer unused)
{
  left_with_connection ((Client *) client);
}

static GPrivate cleaning_up;

void
client_cleanup_sessions (GstRTSPClient *client)
{
  g_private_set (&cleaning_up, client);
  gst_rtsp_session_pool_cleanup (((Client *) client)->pool);
  g_private_set (&cleaning_up, NULL);
}

static void
on_session_removed (GstRTSPSessionPool *pool, GstRTSPSession *session, Client *self)
{
  gboolean ours;

  g_mutex_lock (&self->lock);
  ours = self->session && g_str_equal (self->session, gst_rtsp_session_get_sessionid (session));
  g_mutex_unlock (&self->lock);
  if (ours && g_private_get (&cleaning_up))
    left (self, "session timed out");
  else if (ours)
    left_with_connection (self);
}

static gboolean
close_here (gpointer data)
{
  gst_rtsp_client_close (data);
  return G_SOURCE_REMOVE;
}

// It is the presentation, or a title of its mount.
static gboolean
ends_with (Content *content, Presentation *presentation)
{
  return content
         && (live_content_get (content) == presentation
             || (stored_content_get (content)
                 && g_str_equal (
                     content_get_mount_path (content), presentation_get_path (presentation))));
}

void
client_close (GstRTSPClient *client, Presentation *presentation, const gchar *reason)
{
  Client *self = (Client *) client;
  GMainContext *context = NULL;
  gboolean ours;

  g_mutex_lock (&self->lock);
  ours = !presentation || ends_with (self->content, presentation);
  if (self->context)
    context = g_main_context_ref (self->context);
  g_mutex_unlock (&self->lock);
  if (!ours) {
    g_clear_pointer (&context, g_main_context_unref);
    return;
  }
  set_leave_reason (self, reason);
  if (!context) { // it has not asked for anything yet
    gst_rtsp_client_close (client);
    return;
  }
  g_main_context_invoke_full (
      context, G_PRIORITY_DEFAULT, close_here, g_object_ref (self), g_object_unref);
  g_main_context_unref (context);
}

// ---- making ----

static gchar *
peer_name (GstRTSPClient *client)
{
  GstRTSPConnection *connection = gst_rtsp_client_get_connection (client);
  GSocket *socket = connection ? gst_rtsp_connection_get_read_socket (connection) : NULL;
  GSocketAddress *address = socket ? g_socket_get_remote_address (socket, NULL) : NULL;
  gchar *name = NULL;

  if (address && G_IS_INET_SOCKET_ADDRESS (address))
    name = g_socket_connectable_to_string (G_SOCKET_CONNECTABLE (address));
  g_clear_object (&address);
  return name ? name : g_strdup ("?");
}

void
client_connected (GstRTSPClient *client)
{
  ((Client *) client)->peer = peer_name (client);
  // No tunnels: the library would join two connections by a name that any client may choose.
  gst_rtsp_connection_set_http_mode (gst_rtsp_client_get_connection (client), TRUE);
}

GstRTSPClient *
client_new (GstRTSPServer *server, Mounts *all)
{
  GstRTSPClient *client = g_object_new (client_get_type (), NULL);
  Client *self = (Client *) client;
  GstRTSPMountPoints *mounts = gst_rtsp_server_get_mount_points (server);
  GstRTSPThreadPool *threads = gst_rtsp_server_get_thread_pool (server);

  self->layers = WEIR_LAYER_SET_ALL;
  self->mounts = all;
  self->pool = gst_rtsp_session_pool_new ();
  gst_rtsp_session_pool_set_max_sessions (self->pool, SESSIONS_MAX);
  gst_rtsp_client_set_session_pool (client, self->pool);
  gst_rtsp_client_set_mount_points (client, mounts);
  gst_rtsp_client_set_thread_pool (client, threads);
  gst_rtsp_client_set_content_length_limit (client, REQUEST_BODY_MAX);
  g_object_unref (mounts);
  g_object_unref (threads);

  g_signal_connect (client, "pre-describe-request", G_CALLBACK (on_pre_request), NULL);
  g_signal_connect (client, "pre-setup-request", G_CALLBACK (on_pre_request), NULL);
  g_signal_connect (client, "send-message", G_CALLBACK (on_send_message), NULL);
  g_signal_connect (client, "pre-pause-request", G_CALLBACK (on_pre_pause), NULL);
  g_signal_connect (client, "pause-request", G_CALLBACK (on_pause), NULL);
  g_signal_connect (client, "describe-request", G_CALLBACK (on_request), NULL);
  g_signal_connect (client, "setup-request", G_CALLBACK (on_request), NULL);
  g_signal_connect (client, "pre-play-request", G_CALLBACK (on_pre_play), NULL);
  g_signal_connect (client, "play-request", G_CALLBACK (on_play), NULL);
  g_signal_connect (client, "teardown-request", G_CALLBACK (on_teardown), NULL);
  g_signal_connect (client, "closed", G_CALLBACK (on_closed), NULL);
  g_signal_connect_object (
      self->pool, "session-removed", G_CALLBACK (on_session_removed), client, 0);
  return client;
}

static void
client_init (Client *self)
{
  g_mutex_init (&self->lock);
  self->delay_ns = -1;
}

static void
client_finalize (GObject *object)
{
  Client *self = (Client *) object;
  Content *content = self->content;

  left (self, "connection closed");
  g_clear_object (&self->pool);
  g_clear_pointer (&self->context, g_main_context_unref);
  g_clear_pointer (&self->demand, demand_free);
  g_free (self->leave_reason);
  g_free (self->peer);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (client_parent_class)->finalize (object);
  // Last: now the client has let its media go.
  g_clear_pointer (&content, content_unref);
}

static void
client_class_init (ClientClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = client_finalize;
  GST_RTSP_CLIENT_CLASS (klass)->make_path_from_uri = client_make_path_from_uri;
  GST_RTSP_CLIENT_CLASS (klass)->create_sdp = client_create_sdp;
  GST_RTSP_CLIENT_CLASS (klass)->adjust_play_mode = client_adjust_play_mode;
  GST_RTSP_CLIENT_CLASS (klass)->adjust_play_response = client_adjust_play_response;
}
