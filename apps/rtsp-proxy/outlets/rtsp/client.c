// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/client.h"

#include "base/log.h"
#include "content/title_media.h"
#include "mounts/offer.h"
#include "outlets/rtsp/timeshift.h"
#include "readers/adaptation.h"
#include "readers/totals.h"
#include "weir-rtsp.h"

#include <gio/gio.h>
#include <stdlib.h>
#include <string.h>

#define REQUEST_BODY_MAX (64 * 1024)
#define SESSIONS_MAX 8

typedef struct {
  GstRTSPClient parent;
  const ClientFuncs *funcs;
  gpointer funcs_data;
  GstRTSPSessionPool *pool; // its own: another connection's sessions can't be had from here
  gchar *peer;              // "127.0.0.1:5004"
  Demand *demand;           // of the request at hand. Of its thread.
  WeirLayerSet layers;      // that its URLs choose. Of its thread.
  gint64 delay_ns;          // that its URL asks for, or -1. Of its thread.

  GMutex lock;                // all below
  GMainContext *context;      // of the client's thread
  Presentation *presentation; // in use
  Title *title;               // the same, instead of a presentation
  gchar *session;             // that plays
  Reader *reader;             // the same, for those who ask
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

static void
let_go (Presentation *presentation)
{
  if (!presentation)
    return;
  presentation_unuse (presentation);
  presentation_unref (presentation);
}

// Takes over the reference and the use, of one of them.
static void
use (Client *self, Presentation *presentation, Title *title)
{
  Presentation *old;
  Title *old_title;

  g_mutex_lock (&self->lock);
  remember_context (self);
  old = self->presentation;
  old_title = self->title;
  self->presentation = presentation;
  self->title = title;
  g_mutex_unlock (&self->lock);
  let_go (old);
  g_clear_pointer (&old_title, title_leave);
}

static Presentation *
dup_presentation (Client *self)
{
  Presentation *presentation;

  g_mutex_lock (&self->lock);
  presentation = self->presentation ? presentation_ref (self->presentation) : NULL;
  g_mutex_unlock (&self->lock);
  return presentation;
}

static Title *
dup_title (Client *self)
{
  Title *title;

  g_mutex_lock (&self->lock);
  title = self->title ? title_ref (self->title) : NULL;
  g_mutex_unlock (&self->lock);
  return title;
}

// What logs call it, and its mount's path.
static gchar *
dup_label (Client *self, gchar **path)
{
  gchar *label;

  g_mutex_lock (&self->lock);
  label = g_strdup (self->title          ? title_get_label (self->title)
                    : self->presentation ? presentation_get_label (self->presentation)
                                         : "?");
  if (path)
    *path = g_strdup (self->title          ? title_get_mount_path (self->title)
                      : self->presentation ? presentation_get_mount_path (self->presentation)
                                           : "?");
  g_mutex_unlock (&self->lock);
  return label;
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

// While the upstream starts, the request is put aside: it comes here once more, when more is known.
static GstRTSPStatusCode
check_known (Client *self, GstRTSPContext *ctx, Presentation *presentation)
{
  PresentationState state = presentation_ask (presentation);

  if (state == PRESENTATION_KNOWN)
    return GST_RTSP_STS_OK;
  if (state == PRESENTATION_STARTING && !weir_client_was_deferred (GST_RTSP_CLIENT (self), ctx)
      && weir_client_defer (GST_RTSP_CLIENT (self), ctx)) {
    presentation_wait (presentation, media_told, weak_new (self));
  } else {
    log_event ("reader %s: refused, %s has no media now", self->peer,
        presentation_get_label (presentation));
  }
  return GST_RTSP_STS_SERVICE_UNAVAILABLE;
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

// ---- titles ----

// Why a title can't be had, in the log and as a status.
static GstRTSPStatusCode
refuse_title (Client *self, Title *title, GError *error)
{
  GstRTSPStatusCode status = GST_RTSP_STS_NOT_FOUND;

  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_BUSY))
    status = GST_RTSP_STS_SERVICE_UNAVAILABLE;
  else if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED))
    status = GST_RTSP_STS_UNSUPPORTED_MEDIA_TYPE;
  if (title)
    log_event ("reader %s: refused, %s: %s", self->peer, title_get_label (title), error->message);
  else
    log_event ("reader %s: refused, %s", self->peer, error->message);
  g_error_free (error);
  use (self, NULL, NULL);
  return status;
}

