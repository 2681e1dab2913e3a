// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/sdp_sent.h"

#include <gio/gio.h>

#include "outlets/webrtc/webrtc_codecs.h"

#define BEST (WEBRTC_H264 | WEBRTC_OPUS) // what all readers take

static const OfferFormat *
get_format (const OfferMedia *line, guint i)
{
  return &g_array_index (line->formats, OfferFormat, i);
}

static gboolean
is_sent (const OfferMedia *line)
{
  return line->is_usable && line->sends;
}

gboolean
sdp_sent_is (const SdpOffer *offer)
{
  for (guint i = 0; i < offer->media->len; i++) {
    if (is_sent (g_ptr_array_index (offer->media, i)))
      return TRUE;
  }
  return FALSE;
}

// ---- the choice ----

static gboolean
fail_line (const OfferMedia *line, GError **error)
{
  gchar *taken = webrtc_codecs_dup_names (line->is_video ? WEBRTC_VIDEO : WEBRTC_AUDIO);
  GString *offered = g_string_new (NULL);

  for (guint i = 0; i < line->formats->len; i++) {
    const gchar *name = sdp_answer_get_encoding (get_format (line, i));

    if (name)
      g_string_append_printf (offered, "%s%s", offered->len > 0 ? ", " : "", name);
  }
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
      "the line m=%s offers %s, but the proxy takes %s", line->media,
      offered->len > 0 ? offered->str : "nothing that it can take", taken);
  g_string_free (offered, TRUE);
  g_free (taken);
  return FALSE;
}

// Sets the format of `choice`.
static gboolean
choose_format (const OfferMedia *line, AnswerChoice *choice, GError **error)
{
  const guint32 wanted = line->is_video ? WEBRTC_VIDEO : WEBRTC_AUDIO;
  gboolean has_any = FALSE;

  for (guint i = 0; i < line->formats->len; i++) {
    const gchar *name = sdp_answer_get_encoding (get_format (line, i));
    const guint32 codec = webrtc_codec_from_name (name) & wanted;

    if (codec && !has_any)
      choice->format = i;
    has_any |= codec != 0;
    if (codec & BEST) {
      choice->format = i;
      break;
    }
  }
  return has_any || fail_line (line, error);
}

// Packets are told apart by their payload type.
static gboolean
check_types (const SdpOffer *offer, const GArray *choices, GError **error)
{
  guint64 seen[2] = { 0 };

  for (guint i = 0; i < choices->len; i++) {
    const AnswerChoice *choice = &g_array_index (choices, AnswerChoice, i);
    const OfferFormat *format =
        get_format (g_ptr_array_index (offer->media, choice->media), choice->format);
    const gint types[] = { (gint) format->type, format->rtx };

    for (guint j = 0; j < G_N_ELEMENTS (types); j++) {
      const guint64 bit = types[j] < 0 ? 0 : G_GUINT64_CONSTANT (1) << (types[j] % 64);

      if (types[j] >= 0 && seen[types[j] / 64] & bit) {
        g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
            "payload type %d is of two codecs in one BUNDLE", types[j]);
        return FALSE;
      }
      if (types[j] >= 0)
        seen[types[j] / 64] |= bit;
    }
  }
  return TRUE;
}

static gboolean
choose_lines (const SdpOffer *offer, gboolean simulcast, GArray *choices, GError **error)
{
  gboolean has[2] = { FALSE };

  for (guint i = 0; i < offer->media->len; i++) {
    const OfferMedia *line = g_ptr_array_index (offer->media, i);
    AnswerChoice choice = { .media = i, .track = choices->len };

    if (!is_sent (line))
      continue;
    if (has[line->is_video]) {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
          "the offer has several lines m=%s that send; one is taken", line->media);
      return FALSE;
    }
    has[line->is_video] = TRUE;
    if (!choose_format (line, &choice, error))
      return FALSE;
    if (simulcast && line->is_video && line->layers.n > 1)
      choice.n_layers = line->layers.n;
    g_array_append_val (choices, choice);
  }
  return check_types (offer, choices, error);
}

GArray *
sdp_sent_choose (const SdpOffer *offer, gboolean simulcast, GError **error)
{
  GArray *choices = g_array_new (FALSE, FALSE, sizeof (AnswerChoice));

  if (!choose_lines (offer, simulcast, choices, error))
    g_clear_pointer (&choices, g_array_unref);
  return choices;
}

// ---- caps ----

// Other parameters say what the client receives, or are no matter of readers.
static void
add_parameters (GstStructure *caps, const OfferFormat *format)
{
  static const gchar *const names[] = { "packetization-mode", "profile-level-id", "profile-id",
    "profile", "level-idx", "tier", "sprop-stereo" };

  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    gchar *value = sdp_offer_dup_parameter (format->fmtp, names[i]);

    if (value)
      gst_structure_set (caps, names[i], G_TYPE_STRING, value, NULL);
    g_free (value);
  }
}

GstCaps *
sdp_sent_make_caps (const SdpOffer *offer, const AnswerChoice *choice)
{
  const OfferMedia *line = g_ptr_array_index (offer->media, choice->media);
  const OfferFormat *format = get_format (line, choice->format);
  GstCaps *caps = gst_caps_new_simple ("application/x-rtp", "media", G_TYPE_STRING, line->media,
      "payload", G_TYPE_INT, (gint) format->type, "clock-rate", G_TYPE_INT,
      (gint) format->clock_rate, "encoding-name", G_TYPE_STRING, format->encoding, NULL);
  GstStructure *structure = gst_caps_get_structure (caps, 0);
  gchar channels[8];

  if (format->channels > 1) {
    g_snprintf (channels, sizeof channels, "%u", format->channels);
    gst_structure_set (structure, "encoding-params", G_TYPE_STRING, channels, NULL);
  }
  add_parameters (structure, format);
  return caps;
}
