// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/publishing.h"

#include <gst/sdp/sdp.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "outlets/rtsp/answer.h"
#include "outlets/rtsp/control_timeout.h"
#include "outlets/rtsp/published_track.h"
#include "outlets/rtsp/setup_guard.h"
#include "sources/endpoint.h"
#include "sources/sdp.h"
#include "weir-rtsp.h"

#define WATCH_MS 250
#define BUSY_RETRY_S 2

// Shared by all clients, because any peer can cause refusals as fast as it sends requests.
static LogLimit refusals = { .burst = 100, .interval_ms = 100 };

// What other threads use of a publisher.
typedef struct {
  GWeakRef client;
  void (*close) (GstRTSPClient *client, const gchar *reason);
  GMutex lock;
  GPtrArray *begun; // of PublishedTrack, by their index; NULL when the publisher has ended
} PublisherHandle;

struct _Publisher {
  PublishedTracks shared; // `owner` is the PublisherHandle, which the publication holds
  Publishing *publishing;
  gchar *path;       // of the mount
  GPtrArray *tracks; // of PublishedTrack
  GstRTSPSessionPool *pool;
  GstRTSPSession *session; // NULL before the first SETUP
  gboolean records;
  gint64 since; // ns; when it announced
  guint read_timeout_ms;
  GSource *watch;
};

static void
free_handle (gpointer data)
{
  PublisherHandle *handle = data;

  g_weak_ref_clear (&handle->client);
  g_mutex_clear (&handle->lock);
  g_free (handle);
}

// ---- other threads ----

static void
on_displaced (gpointer owner)
{
  PublisherHandle *handle = owner;
  GstRTSPClient *client = g_weak_ref_get (&handle->client);

  if (!client)
    return;
  handle->close (client, "another publisher has taken the mount over");
  g_object_unref (client);
}

static void
on_ask_key (gpointer owner, guint track)
{
  PublisherHandle *handle = owner;

  g_mutex_lock (&handle->lock);
  if (handle->begun && track < handle->begun->len)
    published_track_ask_key (g_ptr_array_index (handle->begun, track));
  g_mutex_unlock (&handle->lock);
}

static const PublicationOps publication_ops = { on_displaced, on_ask_key };

static void
send_rtcp (gpointer owner, guint8 channel, const guint8 *rtcp, gsize len)
{
  GstRTSPClient *client = g_weak_ref_get (&((PublisherHandle *) owner)->client);

  if (!client)
    return;
  weir_client_send_frame (client, channel, rtcp, len); // a later report replaces one that is lost
  g_object_unref (client);
}

// ---- the end ----

static void
publisher_free (Publisher *self, const gchar *reason)
{
  PublisherHandle *handle = self->shared.owner;

  if (self->watch) {
    g_source_destroy (self->watch);
    g_source_unref (self->watch);
  }
  g_mutex_lock (&handle->lock);
  g_clear_pointer (&handle->begun, g_ptr_array_unref);
  g_mutex_unlock (&handle->lock);
  g_ptr_array_unref (self->tracks);
  if (self->shared.media.publication)
    publication_end (self->shared.media.publication, reason);
  else
    free_handle (handle);
  if (self->session)
    gst_rtsp_session_pool_remove (self->pool, self->session);
  g_clear_object (&self->session);
  g_object_unref (self->pool);
  g_free (self->path);
  g_free (self);
}

void
publishing_end (Publishing *self, const gchar *reason)
{
  Publisher *publisher = g_steal_pointer (&self->publisher);
  g_autofree gchar *whole = NULL;

  if (!publisher)
    return;
  if (publisher->records)
    log_event ("publisher %s out: %s: %s", self->connection->peer, publisher->path, reason);
  whole = g_strdup_printf ("the publisher has left (%s)", reason);
  publisher_free (publisher, whole);
}

// ---- the watch ----

