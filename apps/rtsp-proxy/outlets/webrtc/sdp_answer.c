// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/sdp_answer.h"

#include <gio/gio.h>
#include <string.h>

#define STREAM "weir" // one for all tracks, so that they play in time
#define TYPE_HOST 126 // of candidates (RFC 8445, 5.1.2.2)
#define DELAY_UNIT_MS 10

// ---- the choice ----

static OfferMedia *
get_media (const SdpOffer *offer, guint i)
{
  return g_ptr_array_index (offer->media, i);
}

static const OfferFormat *
get_format (const OfferMedia *media, guint i)
{
  return &g_array_index (media->formats, OfferFormat, i);
}

const gchar *
sdp_answer_get_encoding (const OfferFormat *format)
{
  gchar *mode = NULL;
  gboolean fits = *format->encoding != '\0';

  if (g_str_equal (format->encoding, "H264")) {
    mode = sdp_offer_dup_parameter (format->fmtp, "packetization-mode");
    fits = mode && g_str_equal (mode, "1");
  }
  g_free (mode);
  return fits ? format->encoding : NULL;
}

gboolean
sdp_answer_has_rtx (const OfferFormat *format)
{
  return format->nack && format->rtx >= 0;
}

gboolean
sdp_answer_has_transport_cc (const OfferMedia *line, const OfferFormat *format)
{
  return format->transport_cc && line->transport_id;
}

static guint
get_transport_id (const OfferMedia *line, const AnswerChoice *choice)
{
  const OfferFormat *format = get_format (line, choice->format);

  return format->transport_cc && (choice->rtx_ssrc || !format->nack) ? line->transport_id : 0;
}

guint
sdp_answer_get_transport_id (const SdpOffer *offer, const AnswerChoice *choice)
{
  return get_transport_id (get_media (offer, choice->media), choice);
}

gboolean
sdp_answer_receives (const SdpOffer *offer)
{
  for (guint i = 0; i < offer->media->len; i++) {
    if (get_media (offer, i)->is_usable && get_media (offer, i)->receives)
      return TRUE;
  }
  return FALSE;
}

// The first two digits of profile-level-id, and of baseline whether it is constrained: other
// constraints and the level make no difference to decoders.
static guint
read_profile (const gchar *fmtp)
{
  gchar *id = sdp_offer_dup_parameter (fmtp, "profile-level-id");
  guint64 value = id && strlen (id) == 6 ? g_ascii_strtoull (id, NULL, 16) : 0x42001f;
  guint profile = (guint) (value >> 16);

  g_free (id);
  return profile == 0x42 ? profile << 8 | (value & 0x4000 ? 0x40 : 0) : profile << 8;
}

// Returns how well the format fits a track of H.264, or 0: browsers decode profiles that they do
// not offer.
static guint
rate_h264 (const OfferFormat *format, const AnswerTrack *track)
{
  const guint offered = read_profile (format->fmtp), sent = read_profile (track->fmtp);

  return offered == sent ? 4 : offered == 0x4240 ? 3 : offered == 0x4200 ? 2 : 1;
}

static gboolean
has_same (
    const OfferFormat *format, const AnswerTrack *track, const gchar *name, const gchar *usual)
{
  gchar *one = sdp_offer_dup_parameter (format->fmtp, name);
  gchar *other = sdp_offer_dup_parameter (track->fmtp, name);
  gboolean same = !g_strcmp0 (one ? one : usual, other ? other : usual);

  g_free (one);
  g_free (other);
  return same;
}

// Returns how well the format fits the track: 0, not at all.
static guint
rate_format (const OfferFormat *format, const AnswerTrack *track)
{
  if (g_strcmp0 (sdp_answer_get_encoding (format), track->encoding))
    return 0;
  if (g_str_equal (track->encoding, "H264"))
    return rate_h264 (format, track);
  if (g_str_equal (track->encoding, "VP9"))
    return has_same (format, track, "profile-id", "0");
  if (g_str_equal (track->encoding, "AV1"))
    return has_same (format, track, "profile", "0");
  return 1;
}

// Sets the format of `choice` to the best one of the m-line. Returns FALSE if there is none.
static gboolean
choose_format (const OfferMedia *media, const AnswerTrack *track, AnswerChoice *choice)
{
  guint best = 0;

  for (guint i = 0; i < media->formats->len; i++) {
    guint rate = rate_format (get_format (media, i), track);

    if (rate > best) {
      best = rate;
      choice->format = i;
    }
  }
  return best > 0;
}

