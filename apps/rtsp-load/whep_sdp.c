// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "whep_sdp.h"

#include <arpa/inet.h>
#include <gst/sdp/gstsdpmessage.h>
#include <stdio.h>
#include <string.h>

static const gchar transport[] = "c=IN IP4 0.0.0.0\r\n"
                                 "a=recvonly\r\n"
                                 "a=rtcp-mux\r\n"
                                 "a=rtcp-rsize\r\n";

#define TRANSPORT_CC "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
#define VIDEO_FIRST 96 // payload types of video
#define VIDEO_LAST 103
#define AGAIN 16 // from a payload type to that of its retransmissions

static const gchar feedback[] = "a=extmap:3 " TRANSPORT_CC "\r\n"
                                "a=rtcp-fb:* transport-cc\r\n";

// The types of H.264 and those after it are what browsers offer.
static const gchar video[] =
    "a=rtpmap:96 H264/90000\r\n"
    "a=fmtp:96 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f\r\n"
    "a=rtpmap:97 H264/90000\r\n"
    "a=fmtp:97 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42001f\r\n"
    "a=rtpmap:98 H264/90000\r\n"
    "a=fmtp:98 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=4d001f\r\n"
    "a=rtpmap:99 H264/90000\r\n"
    "a=fmtp:99 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=64001f\r\n"
    "a=rtpmap:100 H265/90000\r\n"
    "a=rtpmap:101 VP8/90000\r\n"
    "a=rtpmap:102 VP9/90000\r\n"
    "a=rtpmap:103 AV1/90000\r\n"
    "a=rtcp-fb:* nack\r\n"
    "a=rtcp-fb:* nack pli\r\n";

static const gchar audio[] = "m=audio 9 UDP/TLS/RTP/SAVPF 111 9 0 8\r\n"
                             "a=rtpmap:111 opus/48000/2\r\n"
                             "a=fmtp:111 minptime=10;useinbandfec=1\r\n"
                             "a=rtpmap:9 G722/8000\r\n"
                             "a=rtpmap:0 PCMU/8000\r\n"
                             "a=rtpmap:8 PCMA/8000\r\n";

static gchar *
make_video (gboolean twcc)
{
  GString *text = g_string_new ("m=video 9 UDP/TLS/RTP/SAVPF");

  for (guint pt = VIDEO_FIRST; pt <= VIDEO_LAST; pt++)
    g_string_append_printf (text, " %u", pt);
  for (guint pt = VIDEO_FIRST; twcc && pt <= VIDEO_LAST; pt++)
    g_string_append_printf (text, " %u", pt + AGAIN);
  g_string_append_printf (text, "\r\n%s%s", video, twcc ? feedback : "");
  for (guint pt = VIDEO_FIRST; twcc && pt <= VIDEO_LAST; pt++)
    g_string_append_printf (
        text, "a=rtpmap:%u rtx/90000\r\na=fmtp:%u apt=%u\r\n", pt + AGAIN, pt + AGAIN, pt);
  return g_string_free (text, FALSE);
}

gchar *
whep_sdp_offer (const gchar *ufrag, const gchar *password, const gchar *fingerprint, gboolean twcc)
{
  gchar *first = make_video (twcc);
  gchar *security = g_strdup_printf ("a=ice-ufrag:%s\r\na=ice-pwd:%s\r\n"
                                     "a=fingerprint:sha-256 %s\r\na=setup:actpass\r\n",
      ufrag, password, fingerprint);
  gchar *offer = g_strdup_printf ("v=0\r\no=- %u 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"
                                  "a=group:BUNDLE 0 1\r\n%s%s%sa=mid:0\r\n%s%s%s%sa=mid:1\r\n",
      g_random_int () >> 1, first, transport, security, audio, twcc ? feedback : "", transport,
      security);

  g_free (first);
  g_free (security);
  return offer;
}

// ---- the answer ----

static gboolean
read_fingerprint (const gchar *text, guint8 out[TLS_FINGERPRINT_BYTES])
{
  if (!text || g_ascii_strncasecmp (text, "sha-256 ", 8) != 0)
    return FALSE;
  text += 8;
  return strlen (text) == 3 * TLS_FINGERPRINT_BYTES - 1 && tls_fingerprint_parse (text, out);
}

static gboolean
has_ip (const WeirAddress *a, const WeirAddress *b)
{
  if (a->any.sa_family != b->any.sa_family)
    return FALSE;
  if (a->any.sa_family == AF_INET)
    return a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
  return IN6_ARE_ADDR_EQUAL (&a->v6.sin6_addr, &b->v6.sin6_addr);
}

// "1 1 udp 2130706431 192.0.2.1 8189 typ host". Names of hosts are left out.
static gboolean
read_candidate (const gchar *text, WeirAddress *out)
{
  gchar protocol[8], ip[64];
  guint component, port;

  if (sscanf (text, "%*32s %u %7s %*u %63s %u typ", &component, protocol, ip, &port) != 4
      || component != 1 || g_ascii_strcasecmp (protocol, "udp") != 0 || port < 1 || port > 65535)
    return FALSE;
  memset (out, 0, sizeof *out);
  if (inet_pton (AF_INET, ip, &out->v4.sin_addr) == 1) {
    out->v4.sin_family = AF_INET;
    out->v4.sin_port = htons ((in_port_t) port);
    return TRUE;
  }
  out->v6.sin6_family = AF_INET6;
  out->v6.sin6_port = htons ((in_port_t) port);
  return inet_pton (AF_INET6, ip, &out->v6.sin6_addr) == 1;
}