// Closes the connection of a publisher that is silent, or whose mount is gone. While it sends, its
// session does not expire: many publishers send no other requests.
static gboolean
watch (gpointer data)
{
  Publisher *self = data;
  Publishing *publishing = self->publishing;
  gint64 heard = __atomic_load_n (&self->shared.media.heard, __ATOMIC_RELAXED);
  gint64 silence = clock_now () - MAX (heard, self->since);
  gboolean exists;
  MountConfig *config =
      mounts_dup_publish_config (publishing->connection->mounts, self->path, &exists);
  g_autofree gchar *reason = NULL;

  if (!config)
    reason = g_strdup ("the mount no longer takes publishers");
  else if (silence > self->read_timeout_ms * (gint64) GST_MSECOND)
    reason = g_strdup_printf ("no media for %.1f s", self->read_timeout_ms / 1000.0);
  else if (self->session && heard)
    gst_rtsp_session_touch (self->session);
  g_clear_pointer (&config, mount_config_unref);
  if (!reason)
    return G_SOURCE_CONTINUE;
  publishing->close (publishing->connection->client, reason);
  return G_SOURCE_REMOVE;
}

static void
begin_watch (Publisher *self)
{
  self->since = clock_now ();
  self->watch = g_timeout_source_new (WATCH_MS);
  g_source_set_callback (self->watch, watch, self, NULL);
  g_source_attach (self->watch, g_source_get_context (g_main_current_source ()));
}

// ---- answers ----

static GstRTSPStatusCode
refuse (Publishing *self, GstRTSPContext *ctx, GstRTSPStatusCode status, const gchar *why)
{
  log_event_limited (&refusals, "publisher %s refused: %s", self->connection->peer, why);
  return answer_refuse (
      ctx, status, status == GST_RTSP_STS_SERVICE_UNAVAILABLE ? BUSY_RETRY_S : 0, why);
}

static GstRTSPStatusCode
agree (Publisher *self, GstRTSPContext *ctx)
{
  answer_begin (ctx, GST_RTSP_STS_OK);
  return answer_send (ctx, self->session);
}

// ---- ANNOUNCE ----

// Returns the description in the body (transfer full), or NULL.
static GstSDPMessage *
read_description (GstRTSPContext *ctx)
{
  guint8 *body = NULL;
  guint size = 0;

  gst_rtsp_message_get_body (ctx->request, &body, &size);
  if (size > 0 && !body[size - 1]) // GStreamer adds a zero to each body
    size--;
  return size > 0 && !memchr (body, 0, size) ? sdp_parse ((const gchar *) body, size) : NULL;
}

static void
add_tracks (Publisher *self, const GstSDPMessage *sdp)
{
  const RtspConnection *connection = self->publishing->connection;

  for (guint i = 0; i < gst_sdp_message_medias_len (sdp); i++) {
    const GstSDPMedia *media = gst_sdp_message_get_media (sdp, i);
    GstCaps *caps = self->tracks->len < RELAY_MAX_TRACKS ? sdp_media_caps (sdp, media) : NULL;

    if (caps)
      g_ptr_array_add (self->tracks, published_track_new (&self->shared, self->tracks->len, caps,
                                         gst_sdp_media_get_attribute_val (media, "control")));
    else
      log_event_limited (&refusals,
          "publisher %s: track %u of %s is left out: it is not RTP, or its a=rtpmap is missing, or "
          "there are more than %u",
          connection->peer, i + 1, self->path, RELAY_MAX_TRACKS);
  }
}

static Publisher *
publisher_new (Publishing *publishing, const gchar *path, guint read_timeout_ms)
{
  GstRTSPClient *client = publishing->connection->client;
  GSocket *socket = gst_rtsp_connection_get_read_socket (gst_rtsp_client_get_connection (client));
  Publisher *self = g_new0 (Publisher, 1);
  PublisherHandle *handle = g_new0 (PublisherHandle, 1);

  g_weak_ref_init (&handle->client, client);
  g_mutex_init (&handle->lock);
  handle->close = publishing->close;
  self->shared.owner = handle;
  self->shared.send = send_rtcp;
  // Over TLS they are those of a local socket, which has no address; then there is no UDP.
  endpoint_read_address (g_socket_get_local_address (socket, NULL), &self->shared.own);
  endpoint_read_address (g_socket_get_remote_address (socket, NULL), &self->shared.peer);
  self->publishing = publishing;
  self->path = g_strdup (path);
  self->read_timeout_ms = read_timeout_ms;
  self->tracks = g_ptr_array_new_with_free_func (published_track_free);
  self->pool = gst_rtsp_client_get_session_pool (client);
  return self;
}