static const AnswerChoice *
find_choice (const GArray *choices, guint media)
{
  for (guint i = 0; i < choices->len; i++) {
    const AnswerChoice *choice = &g_array_index (choices, AnswerChoice, i);

    if (choice->media == media)
      return choice;
  }
  return NULL;
}

static gboolean
is_taken (const GArray *choices, guint track)
{
  for (guint i = 0; i < choices->len; i++) {
    if (g_array_index (choices, AnswerChoice, i).track == track)
      return TRUE;
  }
  return FALSE;
}

// A number that no source of the session has.
static guint32
make_ssrc (const GArray *choices)
{
  guint32 ssrc;
  gboolean is_new;

  do {
    ssrc = g_random_int ();
    is_new = ssrc != 0;
    for (guint i = 0; i < choices->len; i++) {
      const AnswerChoice *choice = &g_array_index (choices, AnswerChoice, i);

      is_new &= ssrc != choice->ssrc && ssrc != choice->rtx_ssrc;
    }
  } while (!is_new);
  return ssrc;
}

static void
choose_track (
    const SdpOffer *offer, guint media, const AnswerTrack *tracks, guint n, GArray *choices)
{
  const OfferMedia *line = get_media (offer, media);
  AnswerChoice choice = { .media = media };

  for (guint i = 0; i < n; i++) {
    choice.track = i;
    if (tracks[i].is_video != line->is_video || is_taken (choices, i)
        || !choose_format (line, &tracks[i], &choice))
      continue;
    choice.ssrc = make_ssrc (choices);
    g_array_append_val (choices, choice);
    if (get_format (line, choice.format)->rtx >= 0)
      g_array_index (choices, AnswerChoice, choices->len - 1).rtx_ssrc = make_ssrc (choices);
    return;
  }
}

static void
add_name (GString *names, const gchar *name)
{
  gchar *with_space = g_strdup_printf (" %s,", name);

  if (!strstr (names->str, with_space))
    g_string_append (names, with_space);
  g_free (with_space);
}

// With its profile, for which the client may take another.
static void
add_track (GString *names, const AnswerTrack *track)
{
  gchar *name = track->fmtp ? g_strdup_printf ("%s (%s)", track->encoding, track->fmtp)
                            : g_strdup (track->encoding);

  add_name (names, name);
  g_free (name);
}

static gchar *
end_names (GString *names)
{
  if (names->len == 0)
    return g_string_free (g_string_append (names, " nothing"), FALSE);
  return g_string_free (g_string_truncate (names, names->len - 1), FALSE);
}

static void
fail_choice (const SdpOffer *offer, const AnswerTrack *tracks, guint n, GError **error)
{
  GString *wanted = g_string_new (NULL), *has = g_string_new (NULL);
  gchar *of_client, *of_stream;

  for (guint i = 0; i < offer->media->len; i++) {
    const OfferMedia *line = get_media (offer, i);

    for (guint j = 0; line->is_usable && line->receives && j < line->formats->len; j++) {
      const gchar *name = sdp_answer_get_encoding (get_format (line, j));

      if (name)
        add_name (wanted, name);
    }
  }
  for (guint i = 0; i < n; i++)
    add_track (has, &tracks[i]);
  of_client = end_names (wanted);
  of_stream = end_names (has);
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
      "the client takes%s, but the stream has%s", of_client, of_stream);
  g_free (of_client);
  g_free (of_stream);
}

GArray *
sdp_answer_choose (const SdpOffer *offer, const AnswerTrack *tracks, guint n, GError **error)
{
  GArray *choices = g_array_new (FALSE, TRUE, sizeof (AnswerChoice));

  for (guint i = 0; i < offer->media->len; i++) {
    const OfferMedia *line = get_media (offer, i);

    if (line->is_usable && line->receives)
      choose_track (offer, i, tracks, n, choices);
  }
  if (choices->len == 0) {
    fail_choice (offer, tracks, n, error);
    g_clear_pointer (&choices, g_array_unref);
  }
  return choices;
}

// ---- the text ----

static void
write_session (GString *text, const SdpOffer *offer, const GArray *choices, const AnswerOwn *own)
{
  GString *mids = g_string_new (NULL);

  for (guint i = 0; i < offer->media->len; i++) {
    if (find_choice (choices, i) && get_media (offer, i)->mid)
      g_string_append_printf (mids, " %s", get_media (offer, i)->mid);
  }
  g_string_append_printf (text,
      "v=0\r\no=- %" G_GUINT64_FORMAT " 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\na=ice-lite\r\n",
      own->id);
  if (mids->len > 0)
    g_string_append_printf (text, "a=group:BUNDLE%s\r\n", mids->str);
  g_string_append (text, "a=msid-semantic:WMS " STREAM "\r\n");
  g_string_free (mids, TRUE);
}

