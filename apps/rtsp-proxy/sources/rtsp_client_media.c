// SPDX-License-Identifier: LGPL-2.1-or-later
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "ingest/udp.h"
#include "relay/relay_caps.h"
#include "sources/endpoint.h"
#include "sources/rtsp_client_private.h"

// A sender that sends nothing for this time after its BYE has left.
#define BYE_SILENCE (500 * (gint64) GST_MSECOND)
#define FRAME_HEADER 4 // of an interleaved packet
// Another format is described after the described one has been silent for this time.
#define FORMAT_SILENCE (500 * (gint64) GST_MSECOND)

// ---- callbacks of the engine, from any thread ----

static const RtspFormat *
find_format (const RtspTrack *self, gint payload)
{
  for (guint i = 0; i < self->formats->len; i++) {
    const RtspFormat *format = g_ptr_array_index (self->formats, i);

    if (format->payload == payload)
      return format;
  }
  return NULL;
}

// Changes the format of a track. Returns the new caps of all tracks, which the caller tells the
// relay (transfer full), or NULL if the tracks are about to be freed, or another one is described.
static GPtrArray *
change_format (RtspTrack *self, const RtspFormat *format)
{
  RtspClient *client = self->client;
  GPtrArray *caps = NULL;

  g_mutex_lock (&client->describing);
  if (g_atomic_int_get (&client->begun) && !client->describes) {
    client->describes = TRUE;
    gst_caps_replace (&self->media.caps, format->caps);
    g_atomic_int_set (&self->payload, format->payload);
    if (self->interleaved)
      engine_track_split_long (&self->media);
    caps = engine_tracks_list (client->tracks);
  }
  g_mutex_unlock (&client->describing);
  return caps;
}

// Describes a track by another format of its m= line, which the sender uses. Returns FALSE if that
// is not possible now: tracks are described one after the other.
static gboolean
describe_anew (RtspTrack *self, const RtspFormat *format)
{
  RtspClient *client = self->client;
  GPtrArray *caps = change_format (self, format);

  if (!caps)
    return FALSE;
  engine_tracks_tell (client->context, caps);
  g_ptr_array_unref (caps);
  g_mutex_lock (&client->describing);
  client->describes = FALSE;
  g_mutex_unlock (&client->describing);
  return TRUE;
}

// Gives a packet the payload type that readers are told, if it is of the same format. Types that
// the SDP does not list are of that format. A sender that uses another format of its m= line than
// the described one gets another description, unless it sends both. Returns FALSE if the packet is
// dropped.
static gboolean
take_payload_type (RtspTrack *self, const WeirIngestPacket *packet)
{
  gint payload = g_atomic_int_get (&self->payload);
  const RtspFormat *format;

  if (packet->rtp.pt != payload && (format = find_format (self, packet->rtp.pt))) {
    gboolean same = format->caps && relay_caps_same (self->media.caps, format->caps);

    if (!same
        && (!format->caps || format->is_extra
            || (self->described_ns && packet->arrival_ns - self->described_ns < FORMAT_SILENCE)
            || !describe_anew (self, format))) {
      engine_track_dropped (self, WEIR_INGEST_PAYLOAD_TYPE);
      return FALSE;
    }
    if (!same)
      payload = format->payload;
  }
  if (packet->rtp.pt != payload)
    weir_rtp_set_pt (packet->data, (guint8) payload);
  self->described_ns = packet->arrival_ns;
  return TRUE;
}

static gboolean
is_taken (const RtspClient *self)
{
  return g_atomic_int_get (&self->begun) && !g_atomic_int_get (&self->context->cancelled);
}

static void
on_packet (gpointer data, const WeirIngestPacket *packet)
{
  RtspTrack *self = data;

  if (!is_taken (self->client))
    return;
  if (!g_atomic_int_get (&self->client->heard))
    g_atomic_int_set (&self->client->heard, 1);
  if (__atomic_load_n (&self->said_bye, __ATOMIC_RELAXED))
    __atomic_store_n (&self->said_bye, 0, __ATOMIC_RELAXED);
  if (take_payload_type (self, packet))
    engine_track_push (&self->media, packet, __atomic_load_n (&self->base, __ATOMIC_RELAXED));
}

static void
on_bye (gpointer data)
{
  RtspTrack *self = data;

  __atomic_store_n (&self->said_bye, clock_now (), __ATOMIC_RELAXED);
}

// An encoder that starts anew says BYE and goes on at once.
gboolean
rtsp_client_has_left (RtspClient *self, gint64 now)
{
  gboolean any = FALSE;

  for (guint i = 0; i < self->tracks->len; i++) {
    const RtspTrack *track = g_ptr_array_index (self->tracks, i);
    gint64 said = __atomic_load_n (&track->said_bye, __ATOMIC_RELAXED);

    if (track->media.in && (!said || now - said < BYE_SILENCE))
      return FALSE;
    any |= track->media.in != NULL;
  }
  return any;
}

typedef struct {
  RtspClient *client;
  gsize len;
  guint8 bytes[FRAME_HEADER + WEIR_TRACK_RTCP_MAX];
} Frame;

// A report that finds no room is dropped: the next one replaces it.
static void
send_here (gpointer data)
{
  Frame *frame = data;
  RtspClient *self = frame->client;

  if (rtsp_client_plays (self) && self->link && !rtsp_link_is_full (self->link))
    rtsp_link_send (self->link, frame->bytes, frame->len);
  rtsp_client_unref (self);
  g_free (frame);
}