static GstRTSPStatusCode
begin_publisher (
    Publishing *self, GstRTSPContext *ctx, const gchar *path, const MountConfig *config)
{
  GstSDPMessage *sdp = read_description (ctx);
  Publisher *publisher;
  GError *error = NULL;
  GstRTSPStatusCode status;
  g_autofree gchar *identity = NULL;

  if (!sdp)
    return refuse (
        self, ctx, GST_RTSP_STS_BAD_REQUEST, "the body of ANNOUNCE is not a session description");
  publisher = publisher_new (self, path, config->pull.read_timeout_ms);
  add_tracks (publisher, sdp);
  gst_sdp_message_free (sdp);
  if (publisher->tracks->len == 0) {
    publisher_free (publisher, NULL);
    return refuse (self, ctx, GST_RTSP_STS_UNSUPPORTED_MEDIA_TYPE,
        "no track can be relayed: each needs a line m=video 0 RTP/AVP ..., and an a=rtpmap for a "
        "payload type from 96 on");
  }
  identity = access_decision_dup_identity (self->connection->asked);
  publisher->shared.media.publication =
      publication_claim (&(PublicationClaim) { path, self->connection->peer, identity,
                             config->takeover, clock_now () },
          &publication_ops, publisher->shared.owner, free_handle, &error);
  if (!publisher->shared.media.publication) {
    publisher_free (publisher, NULL);
    status = refuse (self, ctx, GST_RTSP_STS_SERVICE_UNAVAILABLE, error->message);
    g_error_free (error);
    return status;
  }
  self->publisher = publisher;
  begin_watch (publisher);
  return agree (publisher, ctx);
}

GstRTSPStatusCode
publishing_announce (Publishing *self, GstRTSPContext *ctx, const GstRTSPUrl *url)
{
  const gchar *path = rtsp_connection_get_demand (self->connection, url)->path;
  gboolean exists;
  g_autoptr (MountConfig) config = NULL;
  GstRTSPStatusCode status;
  GError *error = NULL;

  publishing_end (self, "a new ANNOUNCE");
  if (!mounts_make_path (self->connection->mounts, path, &error)) {
    status = refuse (self, ctx, GST_RTSP_STS_SERVICE_UNAVAILABLE, error->message);
    g_error_free (error);
    return status;
  }
  config = mounts_dup_publish_config (self->connection->mounts, path, &exists);
  if (config)
    status = begin_publisher (self, ctx, path, config);
  else if (exists)
    status = refuse (self, ctx, GST_RTSP_STS_METHOD_NOT_ALLOWED,
        "the mount takes no publishers: its upstream is not publish");
  else
    status = refuse (self, ctx, GST_RTSP_STS_NOT_FOUND, "there is no such mount");
  return status;
}

// ---- SETUP ----

static const gchar *
last_part (const gchar *url)
{
  const gchar *slash = strrchr (url, '/');

  return slash ? slash + 1 : url;
}

// Returns the track of a URL, or NULL: its last part is that of the track's a=control. A single
// track may have the URL of the mount.
static PublishedTrack *
find_track (Publisher *self, const GstRTSPUrl *url)
{
  const gchar *path = url->abspath ? url->abspath : "", *query = url->query ? url->query : "";
  g_autofree gchar *text = g_strconcat (path, *query ? "?" : "", query, NULL);
  PublishedTrack *found = NULL;

  for (guint i = 0; !found && i < self->tracks->len; i++) {
    PublishedTrack *track = g_ptr_array_index (self->tracks, i);
    const gchar *control = published_track_get_control (track);

    if (control && *control
        && (g_str_equal (last_part (text), last_part (control))
            || g_str_equal (last_part (path), last_part (control))))
      found = track;
  }
  path = rtsp_connection_get_demand (self->publishing->connection, url)->path;
  if (!found && self->tracks->len == 1 && g_str_equal (path, self->path))
    found = g_ptr_array_index (self->tracks, 0);
  return found;
}