static void
write_mid (GString *text, const OfferMedia *line)
{
  if (line->mid)
    g_string_append_printf (text, "a=mid:%s\r\n", line->mid);
}

// UDP comes first.
static void
write_candidates (GString *text, const AnswerOwn *own)
{
  for (guint i = 0; i < own->n_candidates; i++) {
    const AnswerCandidate *each = &own->candidates[i];
    guint32 priority = TYPE_HOST << 24 | (65535 - MIN (i, 65535)) << 8 | 255;

    g_string_append_printf (text, "a=candidate:%u 1 %s %u %s %u typ host%s\r\n", i + 1,
        each->is_tcp ? "tcp" : "udp", priority, each->address, each->port,
        each->is_tcp ? " tcptype passive" : "");
  }
  g_string_append (text, "a=end-of-candidates\r\n");
}

static void
write_ice (GString *text, const AnswerOwn *own)
{
  g_string_append_printf (text, "a=ice-ufrag:%s\r\na=ice-pwd:%s\r\n", own->ufrag, own->pwd);
}

static void
write_map (GString *text, const OfferFormat *format)
{
  g_string_append_printf (
      text, "a=rtpmap:%u %s/%u", format->type, format->name, format->clock_rate);
  if (format->channels > 1)
    g_string_append_printf (text, "/%u", format->channels);
  g_string_append (text, "\r\n");
}

// Pion looks up the format of a refused line, too.
static void
write_refused (GString *text, const OfferMedia *line)
{
  const OfferFormat *first =
      line->formats->len > 0 ? &g_array_index (line->formats, OfferFormat, 0) : NULL;

  g_string_append_printf (text, "m=%s 0 %s ", line->media, line->proto);
  if (first)
    g_string_append_printf (text, "%u", first->type);
  else
    g_string_append (text, line->format);
  g_string_append (text, "\r\nc=IN IP4 0.0.0.0\r\na=inactive\r\n");
  if (first)
    write_map (text, first);
  write_mid (text, line);
}

static void
write_feedback (GString *text, const OfferFormat *format, const gchar *name)
{
  g_string_append_printf (text, "a=rtcp-fb:%u %s\r\n", format->type, name);
}

static void
write_format (GString *text, const OfferFormat *format, gboolean has_rtx)
{
  write_map (text, format);
  if (format->fmtp)
    g_string_append_printf (text, "a=fmtp:%u %s\r\n", format->type, format->fmtp);
  if (format->nack)
    write_feedback (text, format, "nack");
  if (format->pli)
    write_feedback (text, format, "nack pli");
  if (has_rtx)
    g_string_append_printf (text, "a=rtpmap:%d rtx/%u\r\na=fmtp:%d apt=%u\r\n", format->rtx,
        format->clock_rate, format->rtx, format->type);
}

static void
write_extension (GString *text, guint id, const gchar *uri)
{
  if (id)
    g_string_append_printf (text, "a=extmap:%u %s\r\n", id, uri);
}

// What the client gets.
static void
write_sending (
    GString *text, const OfferMedia *line, const OfferFormat *format, const AnswerChoice *choice)
{
  const guint transport_id = get_transport_id (line, choice);

  if (line->is_video)
    write_extension (text, line->playout_delay, SDP_OFFER_PLAYOUT_DELAY);
  write_extension (text, transport_id, SDP_OFFER_TRANSPORT_CC);
  g_string_append (text, "a=sendonly\r\n");
  if (format->fir)
    write_feedback (text, format, "ccm fir");
  if (transport_id)
    write_feedback (text, format, "transport-cc");
}

static void
write_layers (GString *text, const OfferMedia *line, guint n_layers)
{
  for (guint i = 0; i < n_layers; i++)
    g_string_append_printf (text, "a=rid:%s recv\r\n", line->layers.rids[i]);
  for (guint i = 0; i < n_layers; i++)
    g_string_append_printf (text, "%s%s", i == 0 ? "a=simulcast:recv " : ";", line->layers.rids[i]);
  if (n_layers > 0)
    g_string_append (text, "\r\n");
}

