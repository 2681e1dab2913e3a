// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/setup_guard.h"

#include "base/log.h"
#include "outlets/rtsp/peer.h"
#include "outlets/rtsp/transport_ports.h"

static LogLimit refusals = { .burst = 100, .interval_ms = 100 };
static guint64 counts[N_TRANSPORT_VERDICTS]; // atomic

static const gchar *const reasons[N_TRANSPORT_VERDICTS] = {
  [TRANSPORT_MALFORMED] = "its header Transport is malformed",
  [TRANSPORT_UNSUPPORTED] = "it asks for a transport that is not offered",
  [TRANSPORT_DESTINATION] = "it asks for media to another address than its own",
  [TRANSPORT_PORT] = "it asks for media to a UDP port below 1024, or to two ports that are no pair",
  [TRANSPORT_TAKEN] = "it asks for media to a UDP port of another reader",
};

static void
note (GstRTSPContext *ctx, TransportVerdict verdict)
{
  gchar *peer = peer_dup_name (ctx->client);

  __atomic_fetch_add (&counts[verdict], 1, __ATOMIC_RELAXED);
  log_event_limited (&refusals, "reader %s refused: SETUP: %s", peer, reasons[verdict]);
  g_free (peer);
}

guint64
setup_guard_count (TransportVerdict verdict)
{
  return __atomic_load_n (&counts[verdict], __ATOMIC_RELAXED);
}

// ---- the header ----

// Returns the whole header (transfer full), which the parser has split at its commas.
static gchar *
join_header (GstRTSPMessage *request)
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

GstRTSPStatusCode
setup_guard_check (GstRTSPContext *ctx)
{
  const gchar *peer =
      gst_rtsp_connection_get_url (gst_rtsp_client_get_connection (ctx->client))->host;
  gchar *header = join_header (ctx->request), *good;
  TransportVerdict verdict = transport_check (header, peer, &good);

  g_free (header);
  if (verdict != TRANSPORT_GOOD) {
    note (ctx, verdict);
    return verdict == TRANSPORT_MALFORMED ? GST_RTSP_STS_BAD_REQUEST
                                          : GST_RTSP_STS_UNSUPPORTED_TRANSPORT;
  }
  gst_rtsp_message_remove_header (ctx->request, GST_RTSP_HDR_TRANSPORT, -1);
  gst_rtsp_message_take_header (ctx->request, GST_RTSP_HDR_TRANSPORT, good);
  return GST_RTSP_STS_OK;
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
setup_guard_take_ports (GstRTSPContext *ctx, const GstRTSPTransport *transport, const gchar *host)
{
  TransportPorts *ports = transport_ports_take (
      host, (guint) transport->client_port.min, (guint) transport->client_port.max, ctx->session);

  if (!ports)
    note (ctx, TRANSPORT_TAKEN);
  set_ports (ctx->client, ports);
  return ports != NULL;
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
  GPtrArray *transports = gst_rtsp_session_media_get_transports (ctx->sessmedia);

  for (guint i = 0; i < transports->len; i++) {
    if (g_ptr_array_index (transports, i))
      set_ports (g_ptr_array_index (transports, i), NULL);
  }
  g_ptr_array_unref (transports);
  return GST_RTSP_STS_OK;
}

void
setup_guard_watch (GstRTSPClient *client)
{
  g_signal_connect (client, "setup-request", G_CALLBACK (on_setup), NULL);
  g_signal_connect (client, "pre-teardown-request", G_CALLBACK (on_pre_teardown), NULL);
}
