// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/setup_guard.h"

#include "base/log.h"
#include "outlets/rtsp/peer.h"
#include "outlets/rtsp/srtp.h"
#include "outlets/rtsp/transport_ports.h"
#include "weir-rtsp.h"

static LogLimit refusals = { .burst = 100, .interval_ms = 100 };
static guint64 counts[N_TRANSPORT_VERDICTS]; // atomic

static const gchar *const reasons[N_TRANSPORT_VERDICTS] = {
  [TRANSPORT_MALFORMED] = "its header Transport is malformed",
  [TRANSPORT_UNSUPPORTED] = "it asks for a transport that is not offered",
  [TRANSPORT_DESTINATION] = "it asks for media to another address than its own",
  [TRANSPORT_PORT] = "it asks for media to a UDP port below 1024, or to two ports that are no pair",
  [TRANSPORT_TAKEN] = "it asks for media to a UDP port of another reader",
  [TRANSPORT_CHANNELS] = "it asks for the channels of another track",
  [TRANSPORT_CLEAR] = "it asks for media over UDP without SRTP, although it uses TLS",
  [TRANSPORT_NO_TLS] = "it asks for SRTP without TLS, so that its keys could be read on the way; "
                       "use rtsps://",
  [TRANSPORT_KEY_MALFORMED] = "its header KeyMgmt is malformed",
  [TRANSPORT_KEY_UNSUPPORTED] = "its key for SRTP is not for AES-CM with 128 bits and HMAC-SHA1 "
                                "with 80 bits",
};

static void
note (GstRTSPContext *ctx, TransportVerdict verdict)
{
  g_autofree gchar *peer = peer_dup_name (ctx->client);

  __atomic_fetch_add (&counts[verdict], 1, __ATOMIC_RELAXED);
  log_event_limited (&refusals, "reader %s refused: SETUP: %s", peer, reasons[verdict]);
}

guint64
setup_guard_count (TransportVerdict verdict)
{
  return __atomic_load_n (&counts[verdict], __ATOMIC_RELAXED);
}

// ---- the header ----

gchar *
setup_guard_dup_transport (GstRTSPMessage *request)
{
  GString *all = g_string_new (NULL);
  gchar *part;

  for (gint i = 0;
      i < TRANSPORTS_MAX
      && gst_rtsp_message_get_header (request, GST_RTSP_HDR_TRANSPORT, &part, i) == GST_RTSP_OK;
      i++)
    g_string_append_printf (all, "%s%s", i > 0 ? "," : "", part);
  return g_string_free (all, FALSE);
}

static TransportVerdict
check_key (GstRTSPContext *ctx, const gchar *transport)
{
  switch (srtp_begin_setup (ctx, transport)) {
    case MIKEY_MALFORMED:
      return TRANSPORT_KEY_MALFORMED;
    case MIKEY_UNSUPPORTED:
      return TRANSPORT_KEY_UNSUPPORTED;
    default:
      return TRANSPORT_GOOD;
  }
}

// Sets `good` to the header for gst-rtsp-server (transfer full), or NULL.
static TransportVerdict
check_header (GstRTSPContext *ctx, gboolean tls, const gchar *header, gchar **good)
{
  const TransportPeer peer = {
    .address = gst_rtsp_connection_get_url (gst_rtsp_client_get_connection (ctx->client))->host,
    .tls = tls,
  };
  gboolean srtp;
  TransportVerdict verdict = transport_check (header, &peer, good, &srtp);

  if (verdict == TRANSPORT_GOOD && srtp)
    verdict = check_key (ctx, *good);
  else
    srtp_begin_plain (ctx);
  return verdict;
}

GstRTSPStatusCode
setup_guard_refuse (GstRTSPContext *ctx, TransportVerdict verdict)
{
  note (ctx, verdict);
  switch (verdict) {
    case TRANSPORT_MALFORMED:
    case TRANSPORT_KEY_MALFORMED:
      return GST_RTSP_STS_BAD_REQUEST;
    case TRANSPORT_KEY_UNSUPPORTED:
      return GST_RTSP_STS_KEY_MANAGEMENT_FAILURE;
    default:
      return GST_RTSP_STS_UNSUPPORTED_TRANSPORT;
  }
}