// Reports whether another track has one of the transport's channels.
static gboolean
shares_channels (Publisher *self, PublishedTrack *track, const GstRTSPTransport *transport)
{
  gboolean shared = FALSE;

  for (guint i = 0; i < self->tracks->len; i++) {
    PublishedTrack *other = g_ptr_array_index (self->tracks, i);

    for (gint c = transport->interleaved.min; c >= 0 && c <= transport->interleaved.max; c++)
      shared |= other != track && published_track_has_channel (other, (guint8) c);
  }
  return shared;
}

// Reads the first transport that is offered.
static TransportVerdict
read_transport (Publishing *self, GstRTSPContext *ctx, GstRTSPTransport *transport)
{
  const TransportPeer peer = {
    .address = gst_rtsp_connection_get_url (gst_rtsp_client_get_connection (ctx->client))->host,
    .tls = self->connection->tls,
    .records = TRUE,
  };
  g_autofree gchar *header = setup_guard_dup_transport (ctx->request), *good = NULL;
  gboolean srtp;
  TransportVerdict verdict = transport_check (header, &peer, &good, &srtp);

  if (good) {
    good[strcspn (good, ",")] = '\0';
    if (gst_rtsp_transport_parse (good, transport) != GST_RTSP_OK)
      verdict = TRANSPORT_MALFORMED;
  }
  return verdict;
}

static gboolean
ensure_session (Publisher *self)
{
  if (!self->session)
    self->session = gst_rtsp_session_pool_create (self->pool);
  return self->session != NULL;
}

static GstRTSPStatusCode
answer_setup (
    Publisher *self, GstRTSPContext *ctx, PublishedTrack *track, GstRTSPTransport *transport)
{
  Publishing *publishing = self->publishing;

  if (!ensure_session (self))
    return refuse (publishing, ctx, GST_RTSP_STS_SERVICE_UNAVAILABLE,
        "the connection has too many sessions (limits.sessions)");
  if (!published_track_begin (track, transport))
    return refuse (publishing, ctx, GST_RTSP_STS_UNSUPPORTED_TRANSPORT,
        "there are no UDP ports for the track; use TCP");
  transport->mode_play = FALSE;
  transport->mode_record = TRUE;
  answer_begin (ctx, GST_RTSP_STS_OK);
  gst_rtsp_message_take_header (
      ctx->response, GST_RTSP_HDR_TRANSPORT, gst_rtsp_transport_as_text (transport));
  return answer_send (ctx, self->session);
}

static GstRTSPStatusCode
set_up (Publisher *self, GstRTSPContext *ctx, const GstRTSPUrl *url)
{
  PublishedTrack *track = find_track (self, url);
  GstRTSPTransport *transport;
  TransportVerdict verdict;
  GstRTSPStatusCode status;

  if (!track)
    return refuse (self->publishing, ctx, GST_RTSP_STS_NOT_FOUND,
        "the URL of SETUP names no announced track that can be relayed");
  if (self->records)
    return refuse (self->publishing, ctx, GST_RTSP_STS_METHOD_NOT_VALID_IN_THIS_STATE,
        "SETUP comes after RECORD");
  gst_rtsp_transport_new (&transport);
  verdict = read_transport (self->publishing, ctx, transport);
  if (verdict == TRANSPORT_GOOD && shares_channels (self, track, transport))
    verdict = TRANSPORT_CHANNELS;
  if (verdict == TRANSPORT_GOOD)
    status = answer_setup (self, ctx, track, transport);
  else
    status = answer_refuse (
        ctx, setup_guard_refuse (ctx, verdict), 0, "no transport of the header is offered");
  gst_rtsp_transport_free (transport);
  return status;
}