static void
on_send (gpointer data, const guint8 *rtcp, gsize len)
{
  RtspTrack *self = data;
  Frame *frame = g_new (Frame, 1);

  frame->client = rtsp_client_ref (self->client);
  frame->len = FRAME_HEADER + len;
  frame->bytes[0] = '$';
  frame->bytes[1] = self->channels[1];
  frame->bytes[2] = (guint8) (len >> 8);
  frame->bytes[3] = (guint8) len;
  memcpy (frame->bytes + FRAME_HEADER, rtcp, len);
  loop_post (frame->client->loop, send_here, frame);
}

static gboolean
enter (EngineTrack *track)
{
  return is_taken (((RtspTrack *) track)->client);
}

const EngineTrackGate rtsp_track_gate = { enter, NULL };

static const WeirIngestOps track_ops = { { on_packet, engine_track_reported, on_bye,
                                             engine_track_dropped, engine_track_repaired },
  engine_track_settled, on_send, engine_track_overflowed };

// ---- tracks ----

static void
close_sockets (RtspTrack *self)
{
  if (self->sockets.rtp >= 0)
    close (self->sockets.rtp);
  if (self->sockets.rtcp >= 0)
    close (self->sockets.rtcp);
  self->sockets = WEIR_INGEST_NO_SOCKETS;
}

void
rtsp_track_free (gpointer data)
{
  RtspTrack *self = data;
  UdpStats unused = { 0 };

  engine_track_remove (&self->media, self->interleaved ? &unused : &self->client->drops);
  close_sockets (self);
  g_free (self->url);
  gst_caps_unref (self->media.caps);
  g_ptr_array_unref (self->formats);
  g_free (self);
}

gboolean
rtsp_track_open_sockets (RtspTrack *self)
{
  WeirAddress own;
  int fds[2], port;

  close_sockets (self);
  if (!self->client->link || !endpoint_read_address (rtsp_link_get_own (self->client->link), &own))
    return FALSE;
  port = weir_udp_open_pair (&own, 0, ENGINE_TRACK_BUFFER, TRUE, fds);
  if (port < 0)
    return FALSE;
  self->sockets = (WeirIngestSockets) { fds[0], fds[1] };
  self->port = (guint16) port;
  return TRUE;
}

// Has a firewall between here and the server let the media through.
static void
send_first (RtspTrack *self, const WeirAddress *to)
{
  static const guint8 packet[WEIR_RTP_HEADER] = { 0x80 };

  weir_udp_send (self->sockets.rtp, to, packet, sizeof packet);
}

// Reports whether the server names a sender other than the host of the connection. It may be a
// media server, or the server's own address behind a router.
static gboolean
is_elsewhere (const GstRTSPTransport *transport, const WeirAddress *peer)
{
  GSocketAddress *named =
      transport->source ? g_inet_socket_address_new_from_string (transport->source, 9) : NULL;
  WeirAddress address, same = endpoint_with_port (peer, 9);

  return endpoint_read_address (named, &address)
         && memcmp (&address, &same, weir_address_len (&same));
}

static gboolean
name_sender (RtspTrack *self, const GstRTSPTransport *transport, WeirTrackSettings *settings)
{
  const GstRTSPRange *ports = &transport->server_port;
  WeirAddress peer, media;

  if (!endpoint_read_address (rtsp_link_get_peer (self->client->link), &peer))
    return FALSE;
  if (is_elsewhere (transport, &peer))
    return TRUE;
  settings->host_known = true;
  settings->host = peer;
  if (ports->min > 0 && ports->min <= 65535) {
    media = endpoint_with_port (&peer, ports->min);
    send_first (self, &media);
  }
  if (ports->max > 0 && ports->max <= 65535 && ports->max != ports->min) {
    settings->rtcp_to = endpoint_with_port (&peer, ports->max);
    settings->rtcp_to_known = true;
  }
  return TRUE;
}

gboolean
rtsp_track_begin (RtspTrack *self, const GstRTSPTransport *transport)
{
  WeirTrackSettings settings = engine_track_settings (self->media.caps);
  WeirIngestSockets sockets = WEIR_INGEST_NO_SOCKETS;

  self->base = RELAY_NO_BASE;
  if (self->interleaved) {
    close_sockets (self);
    engine_track_split_long (&self->media);
    for (guint i = 0; self->client->link && i < 2; i++)
      rtsp_link_expect (self->client->link, self->channels[i]);
  } else {
    if (!name_sender (self, transport, &settings))
      return FALSE;
    sockets = self->sockets;
    self->sockets = WEIR_INGEST_NO_SOCKETS;
  }
  return engine_track_add (&self->media, &settings, sockets, &track_ops) == 0;
}

gboolean
rtsp_client_begin_media (RtspClient *self)
{
  gboolean any = engine_tracks_begin (self->context, self->tracks);

  g_atomic_int_set (&self->begun, any);
  return any;
}

void
rtsp_client_take_packet (RtspClient *self, guint8 channel, guint8 *bytes, gsize len)
{
  if (!rtsp_client_plays (self))
    return;
  for (guint i = 0; i < self->tracks->len; i++) {
    RtspTrack *track = g_ptr_array_index (self->tracks, i);

    if (track->media.in && track->interleaved
        && (channel == track->channels[0] || channel == track->channels[1])) {
      weir_ingest_push (track->media.in, channel == track->channels[1], bytes, len, clock_now ());
      return;
    }
  }
}