// While it is being opened the request is put aside, as in check_known().
static GstRTSPStatusCode
check_opened (Client *self, GstRTSPContext *ctx, Title *title)
{
  GError *error = NULL;
  TitleState state = title_ask (title, &error);

  if (error)
    return refuse_title (self, title, error);
  if (state == TITLE_OPENING && weir_client_defer (GST_RTSP_CLIENT (self), ctx))
    title_wait (title, media_told, weak_new (self));
  return state == TITLE_READY ? GST_RTSP_STS_OK : GST_RTSP_STS_SERVICE_UNAVAILABLE;
}

static GstRTSPStatusCode
check_title (Client *self, GstRTSPContext *ctx, Titles *titles, const gchar *name)
{
  Title *title = dup_title (self);
  GstRTSPStatusCode status;
  GError *error = NULL;

  if (!title || !title_is (title, titles, name)) {
    GstRTSPThreadPool *threads = gst_rtsp_client_get_thread_pool (GST_RTSP_CLIENT (self));

    g_clear_pointer (&title, title_unref);
    use (self, NULL, NULL); // first: it may have the last slot
    title = titles_open (titles, name, threads, &error);
    g_object_unref (threads);
    if (!title)
      return refuse_title (self, NULL, error);
    use (self, NULL, title_ref (title));
  }
  status = check_opened (self, ctx, title);
  title_unref (title);
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

// The track's path, if it is the title in use that the URL names.
static gchar *
make_title_path (Client *self, const Demand *demand)
{
  gchar *name = NULL, *path = NULL;
  Title *title = dup_title (self);
  Titles *titles = title ? self->funcs->titles (demand, self->funcs_data, &name) : NULL;

  if (titles && title_is (title, titles, name))
    path = g_strconcat (title_get_path (title), demand->track, NULL);
  g_clear_pointer (&title, title_unref);
  g_clear_pointer (&titles, titles_unref);
  g_free (name);
  return path;
}

// ---- before the library ----

// In use from now on; a reference.
static Presentation *
find_presentation (
    Client *self, GstRTSPContext *ctx, const Demand *demand, GstRTSPStatusCode *status)
{
  GError *error = NULL;
  Presentation *presentation = self->funcs->find (demand, self->funcs_data, &error);

  if (!presentation) {
    *status = g_error_matches (error, G_IO_ERROR, G_IO_ERROR_BUSY)
                  ? GST_RTSP_STS_SERVICE_UNAVAILABLE
                  : GST_RTSP_STS_NOT_FOUND;
    log_event ("reader %s: %s", self->peer, error->message);
    g_error_free (error);
    return NULL;
  }
  use (self, presentation_ref (presentation), NULL);
  note_choice (self, ctx, demand);
  return presentation;
}

static GstRTSPStatusCode
check_presentation (Client *self, GstRTSPContext *ctx, const Demand *demand)
{
  // It asks for what it has waited for, and not for another session of a title. No other request
  // of the client has been handled since.
  Presentation *presentation =
      weir_client_was_deferred (GST_RTSP_CLIENT (self), ctx) ? dup_presentation (self) : NULL;
  GstRTSPStatusCode status = GST_RTSP_STS_OK;

  if (!presentation)
    presentation = find_presentation (self, ctx, demand, &status);
  if (!presentation)
    return status;
  status = check_known (self, ctx, presentation);
  presentation_unref (presentation);
  return status;
}

// Before the library looks at a DESCRIBE or a SETUP, so that neither can build anything for a path
// that is not served, nor wait inside of the library for an upstream.
static GstRTSPStatusCode
on_pre_request (GstRTSPClient *client, GstRTSPContext *ctx, gpointer unused)
{
  Client *self = (Client *) client;
  const Demand *demand = get_demand (self, ctx->uri);
  gchar *name = NULL;
  Titles *titles = self->funcs->titles (demand, self->funcs_data, &name);
  GstRTSPStatusCode status;

  if (!titles)
    return check_presentation (self, ctx, demand);
  status = check_title (self, ctx, titles, name);
  titles_unref (titles);
  g_free (name);
  return status;
}

// A session of a title is found again by the URL that began it.
static gchar *
make_session_path (Client *self, const Demand *demand)
{
  Presentation *presentation = dup_presentation (self);
  MountConfig *config;
  const gchar *choices;
  gchar *path = NULL;

  if (!presentation)
    return NULL;
  config = presentation_dup_config (presentation);
  if (g_str_equal (demand->path, presentation_get_mount_path (presentation))
      && offer_check (config, demand, &choices, NULL)
      && !g_strcmp0 (choices, presentation_get_query (presentation)))
    path = g_strconcat (presentation_get_path (presentation), demand->track, NULL);
  mount_config_unref (config);
  presentation_unref (presentation);
  return path;
}

static gchar *
client_make_path_from_uri (GstRTSPClient *client, const GstRTSPUrl *url)
{
  Client *self = (Client *) client;
  const Demand *demand = get_demand (self, url);
  gchar *path = make_title_path (self, demand);

  if (!path)
    path = make_session_path (self, demand);
  return path ? path : self->funcs->path (demand, self->funcs_data);
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

static gboolean
uses_presentation (Client *self)
{
  gboolean uses;

  g_mutex_lock (&self->lock);
  uses = self->presentation != NULL;
  g_mutex_unlock (&self->lock);
  return uses;
}

static void
prepare_layers (Client *self, GstRTSPSessionMedia *media)
{
  Presentation *presentation = dup_presentation (self);
  MountConfig *config = presentation_dup_config (presentation);

  reader_prepare_layers (media, adaptation_limit (config, self->layers));
  mount_config_unref (config);
  presentation_unref (presentation);
}

// The library asserts that every stream of a PLAY has a segment, and the same rates
// (gst_rtsp_media_get_rates()): that must be so before it looks.
static GstRTSPStatusCode
client_adjust_play_mode (GstRTSPClient *client, GstRTSPContext *ctx, GstRTSPTimeRange **range,
    GstSeekFlags *flags, gdouble *rate, GstClockTime *trickmode_interval,
    gboolean *enable_rate_control)
{
  Client *self = (Client *) client;

  if (title_media_is (ctx->media))
    return adjust_title (self, ctx, range, flags, rate);
  if (!uses_presentation (self))
    return GST_RTSP_STS_METHOD_NOT_VALID_IN_THIS_STATE;
  if (*rate != 1.0)
    return GST_RTSP_STS_PARAMETER_NOT_UNDERSTOOD;

  for (guint i = 0; i < gst_rtsp_media_n_streams (ctx->media); i++) {
    GstRTSPStream *stream = gst_rtsp_media_get_stream (ctx->media, i);
    gdouble stream_rate, applied;

    if (!gst_rtsp_stream_is_complete (stream) || !gst_rtsp_stream_is_sender (stream))
      continue;
    if (!gst_rtsp_stream_get_rates (stream, &stream_rate, &applied) || stream_rate != 1.0
        || applied != 1.0)
      return GST_RTSP_STS_SERVICE_UNAVAILABLE;
  }
  if (gst_rtsp_session_media_get_rtsp_state (ctx->sessmedia) != GST_RTSP_STATE_PLAYING)
    prepare_layers (self, ctx->sessmedia);
  return GST_RTSP_STS_OK;
}

static void
replace_header (GstRTSPMessage *message, GstRTSPHeaderField field, gchar *value)
{
  if (!value)
    return;
  gst_rtsp_message_remove_header (message, field, -1);
  gst_rtsp_message_take_header (message, field, value);
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

// What a PLAY of a title begins with. The engine knows the sinks' windows, and so what would have
// come next at the place before.
static void
on_send_message (GstRTSPClient *client, GstRTSPContext *ctx, GstRTSPMessage *message)
{
  GstRTSPStatusCode code = GST_RTSP_STS_INVALID;

  if (ctx->method != GST_RTSP_PLAY || !ctx->sessmedia
      || gst_rtsp_message_parse_response (message, &code, NULL, NULL) != GST_RTSP_OK)
    return;
  if (code != GST_RTSP_STS_OK)
    on_refused (client, ctx->sessmedia);
  if (code != GST_RTSP_STS_OK
      || !title_media_is (gst_rtsp_session_media_get_media (ctx->sessmedia)))
    return;
  replace_header (
      message, GST_RTSP_HDR_RTP_INFO, gst_rtsp_session_media_get_rtpinfo (ctx->sessmedia));
}

// What the library knows of a track may be nothing yet, and then it says zeros. The relay knows
// what comes next, or that nothing can be said.
static GstRTSPStatusCode
client_adjust_play_response (GstRTSPClient *client, GstRTSPContext *ctx)
{
  Presentation *presentation;
  GString *ours;
  Relay *relay;
  gchar *info = NULL;
  gchar **items;

  if (title_media_is (ctx->media))
    return GST_RTSP_STS_OK;
  presentation = dup_presentation ((Client *) client);
  relay = presentation_get_relay (presentation);
  ours = g_string_new (NULL);
  gst_rtsp_message_get_header (ctx->response, GST_RTSP_HDR_RTP_INFO, &info, 0);
  items = g_strsplit (info ? info : "", ",", 0);
  for (guint i = 0; items[i]; i++) {
    gchar *item = g_strstrip (items[i]);
    const gchar *track = strstr (item, "/stream=");
    guint16 seq;
    guint32 timestamp;

    if (!track || !relay_get_rtp_info (relay, (guint) atoi (track + 8), &seq, &timestamp))
      continue;
    g_string_append_printf (ours, "%s%.*s;seq=%u;rtptime=%u", ours->len ? ", " : "",
        (int) strcspn (item, ";"), item, seq, timestamp);
  }
  g_strfreev (items);
  presentation_unref (presentation);
  gst_rtsp_message_remove_header (ctx->response, GST_RTSP_HDR_RTP_INFO, -1);
  if (ours->len)
    gst_rtsp_message_add_header (ctx->response, GST_RTSP_HDR_RTP_INFO, ours->str);
  g_string_free (ours, TRUE);
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
  const gchar *transport;
  Reader *reader;
  gboolean first;
  gchar *label, *path;

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
  label = dup_label (self, &path);
  g_atomic_int_inc (&n_playing);
  log_event ("reader %s in: %s over %s", self->peer, label, transport);
  g_free (label);

  // Asks sinks: not with the lock held.
  reader = reader_new (ctx->sessmedia, path, self->peer, transport);
  g_free (path);
  presentation = dup_presentation (self);
  if (presentation)
    adaptation_watch (reader, presentation, self->layers);
  g_clear_pointer (&presentation, presentation_unref);
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
  gchar *why = NULL, *label;

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
    label = dup_label (self, NULL);
    log_event ("reader %s out: %s: %s", self->peer, label, why);
    g_free (label);
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
  Title *title = dup_title (self);

  left (self, "TEARDOWN");
  if (title)
    use (self, NULL, NULL);
  g_clear_pointer (&title, title_unref);
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

void
client_close (GstRTSPClient *client, Presentation *presentation, const gchar *reason)
{
  Client *self = (Client *) client;
  GMainContext *context = NULL;
  gboolean ours;

  g_mutex_lock (&self->lock);
  ours = !presentation || self->presentation == presentation
         || (self->title
             && g_str_equal (
                 title_get_mount_path (self->title), presentation_get_path (presentation)));
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
client_new (GstRTSPServer *server, const ClientFuncs *funcs, gpointer data)
{
  GstRTSPClient *client = g_object_new (client_get_type (), NULL);
  Client *self = (Client *) client;
  GstRTSPMountPoints *mounts = gst_rtsp_server_get_mount_points (server);
  GstRTSPThreadPool *threads = gst_rtsp_server_get_thread_pool (server);

  self->layers = WEIR_LAYER_SET_ALL;
  self->funcs = funcs;
  self->funcs_data = data;
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
  // The engine has a word in the answer to a PLAY, too, and before.
  g_signal_connect_after (client, "send-message", G_CALLBACK (on_send_message), NULL);
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
  Presentation *presentation = self->presentation;
  Title *title = self->title;

  left (self, "connection closed");
  g_clear_object (&self->pool);
  g_clear_pointer (&self->context, g_main_context_unref);
  g_clear_pointer (&self->demand, demand_free);
  g_free (self->leave_reason);
  g_free (self->peer);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (client_parent_class)->finalize (object);
  // Last: now the client has let its media go.
  let_go (presentation);
  g_clear_pointer (&title, title_leave);
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