// ---- RECORD ----

static GstRTSPStatusCode
record (Publisher *self, GstRTSPContext *ctx)
{
  g_autoptr (GPtrArray) caps = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);
  g_autoptr (GPtrArray) begun = g_ptr_array_new ();
  PublisherHandle *handle = self->shared.owner;
  gboolean interleaved = TRUE;

  for (guint i = 0; i < self->tracks->len; i++) {
    PublishedTrack *track = g_ptr_array_index (self->tracks, i);

    if (!published_track_has_begun (track))
      continue;
    interleaved &= published_track_is_interleaved (track);
    if (!self->records)
      published_track_set_index (track, begun->len);
    g_ptr_array_add (begun, track);
    g_ptr_array_add (caps, gst_caps_ref (published_track_get_caps (track)));
  }
  if (begun->len > 0 && !self->records) {
    self->records = TRUE;
    control_timeout_remove (self->publishing->connection->client);
    log_event ("publisher %s in: %s, %u tracks", self->publishing->connection->peer, self->path,
        begun->len);
    g_mutex_lock (&handle->lock);
    handle->begun = g_ptr_array_ref (begun);
    g_mutex_unlock (&handle->lock);
    publication_begin (self->shared.media.publication, interleaved ? "TCP" : "UDP", caps);
  }
  return self->records ? agree (self, ctx)
                       : refuse (self->publishing, ctx, GST_RTSP_STS_METHOD_NOT_VALID_IN_THIS_STATE,
                             "RECORD comes before SETUP");
}

static GstRTSPStatusCode
tear_down (Publisher *self, GstRTSPContext *ctx)
{
  GstRTSPSession *session = self->session ? g_object_ref (self->session) : NULL;
  GstRTSPStatusCode status;

  publishing_end (self->publishing, "TEARDOWN");
  answer_begin (ctx, GST_RTSP_STS_OK);
  status = answer_send (ctx, session);
  g_clear_object (&session);
  return status;
}

// ---- requests and frames ----

GstRTSPStatusCode
publishing_answer (Publishing *self, GstRTSPContext *ctx, const GstRTSPUrl *url)
{
  if (!self->publisher)
    return refuse (
        self, ctx, GST_RTSP_STS_METHOD_NOT_VALID_IN_THIS_STATE, "RECORD comes before ANNOUNCE");
  switch (ctx->method) {
    case GST_RTSP_SETUP:
      return set_up (self->publisher, ctx, url);
    case GST_RTSP_RECORD:
      return record (self->publisher, ctx);
    case GST_RTSP_TEARDOWN:
      return tear_down (self->publisher, ctx);
    default: // a publisher that pauses is silent, for as long as read-timeout lets it
      return agree (self->publisher, ctx);
  }
}

static GQuark
publishing_quark (void)
{
  return g_quark_from_static_string ("rtsp-proxy-publishing");
}

static PublishedTrack *
find_channel (GstRTSPClient *client, guint8 channel)
{
  const Publishing *self = g_object_get_qdata (G_OBJECT (client), publishing_quark ());

  for (guint i = 0; self->publisher && i < self->publisher->tracks->len; i++) {
    PublishedTrack *track = g_ptr_array_index (self->publisher->tracks, i);

    if (published_track_has_channel (track, channel))
      return track;
  }
  return NULL;
}

gboolean
publishing_has_channel (GstRTSPClient *client, guint8 channel)
{
  return find_channel (client, channel) != NULL;
}

void
publishing_take_frame (GstRTSPClient *client, guint8 channel, guint8 *bytes, gsize len)
{
  published_track_take (find_channel (client, channel), channel, bytes, len);
}

void
publishing_init (Publishing *self, RtspConnection *connection,
    void (*close) (GstRTSPClient *client, const gchar *reason))
{
  *self = (Publishing) { .connection = connection, .close = close };
  g_object_set_qdata (G_OBJECT (connection->client), publishing_quark (), self);
}
