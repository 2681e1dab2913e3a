// SPDX-License-Identifier: LGPL-2.1-or-later
// Sessions and transports of the readers that Weir serves; serve.c has the overview.
#include "feedback.h"
#include "ports.h"
#include "relaymedia.h"
#include "sendermedia.h"
#include "served.h"
#include "srtp.h"

// ---- sessions ----

static void
keep (Served *self, GstRTSPSession *session)
{
  GWeakRef *weak = g_new (GWeakRef, 1);

  g_weak_ref_init (weak, session);
  gst_rtsp_session_prevent_expire (session);
  g_mutex_lock (&self->lock);
  g_ptr_array_add (self->kept, weak);
  g_mutex_unlock (&self->lock);
}

// Removes `session`, or all sessions if it is NULL, from `kept`, and returns them. The references
// in the result and in `others` must be released without the lock: releasing a session's last one
// takes it.
static GPtrArray *
take_kept (Served *self, GstRTSPSession *session, GPtrArray *others)
{
  GPtrArray *taken = g_ptr_array_new_with_free_func (g_object_unref);

  g_mutex_lock (&self->lock);
  for (guint i = self->kept->len; i > 0; i--) {
    GstRTSPSession *kept = g_weak_ref_get (g_ptr_array_index (self->kept, i - 1));

    if (kept && session && kept != session) {
      g_ptr_array_add (others, kept);
      continue;
    }
    if (kept)
      g_ptr_array_add (taken, kept);
    g_ptr_array_remove_index_fast (self->kept, i - 1);
  }
  g_mutex_unlock (&self->lock);
  return taken;
}

void
weir_transports_let_expire (Served *self, GstRTSPSession *session)
{
  GPtrArray *others = g_ptr_array_new_with_free_func (g_object_unref);
  GPtrArray *taken = take_kept (self, session, others);

  for (guint i = 0; i < taken->len; i++) {
    gst_rtsp_session_allow_expire (g_ptr_array_index (taken, i));
    // Once the connection is closed, the pool's next clean-up removes the session.
    if (!session)
      gst_rtsp_session_set_timeout (g_ptr_array_index (taken, i), 1);
  }
  g_ptr_array_unref (taken);
  g_ptr_array_unref (others);
}

// ---- transports ----

static GstRTSPTransport *
copy_transport (const GstRTSPTransport *from)
{
  GstRTSPTransport *copy;

  gst_rtsp_transport_new (&copy);
  *copy = *from;
  copy->destination = g_strdup (from->destination);
  copy->source = g_strdup (from->source);
  return copy;
}

gboolean
weir_transport_is_tcp (const GstRTSPTransport *transport)
{
  if (!(transport->lower_transport & GST_RTSP_LOWER_TRANS_UDP))
    return transport->lower_transport == GST_RTSP_LOWER_TRANS_TCP;
  return transport->interleaved.min >= 0
         && transport->client_port.min == transport->interleaved.min;
}

static gboolean
is_ours (Served *self, GstRTSPStreamTransport *transport)
{
  const GstRTSPTransport *t =
      transport ? gst_rtsp_stream_transport_get_transport (transport) : NULL;

  if (!t || !self->token || t->lower_transport != GST_RTSP_LOWER_TRANS_UDP)
    return FALSE;
  return g_strcmp0 (t->destination, self->token) == 0
         || (weir_transport_has_srtp (transport) && weir_transport_is_tcp (t));
}

// Makes a UDP transport with SRTP name the reader to the sinks by its token.
static void
name_srtp (GstRTSPStreamTransport *transport)
{
  gchar *token = weir_srtp_dup_token (transport);
  GstRTSPTransport *copy;

  if (!token)
    return;
  copy = copy_transport (gst_rtsp_stream_transport_get_transport (transport));
  g_free (copy->destination);
  copy->destination = token;
  gst_rtsp_stream_transport_set_transport (transport, copy);
}

// Reports whether the sinks can serve readers of a stream.
static gboolean
may_use_sinks (GstRTSPStream *stream)
{
  return gst_rtsp_stream_is_sender (stream)
         && (gst_rtsp_stream_get_protocols (stream) & GST_RTSP_LOWER_TRANS_UDP
             || weir_stream_is_tcp_only (stream));
}

// Called when the response to a SETUP exists, and before gst-rtsp-server creates elements for the
// transport.
void
weir_transports_on_setup (GstRTSPClient *client, GstRTSPContext *ctx, Served *self)
{
  const GstRTSPTransport *t = gst_rtsp_stream_transport_get_transport (ctx->trans);
  GstRTSPTransport *copy;
  gchar *token;

  if (t->lower_transport == GST_RTSP_LOWER_TRANS_UDP) {
    name_srtp (ctx->trans);
    return;
  }
  if (!self->connection || t->lower_transport != GST_RTSP_LOWER_TRANS_TCP
      || !may_use_sinks (ctx->stream))
    return;
  copy = copy_transport (t);
  g_free (copy->destination);
  copy->lower_transport = GST_RTSP_LOWER_TRANS_UDP;
  token = weir_srtp_dup_token (ctx->trans);
  copy->destination = token ? token : g_strdup (self->token);
  copy->client_port = copy->interleaved;
  if (weir_ports_open (ctx->stream, TRUE))
    gst_rtsp_stream_transport_set_transport (ctx->trans, copy);
  else
    gst_rtsp_transport_free (copy);
}