// What the client sends.
static void
write_receiving (
    GString *text, const OfferMedia *line, const AnswerChoice *choice, const OfferFormat *format)
{
  const gboolean has_transport_cc = sdp_answer_has_transport_cc (line, format);

  write_extension (text, line->mid_id, SDP_OFFER_MID);
  if (line->layers.n > 0) {
    write_extension (text, line->rid_id, SDP_OFFER_RID);
    write_extension (text, line->repaired_rid_id, SDP_OFFER_REPAIRED_RID);
  }
  write_extension (text, has_transport_cc ? line->transport_id : 0, SDP_OFFER_TRANSPORT_CC);
  g_string_append (text, "a=recvonly\r\n");
  if (has_transport_cc)
    write_feedback (text, format, "transport-cc");
  else if (format->remb)
    write_feedback (text, format, "goog-remb");
  write_layers (text, line, choice->n_layers);
}

static void
write_source (GString *text, guint32 ssrc, const gchar *cname, const gchar *track)
{
  g_string_append_printf (
      text, "a=ssrc:%u cname:%s\r\na=ssrc:%u msid:" STREAM " %s\r\n", ssrc, cname, ssrc, track);
}

static void
write_sources (
    GString *text, const OfferMedia *line, const AnswerChoice *choice, const AnswerOwn *own)
{
  g_string_append_printf (text, "a=msid:" STREAM " %s\r\n", line->media);
  if (choice->rtx_ssrc)
    g_string_append_printf (text, "a=ssrc-group:FID %u %u\r\n", choice->ssrc, choice->rtx_ssrc);
  write_source (text, choice->ssrc, own->cname, line->media);
  if (choice->rtx_ssrc)
    write_source (text, choice->rtx_ssrc, own->cname, line->media);
}

static void
write_taken (
    GString *text, const OfferMedia *line, const AnswerChoice *choice, const AnswerOwn *own)
{
  const OfferFormat *format = get_format (line, choice->format);
  const gboolean has_rtx = own->receives ? sdp_answer_has_rtx (format) : choice->rtx_ssrc != 0;

  g_string_append_printf (text, "m=%s 9 %s %u", line->media, line->proto, format->type);
  if (has_rtx)
    g_string_append_printf (text, " %d", format->rtx);
  g_string_append (text, "\r\nc=IN IP4 0.0.0.0\r\na=rtcp:9 IN IP4 0.0.0.0\r\n");
  write_ice (text, own);
  g_string_append_printf (text, "a=fingerprint:sha-256 %s\r\na=setup:%s\r\n", own->fingerprint,
      own->is_active ? "active" : "passive");
  write_mid (text, line);
  if (own->receives)
    write_receiving (text, line, choice, format);
  else
    write_sending (text, line, format, choice);
  g_string_append_printf (text, "a=rtcp-mux\r\n%s", line->rsize ? "a=rtcp-rsize\r\n" : "");
  write_format (text, format, has_rtx);
  if (!own->receives)
    write_sources (text, line, choice, own);
}

gchar *
sdp_answer_write (const SdpOffer *offer, const GArray *choices, const AnswerOwn *own)
{
  GString *text = g_string_new (NULL);
  gboolean has_candidates = FALSE;

  write_session (text, offer, choices, own);
  for (guint i = 0; i < offer->media->len; i++) {
    const AnswerChoice *choice = find_choice (choices, i);

    if (choice)
      write_taken (text, get_media (offer, i), choice, own);
    else
      write_refused (text, get_media (offer, i));
    // All have the transport of the first one.
    if (choice && !has_candidates)
      write_candidates (text, own);
    has_candidates |= choice != NULL;
  }
  return g_string_free (text, FALSE);
}

gchar *
sdp_answer_write_fragment (const AnswerOwn *own, const gchar *mid)
{
  GString *text = g_string_new ("a=ice-lite\r\n");

  write_ice (text, own);
  g_string_append_printf (text, "m=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:%s\r\n", mid ? mid : "0");
  write_candidates (text, own);
  return g_string_free (text, FALSE);
}

// Between no delay and SDP_ANSWER_PLAYOUT_DELAY_MS, with which browsers show pictures at once.
GBytes *
sdp_answer_make_extensions (const SdpOffer *offer, const AnswerChoice *choice)
{
  const OfferMedia *line = get_media (offer, choice->media);
  const guint delay = SDP_ANSWER_PLAYOUT_DELAY_MS / DELAY_UNIT_MS;
  const guint8 element[] = { (guint8) (line->playout_delay << 4 | 2), 0, (guint8) (delay >> 8),
    (guint8) delay };

  return line->playout_delay && line->is_video ? g_bytes_new (element, sizeof element) : NULL;
}
