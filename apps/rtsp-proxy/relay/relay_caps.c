// SPDX-License-Identifier: LGPL-2.1-or-later
#include "relay/relay_caps.h"

#include <string.h>

#define VALUE_MAX 8192     // bytes
#define SIZE_MAX_LENGTH 32 // of a picture's size in text

gboolean
relay_caps_is_printable (const gchar *word)
{
  if (strlen (word) > VALUE_MAX)
    return FALSE;
  for (; *word; word++) {
    if (*word < 0x20 || *word > 0x7e)
      return FALSE;
  }
  return TRUE;
}

// Reports whether `text` is numbers, such as "2560,1440" or "26 2560-1440".
static gboolean
is_size (const gchar *text)
{
  return text && *text && strlen (text) <= SIZE_MAX_LENGTH
         && strspn (text, "0123456789,- ") == strlen (text);
}

// Reports whether `text` has the form of a language tag (RFC 5646) that names a language.
static gboolean
is_language (const gchar *text)
{
  gsize length = text ? strlen (text) : 0;

  if (length < 2 || length >= RELAY_LANGUAGE || g_ascii_strcasecmp (text, "und") == 0)
    return FALSE;
  for (gsize i = 0; i < length; i++) {
    if (!g_ascii_isalnum (text[i]) && (text[i] != '-' || i == 0 || i == length - 1))
      return FALSE;
  }
  return TRUE;
}

const gchar *
relay_caps_get_language (const GstCaps *caps)
{
  const gchar *text =
      gst_structure_get_string (gst_caps_get_structure (caps, 0), RELAY_CAPS_LANGUAGE);

  return is_language (text) ? text : NULL;
}

static gboolean
is_publishable (GQuark field, GValue *value, gpointer unused)
{
  static const gchar *const private_prefixes[] = { "a-", "x-", "ssrc", "clock-base", "seqnum-base",
    "timestamp-offset", "seqnum-offset", "npt-", "play-", "onvif-", "rtcp-", "rtx-", NULL };
  const gchar *name = g_quark_to_string (field);

  // The size of JPEG pictures that RTP has no numbers for.
  if (g_str_equal (name, "x-dimensions") || g_str_equal (name, "a-framesize"))
    return G_VALUE_HOLDS_STRING (value) && is_size (g_value_get_string (value));
  if (g_str_equal (name, RELAY_CAPS_LANGUAGE))
    return G_VALUE_HOLDS_STRING (value) && is_language (g_value_get_string (value));
  if (g_str_equal (name, "a-framerate"))
    return G_VALUE_HOLDS_STRING (value) && relay_caps_is_printable (g_value_get_string (value));
  for (guint i = 0; private_prefixes[i]; i++) {
    if (g_str_has_prefix (name, private_prefixes[i]))
      return FALSE;
  }
  if (!relay_caps_is_printable (name))
    return FALSE;
  if (G_VALUE_HOLDS_STRING (value))
    return g_value_get_string (value) && relay_caps_is_printable (g_value_get_string (value));
  return G_VALUE_HOLDS_INT (value) || G_VALUE_HOLDS_UINT (value);
}

static GstStructure *
dup_published (const GstCaps *caps)
{
  GstStructure *s = gst_structure_copy (gst_caps_get_structure (caps, 0));

  gst_structure_filter_and_map_in_place (s, is_publishable, NULL);
  return s;
}

GstCaps *
relay_caps_publish (const GstCaps *caps, guint32 ssrc)
{
  GstStructure *s = dup_published (caps);
  GstCaps *published = gst_caps_new_empty ();

  gst_structure_set (s, "ssrc", G_TYPE_UINT, ssrc, NULL);
  gst_caps_append_structure (published, s);
  return published;
}

// An AudioSpecificConfig of two bytes may say behind them that there is no SBR (ISO/IEC 14496-3,
// 1.6.2.1): as a file does, and a transport stream does not.
#define AAC_BASE 4 // hexadecimal digits
#define AAC_EXTENSION "56e5"

// Removes what is said in other words by other senders of AAC.
static void
simplify_aac (GstStructure *s)
{
  const gchar *config = gst_structure_get_string (s, "config"), *mode;
  gchar *plain;

  if (!config || strlen (config) < AAC_BASE)
    return;
  plain = g_ascii_strdown (config, -1);
  if (strlen (plain) == AAC_BASE + 6 && g_str_has_prefix (plain + AAC_BASE, AAC_EXTENSION)
      && plain[AAC_BASE + strlen (AAC_EXTENSION)] < '8')
    plain[AAC_BASE] = '\0';
  // The channels are in `config`, too.
  gst_structure_remove_fields (
      s, "profile-level-id", "streamtype", "bitrate", "objecttype", "encoding-params", NULL);
  gst_structure_set (s, "config", G_TYPE_STRING, plain, NULL);
  g_free (plain);
  mode = gst_structure_get_string (s, "mode");
  plain = g_ascii_strdown (mode ? mode : "", -1);
  gst_structure_set (s, "mode", G_TYPE_STRING, plain, NULL);
  g_free (plain);
}

// The first 10 fields may differ for H.264 and H.265 only, the others for any codec.
gboolean
relay_caps_same (const GstCaps *published, const GstCaps *now)
{
  static const gchar *const in_band[] = { "sprop-parameter-sets", "sprop-vps", "sprop-sps",
    "sprop-pps", "level-asymmetry-allowed", "profile", "level", "profile-id", "tier-flag",
    "level-id", "profile-level-id", "a-framerate", RELAY_CAPS_LANGUAGE, "payload", "ssrc", NULL };
  const guint first_of_any = 10;
  g_autoptr (GstStructure) a = dup_published (published), b = dup_published (now);
  const gchar *name = gst_structure_get_string (a, "encoding-name");
  gboolean has_in_band = !g_strcmp0 (name, "H264") || !g_strcmp0 (name, "H265");

  for (guint i = has_in_band ? 0 : first_of_any; in_band[i]; i++) {
    gst_structure_remove_field (a, in_band[i]);
    gst_structure_remove_field (b, in_band[i]);
  }
  if (!g_strcmp0 (name, "MPEG4-GENERIC")) {
    simplify_aac (a);
    simplify_aac (b);
  }
  return gst_structure_is_equal (a, b);
}

gboolean
relay_caps_are_equal (const GPtrArray *a, const GPtrArray *b)
{
  gboolean same = a->len == b->len;

  for (guint i = 0; i < a->len && same; i++)
    same = gst_caps_is_equal (g_ptr_array_index (a, i), g_ptr_array_index (b, i));
  return same;
}

WeirCodec
relay_caps_get_codec (const GstCaps *caps)
{
  const GstStructure *s = gst_caps_get_structure (caps, 0);

  return weir_codec_from_sdp (
      gst_structure_get_string (s, "media"), gst_structure_get_string (s, "encoding-name"));
}