// Returns the stream of which the control follows the media's path in the path of a SETUP, or NULL.
// (transfer none)
static GstRTSPStream *
find_stream (GstRTSPMedia *media, const gchar *path, gint matched)
{
  const gchar *rest = path + matched;

  if (!*rest)
    return gst_rtsp_media_n_streams (media) == 1 ? gst_rtsp_media_get_stream (media, 0) : NULL;
  return gst_rtsp_media_find_stream (media, matched == 1 ? rest : rest + 1);
}

gboolean
weir_transports_plays (Served *self, GstRTSPContext *ctx)
{
  gchar *path = GST_RTSP_CLIENT_GET_CLASS (ctx->client)->make_path_from_uri (ctx->client, ctx->uri);
  GstRTSPSessionMedia *media;
  GstRTSPStream *stream;
  gboolean plays = FALSE;
  gint matched;

  media = path ? gst_rtsp_session_dup_media (ctx->session, path, &matched) : NULL;
  if (media && gst_rtsp_session_media_get_rtsp_state (media) == GST_RTSP_STATE_PLAYING) {
    stream = find_stream (gst_rtsp_session_media_get_media (media), path, matched);
    plays = stream
            && is_ours (self,
                gst_rtsp_session_media_get_transport (media, gst_rtsp_stream_get_index (stream)));
  }
  g_clear_object (&media);
  g_free (path);
  return plays;
}

// Opens the sockets of a stream before gst-rtsp-server does, which would look for free ports
// without end; of both families, as a running sink accepts no further socket.
GstRTSPStatusCode
weir_transports_on_pre_setup (GstRTSPClient *client, GstRTSPContext *ctx, Served *self)
{
  // A relay media has opened its sockets.
  if (!self->stock && !weir_is_relay_media (ctx->media) && may_use_sinks (ctx->stream))
    weir_ports_open (ctx->stream, TRUE);
  return GST_RTSP_STS_OK;
}

// Reports whether all tracks that are set up use the connection. Others must show life.
static gboolean
is_all_ours (Served *self, GstRTSPSessionMedia *media)
{
  GPtrArray *transports = gst_rtsp_session_media_get_transports (media);
  guint n = 0, n_ours = 0;

  for (guint i = 0; i < transports->len; i++) {
    n += g_ptr_array_index (transports, i) != NULL;
    n_ours += is_ours (self, g_ptr_array_index (transports, i));
  }
  g_ptr_array_unref (transports);
  return n > 0 && n == n_ours;
}

// Adds a transport to its stream, or removes it, without effect on the sinks: they ignore an empty
// host.
static void
list_silently (GstRTSPStreamTransport *transport, gboolean listed)
{
  static gchar no_host[] = "";
  GstRTSPTransport *t = (GstRTSPTransport *) gst_rtsp_stream_transport_get_transport (transport);
  GstRTSPStream *stream = gst_rtsp_stream_transport_get_stream (transport);
  gchar *destination = t->destination;

  t->destination = no_host;
  if (listed)
    gst_rtsp_stream_add_transport (stream, transport);
  else
    gst_rtsp_stream_remove_transport (stream, transport);
  t->destination = destination;
}

static gboolean
is_listed (GstRTSPStreamTransport *transport)
{
  GstRTSPStream *stream = gst_rtsp_stream_transport_get_stream (transport);
  GList *all = gst_rtsp_stream_transport_filter (stream, NULL, NULL);
  gboolean listed = g_list_find (all, transport) != NULL;

  g_list_free_full (all, g_object_unref);
  return listed;
}

static gboolean
is_joined (GstRTSPStream *stream)
{
  GstBin *bin = gst_rtsp_stream_get_joined_bin (stream);
  gboolean joined = bin != NULL;

  g_clear_object (&bin);
  return joined;
}

static void
set_lower (GstRTSPStreamTransport *transport, GstRTSPLowerTrans lower)
{
  ((GstRTSPTransport *) gst_rtsp_stream_transport_get_transport (transport))->lower_transport =
      lower;
}

// Reports whether the stream of a transport has its elements, or gets them here.
static gboolean
has_elements (GstRTSPMedia *media, GstRTSPStreamTransport *transport)
{
  return weir_is_relay_media (media)
         || weir_sender_media_complete (media, gst_rtsp_stream_transport_get_stream (transport));
}