static void
add_candidate (WhepAnswer *self, const gchar *text, const WeirAddress *server)
{
  WeirAddress address;
  guint at = self->n_candidates;

  if (!read_candidate (text, &address) || at == WHEP_CANDIDATES_MAX)
    return;
  for (guint i = 0; i < self->n_candidates; i++) {
    if (memcmp (&self->candidates[i], &address, sizeof address) == 0)
      return;
  }
  if (has_ip (&address, server)) {
    memmove (&self->candidates[1], &self->candidates[0], at * sizeof address);
    at = 0;
  }
  self->candidates[at] = address;
  self->n_candidates++;
}

static void
read_payload (WhepAnswer *self, const GstSDPMedia *media, WhepKind kind, const gchar *format)
{
  guint64 pt = g_ascii_strtoull (format, NULL, 10);
  gchar name[32] = "";
  guint rate = 0, number;

  if (pt >= WHEP_PAYLOAD_TYPES)
    return;
  // "96 H264/90000"
  for (guint i = 0; rate == 0; i++) {
    const gchar *map = gst_sdp_media_get_attribute_val_n (media, "rtpmap", i);

    if (!map)
      break;
    if (sscanf (map, "%u %31[^/]/%9u", &number, name, &rate) != 3 || number != pt)
      rate = 0;
  }
  if (rate == 0)
    rate = kind == WHEP_VIDEO ? 90000 : 8000;
  self->payloads[pt] = (WhepPayload) {
    .kind = kind,
    .codec = weir_codec_from_sdp (gst_sdp_media_get_media (media), name),
    .clock_rate = rate,
    .is_again = g_ascii_strcasecmp (name, "rtx") == 0,
  };
}

static void
read_media (WhepAnswer *self, const GstSDPMedia *media, const WeirAddress *server)
{
  const gchar *name = gst_sdp_media_get_media (media), *text;
  WhepKind kind = g_strcmp0 (name, "video") == 0   ? WHEP_VIDEO
                  : g_strcmp0 (name, "audio") == 0 ? WHEP_AUDIO
                                                   : WHEP_NOTHING;

  if (kind == WHEP_NOTHING || gst_sdp_media_get_port (media) == 0)
    return;
  for (guint i = 0; i < gst_sdp_media_formats_len (media); i++)
    read_payload (self, media, kind, gst_sdp_media_get_format (media, i));
  for (guint i = 0; (text = gst_sdp_media_get_attribute_val_n (media, "candidate", i)); i++)
    add_candidate (self, text, server);
  for (guint i = 0; (text = gst_sdp_media_get_attribute_val_n (media, "extmap", i)); i++) {
    if (g_str_has_suffix (text, " " TRANSPORT_CC))
      self->transport_id = (guint) MIN (g_ascii_strtoull (text, NULL, 10), WHEP_EXTENSION_MAX);
  }
}

// Returns the value of the first track that is not refused, or of the session.
static const gchar *
find_value (const GstSDPMessage *sdp, const gchar *name)
{
  for (guint i = 0; i < gst_sdp_message_medias_len (sdp); i++) {
    const GstSDPMedia *media = gst_sdp_message_get_media (sdp, i);
    const gchar *value = gst_sdp_media_get_attribute_val (media, name);

    if (value && gst_sdp_media_get_port (media) != 0)
      return value;
  }
  return gst_sdp_message_get_attribute_val (sdp, name);
}

static const gchar *
read_session (WhepAnswer *self, const GstSDPMessage *sdp, const WeirAddress *server)
{
  const gchar *text;
  gboolean has_track = FALSE;

  for (guint i = 0; (text = gst_sdp_message_get_attribute_val_n (sdp, "candidate", i)); i++)
    add_candidate (self, text, server);
  for (guint i = 0; i < gst_sdp_message_medias_len (sdp); i++)
    read_media (self, gst_sdp_message_get_media (sdp, i), server);
  for (guint i = 0; i < WHEP_PAYLOAD_TYPES; i++)
    has_track = has_track || self->payloads[i].kind != WHEP_NOTHING;
  self->ufrag = g_strdup (find_value (sdp, "ice-ufrag"));
  self->password = g_strdup (find_value (sdp, "ice-pwd"));
  self->peer_is_client = g_strcmp0 (find_value (sdp, "setup"), "active") == 0;
  if (!has_track)
    return "has no track";
  if (!self->ufrag || !self->password || strlen (self->ufrag) > 256)
    return "has no ice-ufrag and ice-pwd";
  if (!read_fingerprint (find_value (sdp, "fingerprint"), self->fingerprint))
    return "has no fingerprint by SHA-256";
  return self->n_candidates > 0 ? NULL : "has no candidate of UDP with an IP address";
}

const gchar *
whep_sdp_read (WhepAnswer *out, const gchar *text, const WeirAddress *server)
{
  GstSDPMessage *sdp = NULL;
  const gchar *why = "is no description";

  *out = (WhepAnswer) { 0 };
  gst_sdp_message_new (&sdp);
  if (*text
      && gst_sdp_message_parse_buffer ((const guint8 *) text, (guint) strlen (text), sdp)
             == GST_SDP_OK)
    why = read_session (out, sdp, server);
  gst_sdp_message_free (sdp);
  return why;
}

void
whep_answer_clear (WhepAnswer *self)
{
  g_free (self->ufrag);
  g_free (self->password);
}
