// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/silence.h"

#include "base/trusted_networks.h"
#include "weir-rtsp.h"

#define SILENCE_S 5 // a receiver reports within 3.1 s (RFC 3550, section 6.2: 2.5 s * 1.5 / 1.218)

static guint64 count; // atomic

typedef struct {
  GWeakRef client, session;
  SilenceFunc silent;
} Watch;

// Qdata of a session: the source of its check.
static GQuark
check_quark (void)
{
  return g_quark_from_static_string ("rtsp-proxy-silence");
}

static void
free_source (gpointer source)
{
  g_source_destroy (source);
  g_source_unref (source);
}

static void
watch_free (gpointer data)
{
  Watch *self = data;

  g_weak_ref_clear (&self->client);
  g_weak_ref_clear (&self->session);
  g_free (self);
}

static GstRTSPFilterResult
find_playing (GstRTSPSession *session, GstRTSPSessionMedia *media, gpointer playing)
{
  *(gboolean *) playing |= gst_rtsp_session_media_get_rtsp_state (media) == GST_RTSP_STATE_PLAYING;
  return GST_RTSP_FILTER_KEEP;
}

static gboolean
plays (GstRTSPSession *session)
{
  gboolean playing = FALSE;

  g_list_free_full (gst_rtsp_session_filter (session, find_playing, &playing), g_object_unref);
  return playing;
}

static gboolean
check (gpointer data)
{
  Watch *self = data;
  GstRTSPClient *client = g_weak_ref_get (&self->client);
  GstRTSPSession *session = g_weak_ref_get (&self->session);
  gboolean silent = client && session && !weir_session_is_heard (session) && plays (session);

  if (session)
    g_object_set_qdata (G_OBJECT (session), check_quark (), NULL);
  if (silent) {
    __atomic_fetch_add (&count, 1, __ATOMIC_RELAXED);
    self->silent (client,
        "no datagram came from its UDP ports within 5 s; let it use TCP, or add its network to "
        "trusted-networks");
  }
  g_clear_object (&session);
  g_clear_object (&client);
  return G_SOURCE_REMOVE;
}

static gboolean
uses_udp (GstRTSPSessionMedia *media)
{
  g_autoptr (GPtrArray) transports = gst_rtsp_session_media_get_transports (media);
  gboolean udp = FALSE;

  for (guint i = 0; i < transports->len; i++) {
    GstRTSPStreamTransport *transport = g_ptr_array_index (transports, i);

    udp |=
        transport && !weir_transport_is_tcp (gst_rtsp_stream_transport_get_transport (transport));
  }
  return udp;
}

// Requests on the connection show that its client takes the media, unless a neighbour with the same
// address does. The session ends if they do not come.
static gboolean
is_trusted (GstRTSPClient *client)
{
  return trusted_networks_have (
      gst_rtsp_connection_get_url (gst_rtsp_client_get_connection (client))->host);
}

void
silence_watch (GstRTSPClient *client, GstRTSPContext *ctx, SilenceFunc silent)
{
  GObject *session = G_OBJECT (ctx->session);
  GSource *current = g_main_current_source (), *source;
  Watch *self;

  // One check at a time for each session, however often the client sends PLAY.
  if (!current || is_trusted (client) || !uses_udp (ctx->sessmedia)
      || weir_session_is_heard (ctx->session) || g_object_get_qdata (session, check_quark ()))
    return;
  self = g_new0 (Watch, 1);
  g_weak_ref_init (&self->client, client);
  g_weak_ref_init (&self->session, session);
  self->silent = silent;
  source = g_timeout_source_new_seconds (SILENCE_S);
  g_source_set_callback (source, check, self, watch_free);
  g_source_attach (source, g_source_get_context (current));
  g_object_set_qdata_full (session, check_quark (), source, free_source);
}

guint64
silence_count (void)
{
  return __atomic_load_n (&count, __ATOMIC_RELAXED);
}
