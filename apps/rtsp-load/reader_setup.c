// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "reader_steps.h"

#include "load.h"
#include "reader_io.h"
#include "rtsp_text.h"
#include "sdp.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>

#define SECOND INT64_C (1000000000)
#define DEFAULT_SESSION_TIMEOUT 60
#define BIG_BUFFER (1024 * 1024)
#define SMALL_BUFFER 2048

// Opens the UDP sockets of the track that is set up next. Returns FALSE if it cannot.
static gboolean
open_ports (Reader *self)
{
  Track *track = &self->tracks[self->setting_up];
  Results *results = &self->load->results;
  struct sockaddr_storage local = { 0 };
  socklen_t len = sizeof local;
  int fds[2], port;

  getsockname (self->control.fd, (struct sockaddr *) &local, &len);
  port =
      ports_open (&self->load->ports, &local, self->ignores_media ? SMALL_BUFFER : BIG_BUFFER, fds);
  if (port == -ENOSPC) {
    reader_fail (self, "ports", "no free pair of UDP ports for reader %u; %s", self->index + 1,
        self->load->options->port_hi ? "the range of --ports is full"
                                     : "widen net.ipv4.ip_local_port_range");
    return FALSE;
  }
  if (port < 0) {
    reader_fail (self, "sockets", "cannot open a UDP socket: %s", g_strerror (-port));
    return FALSE;
  }
  track->port = port;
  track->rtp.fd = fds[0];
  track->rtcp.fd = fds[1];
  if (self->measured) {
    results->probe_lo = results->probe_lo ? MIN (results->probe_lo, track->port) : track->port;
    results->probe_hi = MAX (results->probe_hi, track->port + 1);
  }
  if (!self->ignores_media) {
    reader_io_watch (self, &track->rtp, EPOLLIN);
    reader_io_watch (self, &track->rtcp, EPOLLIN);
  }
  return TRUE;
}

static void
set_up_next (Reader *self, gint64 now)
{
  if (self->setting_up == self->n_tracks)
    reader_go_on (self, READER_STARTING, now);
  else if (!self->udp || open_ports (self))
    reader_go_on (self, READER_SETTING_UP, now);
}

void
reader_on_description (Reader *self, const GstRTSPMessage *answer, gint64 now)
{
  const gchar *base = rtsp_text_header (answer, GST_RTSP_HDR_CONTENT_BASE);
  const gchar *why = NULL;
  guint8 *body = NULL;
  guint len = 0;

  gst_rtsp_message_get_body (answer, &body, &len);
  self->base = g_strdup (base ? base : self->target->uri);
  self->aggregate = sdp_aggregate (body, len, self->base);
  self->sdp = sdp_tracks (body, len, self->base, self->load->options->video_only, &why);
  if (!self->sdp) {
    reader_fail (self, "no-video", "%s", why);
    return;
  }
  self->tracks = (Track *) self->sdp->data;
  self->n_tracks = self->sdp->len;
  for (guint i = 0; i < self->n_tracks; i++) {
    Track *track = &self->tracks[i];

    track->rtp = (Source) { SOURCE_RTP, -1, self, track };
    track->rtcp = (Source) { SOURCE_RTCP, -1, self, track };
    weir_rtp_stats_init (&track->stats, track->clock_rate);
  }
  set_up_next (self, now);
}

// "12345678;timeout=60"
static void
take_session (Reader *self, const GstRTSPMessage *answer)
{
  const gchar *text = rtsp_text_header (answer, GST_RTSP_HDR_SESSION);
  const gchar *timeout = text ? strstr (text, "timeout=") : NULL;
  guint64 seconds = timeout ? g_ascii_strtoull (timeout + 8, NULL, 10) : 0;

  if (!text)
    return;
  g_free (self->session);
  self->session = g_strndup (text, strcspn (text, "; "));
  if (seconds < 2 || seconds > 86400)
    seconds = DEFAULT_SESSION_TIMEOUT;
  self->keepalive_every_ns = (gint64) seconds * SECOND / 2;
}

static void
take_rtcp_address (Reader *self, Track *track, const GstRTSPTransport *transport)
{
  struct sockaddr_storage *to = &track->rtcp_to;
  in_port_t port = htons ((in_port_t) transport->server_port.max);

  if (transport->server_port.max <= 0 || transport->server_port.max > 65535)
    return;
  memcpy (to, &self->target->address, sizeof *to);
  track->rtcp_to_len = self->target->address_len;
  if (to->ss_family == AF_INET6)
    ((struct sockaddr_in6 *) to)->sin6_port = port;
  else
    ((struct sockaddr_in *) to)->sin_port = port;
}

// Returns the transport that the server chose, or NULL if the answer has none or another than the
// reader asked for. The caller owns the result.
static GstRTSPTransport *
read_transport (const Reader *self, const GstRTSPMessage *answer)
{
  const gchar *text = rtsp_text_header (answer, GST_RTSP_HDR_TRANSPORT);
  GstRTSPTransport *transport = NULL;
  gboolean tcp;

  if (!text)
    return NULL;
  gst_rtsp_transport_new (&transport);
  if (gst_rtsp_transport_parse (text, transport) == GST_RTSP_OK) {
    tcp = transport->lower_transport == GST_RTSP_LOWER_TRANS_TCP;
    if (tcp != self->udp)
      return transport;
  }
  gst_rtsp_transport_free (transport);
  return NULL;
}

void
reader_on_set_up (Reader *self, const GstRTSPMessage *answer, gint64 now)
{
  GstRTSPTransport *transport = read_transport (self, answer);
  Track *track = &self->tracks[self->setting_up];

  if (!transport) {
    reader_fail (self, "bad-answer", "the answer to SETUP has another transport than the request");
    return;
  }
  take_session (self, answer);
  take_rtcp_address (self, track, transport);
  track->announced_ssrc = transport->ssrc;
  track->channel = transport->interleaved.min >= 0 && transport->interleaved.min < 255
                       ? (guint8) transport->interleaved.min
                       : (guint8) (self->setting_up * 2);
  gst_rtsp_transport_free (transport);
  self->setting_up++;
  set_up_next (self, now);
}