GstRTSPStatusCode
setup_guard_check (GstRTSPContext *ctx, gboolean tls)
{
  g_autofree gchar *header = setup_guard_dup_transport (ctx->request), *good = NULL;
  TransportVerdict verdict = TRANSPORT_GOOD;

  if (!srtp_has_begun (ctx, header))
    verdict = check_header (ctx, tls, header, &good);
  // gst-rtsp-server would keep the keys of each client as long as the media.
  gst_rtsp_message_remove_header (ctx->request, GST_RTSP_HDR_KEYMGMT, -1);
  if (verdict == TRANSPORT_GOOD && good) {
    gst_rtsp_message_remove_header (ctx->request, GST_RTSP_HDR_TRANSPORT, -1);
    gst_rtsp_message_take_header (ctx->request, GST_RTSP_HDR_TRANSPORT, g_strdup (good));
  }
  return verdict == TRANSPORT_GOOD ? GST_RTSP_STS_OK : setup_guard_refuse (ctx, verdict);
}

// ---- ports ----

// Qdata of a transport; of a client, between the check of a SETUP and its response.
static GQuark
ports_quark (void)
{
  return g_quark_from_static_string ("rtsp-proxy-ports");
}

static void
set_ports (gpointer object, TransportPorts *ports)
{
  g_object_set_qdata_full (
      object, ports_quark (), ports, ports ? (GDestroyNotify) transport_ports_free : NULL);
}

gboolean
setup_guard_allows_srtp (GstRTSPContext *ctx)
{
  if (!srtp_is_asked (ctx->client) || weir_client_can_use_srtp (ctx->client, ctx->stream))
    return TRUE;
  note (ctx, TRANSPORT_UNSUPPORTED);
  return FALSE;
}

static gboolean
take_ports (GstRTSPContext *ctx, const GstRTSPTransport *transport, const gchar *host)
{
  TransportPorts *ports = transport_ports_take (
      host, (guint) transport->client_port.min, (guint) transport->client_port.max, ctx->session);

  if (!ports)
    note (ctx, TRANSPORT_TAKEN);
  set_ports (ctx->client, ports);
  return ports != NULL;
}

// ---- channels ----

static gboolean
is_same_channel (const GstRTSPRange *a, const GstRTSPRange *b)
{
  return a->min >= 0 && b->min >= 0 && a->min <= b->max && b->min <= a->max;
}

// Reports whether the channels are free in the session. The reader would otherwise take the packets
// of one track for those of another.
static gboolean
check_channels (GstRTSPContext *ctx, const GstRTSPTransport *transport)
{
  GPtrArray *transports = gst_rtsp_session_media_get_transports (ctx->sessmedia);
  gboolean shared = FALSE;

  for (guint i = 0; i < transports->len; i++) {
    GstRTSPStreamTransport *other = g_ptr_array_index (transports, i);

    if (other && gst_rtsp_stream_transport_get_stream (other) != ctx->stream)
      shared |= is_same_channel (
          &transport->interleaved, &gst_rtsp_stream_transport_get_transport (other)->interleaved);
  }
  g_ptr_array_unref (transports);
  if (shared)
    note (ctx, TRANSPORT_CHANNELS);
  return !shared;
}

gboolean
setup_guard_allows (GstRTSPContext *ctx, const GstRTSPTransport *transport, const gchar *host)
{
  if (!setup_guard_allows_srtp (ctx))
    return FALSE;
  return transport->lower_transport == GST_RTSP_LOWER_TRANS_UDP ? take_ports (ctx, transport, host)
                                                                : check_channels (ctx, transport);
}

// Gives back the ports of the transport's earlier SETUP.
static void
on_setup (GstRTSPClient *client, GstRTSPContext *ctx, gpointer unused)
{
  set_ports (ctx->trans, g_object_steal_qdata (G_OBJECT (client), ports_quark ()));
}

// A client may use the ports in another session as soon as it has the answer.
static GstRTSPStatusCode
on_pre_teardown (GstRTSPClient *client, GstRTSPContext *ctx, gpointer unused)
{
  g_autoptr (GPtrArray) transports = gst_rtsp_session_media_get_transports (ctx->sessmedia);

  for (guint i = 0; i < transports->len; i++) {
    if (g_ptr_array_index (transports, i))
      set_ports (g_ptr_array_index (transports, i), NULL);
  }
  return GST_RTSP_STS_OK;
}

void
setup_guard_watch (GstRTSPClient *client)
{
  g_signal_connect (client, "setup-request", G_CALLBACK (on_setup), NULL);
  g_signal_connect (client, "pre-teardown-request", G_CALLBACK (on_pre_teardown), NULL);
}