// gst-rtsp-server must not make elements for this PLAY if the stream has all of them (relaymedia.c,
// sendermedia.c).
static void
mask (Served *self, GstRTSPMedia *media, GPtrArray *transports)
{
  for (guint i = 0; i < transports->len; i++) {
    GstRTSPStreamTransport *transport = g_ptr_array_index (transports, i);
    const GstRTSPTransport *t =
        transport ? gst_rtsp_stream_transport_get_transport (transport) : NULL;

    if (!t || t->lower_transport != GST_RTSP_LOWER_TRANS_UDP || !has_elements (media, transport))
      continue;
    set_lower (transport, WEIR_RELAY_LOWER_TRANS);
    g_ptr_array_add (self->masked, g_object_ref (transport));
  }
}

void
weir_transports_unmask (Served *self)
{
  for (guint i = 0; i < self->masked->len; i++)
    set_lower (g_ptr_array_index (self->masked, i), GST_RTSP_LOWER_TRANS_UDP);
  g_ptr_array_set_size (self->masked, 0);
}

// gst-rtsp-server adds each transport to its stream, and so to the sinks, while it handles a PLAY
// and again after the response, unless the stream lists the transport already. This lists the
// transports until the response, without adding them to the sinks.
GstRTSPStatusCode
weir_transports_on_pre_play (GstRTSPClient *client, GstRTSPContext *ctx, Served *self)
{
  GPtrArray *transports = gst_rtsp_session_media_get_transports (ctx->sessmedia);
  GstRTSPState state = gst_rtsp_session_media_get_rtsp_state (ctx->sessmedia);

  for (guint i = 0; i < transports->len; i++) {
    GstRTSPStreamTransport *transport = g_ptr_array_index (transports, i);
    const GstRTSPTransport *t =
        transport ? gst_rtsp_stream_transport_get_transport (transport) : NULL;

    // A transport that was set up while others play is not listed yet.
    if (!t || t->lower_transport != GST_RTSP_LOWER_TRANS_UDP
        || !is_joined (gst_rtsp_stream_transport_get_stream (transport))
        || (state == GST_RTSP_STATE_PLAYING && is_listed (transport)))
      continue;
    if (!has_elements (ctx->media, transport) && is_ours (self, transport))
      weir_feedback_open (ctx->media, transport);
    list_silently (transport, TRUE);
    g_ptr_array_add (self->unnamed, g_object_ref (transport));
  }
  mask (self, ctx->media, transports);
  g_ptr_array_unref (transports);
  return GST_RTSP_STS_OK;
}

void
weir_transports_let_name (Served *self)
{
  weir_transports_unmask (self);
  for (guint i = 0; i < self->unnamed->len; i++)
    list_silently (g_ptr_array_index (self->unnamed, i), FALSE);
  g_ptr_array_set_size (self->unnamed, 0);
}

static gboolean
plays (GstRTSPSessionMedia *media)
{
  GPtrArray *transports = gst_rtsp_session_media_get_transports (media);
  gboolean listed = FALSE;

  for (guint i = 0; i < transports->len; i++)
    listed |= transports->pdata[i] && is_listed (transports->pdata[i]);
  g_ptr_array_unref (transports);
  return listed;
}

// gst-rtsp-server counts a transport each time it is to play, even if it plays already. The media
// would have readers for ever, and would not stop for the next seek or PAUSE.
void
weir_transports_play_on (GstRTSPSessionMedia *media)
{
  if (gst_rtsp_session_media_get_rtsp_state (media) == GST_RTSP_STATE_PLAYING && !plays (media))
    gst_rtsp_session_media_set_state (media, GST_STATE_PLAYING);
}

void
weir_transports_on_play (GstRTSPClient *client, GstRTSPContext *ctx, Served *self)
{
  weir_transports_let_expire (self, ctx->session);
  if (is_all_ours (self, ctx->sessmedia))
    keep (self, ctx->session);
}

void
weir_transports_on_pause (GstRTSPClient *client, GstRTSPContext *ctx, Served *self)
{
  weir_transports_let_expire (self, ctx->session);
}

void
weir_transports_on_teardown (GstRTSPClient *client, GstRTSPContext *ctx, Served *self)
{
  weir_transports_let_expire (self, ctx->session);
  g_clear_pointer (&self->leaving, g_ptr_array_unref);
  self->leaving = gst_rtsp_session_media_get_transports (ctx->sessmedia);
}

void
weir_transports_restore_leaving (Served *self)
{
  GPtrArray *leaving = g_steal_pointer (&self->leaving);

  for (guint i = 0; leaving && i < leaving->len; i++) {
    GstRTSPStreamTransport *transport = g_ptr_array_index (leaving, i);

    if (is_ours (self, transport)) {
      GstRTSPTransport *copy = copy_transport (gst_rtsp_stream_transport_get_transport (transport));

      copy->lower_transport = GST_RTSP_LOWER_TRANS_TCP;
      gst_rtsp_stream_transport_set_transport (transport, copy);
    }
  }
  g_clear_pointer (&leaving, g_ptr_array_unref);
}
