// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "whep_media.h"

#include "codec/dependency.h"
#include "run/clock.h"
#include "webrtc/srtp.h"

#include <string.h>

#define PACKET_MAX 2048 // bytes of a packet that is decrypted
#define CNAME "rtsp-load"

gboolean
whep_media_init (WhepMedia *self, const WhepAnswer *answer, const gchar *profile,
    const guint8 *send_key, const guint8 *receive_key, gsize key_size)
{
  GBytes *sends = g_bytes_new (send_key, key_size);
  GBytes *receives = g_bytes_new (receive_key, key_size);
  gchar *token = NULL;

  *self = (WhepMedia) { .answer = answer, .ssrc = g_random_int () };
  if (answer->transport_id > 0) {
    self->twcc = g_new (WeirTwcc, 1);
    weir_twcc_init (self->twcc);
  }
  self->srtp = g_object_new (g_type_from_name ("WeirSrtp"), "destination", "127.0.0.1", "profile",
      profile, "send-key", sends, "receive-key", receives, NULL);
  g_object_get (self->srtp, "token", &token, NULL);
  g_bytes_unref (sends);
  g_bytes_unref (receives);
  g_free (token);
  return token != NULL;
}

void
whep_media_clear (WhepMedia *self)
{
  g_clear_object (&self->srtp);
  g_clear_pointer (&self->twcc, g_free);
}

// Decrypts a copy of a packet. Returns its length, or -1.
static gint
decrypt (
    WhepMedia *self, const gchar *action, const guint8 *data, gsize len, guint8 out[PACKET_MAX])
{
  gint n = -1;

  if (len > PACKET_MAX)
    return -1;
  memcpy (out, data, len);
  g_signal_emit_by_name (self->srtp, action, out, (guint) len, &n);
  self->forged += n < 0;
  return n;
}

static void
find_keyframe (WhepMedia *self, WhepTrack *track, const guint8 *data, gsize len, gint64 arrival_ns)
{
  guint8 packet[PACKET_MAX];
  gint n = decrypt (self, "unprotect-rtp", data, len, packet);
  WeirLayer layer;
  WeirRtp rtp;

  if (n < 0 || weir_rtp_parse (packet, (gsize) n, &rtp) != 0)
    return;
  weir_layers_read (&track->layers, packet + rtp.payload_offset, rtp.payload_length, &layer);
  if (keyframe_add (&self->keyframe, &rtp, layer.keyframe))
    self->keyframe_ns = arrival_ns;
}

// Header extensions are not encrypted.
static void
note_arrival (WhepMedia *self, const guint8 *data, const WeirRtp *rtp, gint64 arrival_ns)
{
  size_t len;
  const guint8 *number = weir_rtp_extension (data, rtp, (guint8) self->answer->transport_id, &len);

  if (number && len == 2)
    weir_twcc_take (self->twcc, (guint16) (number[0] << 8 | number[1]), arrival_ns);
}

void
whep_media_take_rtp (WhepMedia *self, const guint8 *data, gsize len, gint64 arrival_ns)
{
  const WhepPayload *payload;
  WeirRtpArrival how;
  WhepTrack *track;
  WeirRtp rtp;

  // The count of padding bytes is encrypted, and 1 is one that is always right.
  if (weir_rtp_parse_head (data, MIN (len, WEIR_RTP_HEADER_MAX), len, 1, &rtp) != 0
      || self->answer->payloads[rtp.pt].kind == WHEP_NOTHING) {
    self->foreign++;
    return;
  }
  payload = &self->answer->payloads[rtp.pt];
  if (self->twcc)
    note_arrival (self, data, &rtp, arrival_ns);
  if (payload->is_again) {
    self->again++;
    return;
  }
  track = &self->tracks[payload->kind];
  if (!track->known) {
    weir_rtp_stats_init (&track->stats, payload->clock_rate);
    track->layers.codec = payload->codec;
    track->known = TRUE;
  }
  if (self->first_ns == 0)
    self->first_ns = arrival_ns;
  self->bytes += len;
  how = weir_rtp_stats_add (&track->stats, &rtp, arrival_ns);
  if (payload->kind == WHEP_VIDEO && self->keyframe_ns == 0 && how != WEIR_RTP_DUPLICATE)
    find_keyframe (self, track, data, len, arrival_ns);
}

void
whep_media_take_rtcp (WhepMedia *self, const guint8 *data, gsize len, gint64 arrival_ns)
{
  guint8 packet[PACKET_MAX];
  gint n = decrypt (self, "unprotect", data, len, packet);
  WeirNtpMap map;

  if (n < 0 || weir_rtcp_find_sr (packet, (gsize) n, &map) != 0)
    return;
  for (guint i = 0; i < WHEP_KINDS; i++) {
    if (self->tracks[i].known && self->tracks[i].stats.ssrc == map.ssrc) {
      self->tracks[i].map = map;
      self->tracks[i].map_ns = arrival_ns;
    }
  }
}

gsize
whep_media_report (WhepMedia *self, WhepKind kind, gint64 now, guint8 out[WHEP_REPORT_MAX])
{
  WhepTrack *track = &self->tracks[kind];
  WeirRtcpBlock block;
  gint n = -1;
  gsize len;

  if (!track->known)
    return 0;
  weir_rtp_stats_report (&track->stats, &block);
  if (track->map.known) {
    block.last_sr = (guint32) (track->map.ntp >> 16);
    block.delay_sr = (guint32) ((now - track->map_ns) / 1000 * 65536 / 1000000);
  }
  len = weir_rtcp_write_rr (out, WHEP_REPORT_MAX, self->ssrc, &block, 1, CNAME);
  g_signal_emit_by_name (self->srtp, "protect", out, (guint) len, (guint) WHEP_REPORT_MAX, &n);
  return n > 0 ? (gsize) n : 0;
}

gint64
whep_media_feedback_due (const WhepMedia *self)
{
  return self->twcc ? self->twcc->due_ns : WEIR_NEVER;
}

gsize
whep_media_feedback (WhepMedia *self, guint8 out[WHEP_FEEDBACK_MAX])
{
  gsize len =
      weir_twcc_write (self->twcc, out, WHEP_FEEDBACK_MAX - WEIR_SRTP_RTCP_ROOM, self->ssrc, 0);
  gint n = -1;

  if (len > 0)
    g_signal_emit_by_name (self->srtp, "protect", out, (guint) len, (guint) WHEP_FEEDBACK_MAX, &n);
  return n > 0 ? (gsize) n : 0;
}
