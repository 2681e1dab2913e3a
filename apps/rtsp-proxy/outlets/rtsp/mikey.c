// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/mikey.h"

#include "bits/bytes.h"

#include <gst/sdp/gstmikey.h>
#include <string.h>

#define DATA_MAX 2048 // bytes of base64; players send less than 300

// ---- writing ----

gchar *
mikey_write (GBytes *key, guint32 ssrc)
{
  g_autoptr (GstBuffer) buffer = gst_buffer_new_wrapped_bytes (key);
  g_autoptr (GstCaps) caps =
      gst_caps_new_simple ("application/x-srtp", "srtp-key", GST_TYPE_BUFFER, buffer, "srtp-cipher",
          G_TYPE_STRING, "aes-128-icm", "srtp-auth", G_TYPE_STRING, "hmac-sha1-80", "srtcp-cipher",
          G_TYPE_STRING, "aes-128-icm", "srtcp-auth", G_TYPE_STRING, "hmac-sha1-80", NULL);
  GstMIKEYMessage *message = gst_mikey_message_new_from_caps (caps);
  gchar *text;

  gst_mikey_message_add_cs_srtp (message, 0, ssrc, 0);
  text = gst_mikey_message_base64_encode (message);
  gst_mikey_message_unref (message);
  return text;
}

// ---- checking the form of a message ----
//
// GStreamer 1.22 reads forever at a payload whose type it does not know, and at the key of a
// message for public keys, before which it expects such a payload; reads the first byte of a
// parameter without bytes; asserts that a key is not empty; and frees the salt that comes apart
// from a key twice, as 1.26 does. So it only gets messages for shared keys that consist of the
// payloads below, which are those that players send.

static gboolean
check_time (WeirBytes *in)
{
  guint8 type;

  return weir_bytes_u8 (in, &type) && type <= GST_MIKEY_TS_TYPE_COUNTER
         && weir_bytes_skip (in, type == GST_MIKEY_TS_TYPE_COUNTER ? 4 : 8);
}

static gboolean
check_policy (WeirBytes *in)
{
  const guint8 *data;
  guint16 size;
  WeirBytes params;

  if (!weir_bytes_skip (in, 2) || !weir_bytes_u16 (in, &size) || !weir_bytes_take (in, size, &data))
    return FALSE;
  params = weir_bytes (data, size);
  while (weir_bytes_left (&params) > 0) {
    guint8 len;

    weir_bytes_skip (&params, 1);
    if (!weir_bytes_u8 (&params, &len) || len == 0 || !weir_bytes_skip (&params, len))
      return FALSE;
  }
  return TRUE;
}

// One key, with its salt in it, and without a validity period.
static gboolean
check_key (WeirBytes *in)
{
  guint8 next, type;
  guint16 size;

  return weir_bytes_u8 (in, &next) && next == GST_MIKEY_PT_LAST && weir_bytes_u8 (in, &type)
         && (type & 0x0f) == GST_MIKEY_KV_NULL && (type >> 4 & 1) == 0 && weir_bytes_u16 (in, &size)
         && size > 0 && weir_bytes_skip (in, size) && weir_bytes_left (in) == 0;
}

static gboolean
check_keys (WeirBytes *in)
{
  const guint8 *data;
  guint8 cipher, mac;
  guint16 size;
  WeirBytes keys;

  if (!weir_bytes_u8 (in, &cipher) || !weir_bytes_u16 (in, &size)
      || !weir_bytes_take (in, size, &data) || !weir_bytes_u8 (in, &mac))
    return FALSE;
  keys = weir_bytes (data, size);
  return cipher == GST_MIKEY_ENC_NULL && mac == GST_MIKEY_MAC_NULL && check_key (&keys);
}

static gboolean
check_random (WeirBytes *in)
{
  guint8 size;

  return weir_bytes_u8 (in, &size) && weir_bytes_skip (in, size);
}

static gboolean
check_payload (WeirBytes *in, guint8 type)
{
  switch (type) {
    case GST_MIKEY_PT_T:
      return check_time (in);
    case GST_MIKEY_PT_SP:
      return check_policy (in);
    case GST_MIKEY_PT_KEMAC:
      return check_keys (in);
    case GST_MIKEY_PT_RAND:
      return check_random (in);
    default:
      return FALSE;
  }
}

static MikeyVerdict
check_form (const guint8 *data, gsize size)
{
  WeirBytes in = weir_bytes (data, size);
  guint8 type, next, n_sessions, map;

  weir_bytes_skip (&in, 1);
  weir_bytes_u8 (&in, &type);
  weir_bytes_u8 (&in, &next);
  weir_bytes_skip (&in, 5);
  weir_bytes_u8 (&in, &n_sessions);
  weir_bytes_u8 (&in, &map);
  if (!weir_bytes_skip (&in, n_sessions * 9u))
    return MIKEY_MALFORMED;
  if (data[0] != GST_MIKEY_VERSION || type != GST_MIKEY_TYPE_PSK_INIT
      || map != GST_MIKEY_MAP_TYPE_SRTP || n_sessions == 0)
    return MIKEY_UNSUPPORTED;
  while (next != GST_MIKEY_PT_LAST) {
    type = next;
    if (!weir_bytes_u8 (&in, &next))
      return MIKEY_MALFORMED;
    if (!check_payload (&in, type))
      return in.failed ? MIKEY_MALFORMED : MIKEY_UNSUPPORTED;
  }
  return MIKEY_GOOD;
}

// ---- reading ----

static gboolean
has (const GstStructure *s, const gchar *field, const gchar *value)
{
  return g_strcmp0 (gst_structure_get_string (s, field), value) == 0;
}

static GBytes *
take_key (const GstStructure *s)
{
  const GValue *value = gst_structure_get_value (s, "srtp-key");
  GstBuffer *buffer = value ? gst_value_get_buffer (value) : NULL;
  gpointer data;
  gsize size;

  if (!buffer || gst_buffer_get_size (buffer) != MIKEY_KEY_BYTES
      || !has (s, "srtp-cipher", "aes-128-icm") || !has (s, "srtcp-cipher", "aes-128-icm")
      || !has (s, "srtp-auth", "hmac-sha1-80") || !has (s, "srtcp-auth", "hmac-sha1-80"))
    return NULL;
  gst_buffer_extract_dup (buffer, 0, MIKEY_KEY_BYTES, &data, &size);
  return g_bytes_new_take (data, size);
}

static MikeyVerdict
read_message (const guint8 *data, gsize size, GBytes **key)
{
  MikeyVerdict verdict = check_form (data, size);
  GstMIKEYMessage *message;
  g_autoptr (GstCaps) caps = NULL;

  if (verdict != MIKEY_GOOD)
    return verdict;
  message = gst_mikey_message_new_from_data (data, size, NULL, NULL);
  if (!message)
    return MIKEY_MALFORMED;
  caps = gst_caps_new_empty_simple ("application/x-srtp");
  if (gst_mikey_message_to_caps (message, caps))
    *key = take_key (gst_caps_get_structure (caps, 0));
  gst_mikey_message_unref (message);
  return *key ? MIKEY_GOOD : MIKEY_UNSUPPORTED;
}

// Returns the value of a field of the header (transfer full), without quotation marks, or NULL.
static gchar *
find_field (gchar **fields, const gchar *name)
{
  for (guint i = 0; fields[i]; i++) {
    gchar *field = g_strstrip (fields[i]), *value;
    gsize len = strlen (name);

    if (g_ascii_strncasecmp (field, name, len) != 0 || field[len] != '=')
      continue;
    value = g_strstrip (field + len + 1);
    len = strlen (value);
    return len >= 2 && value[0] == '"' && value[len - 1] == '"' ? g_strndup (value + 1, len - 2)
                                                                : g_strdup (value);
  }
  return NULL;
}

static gboolean
is_base64 (const gchar *text)
{
  gsize len = strlen (text), digits;

  digits = strspn (text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
  return len > 0 && len <= DATA_MAX && len % 4 == 0 && len - digits <= 2
         && strspn (text + digits, "=") == len - digits;
}

MikeyVerdict
mikey_read_header (const gchar *header, GBytes **key)
{
  g_auto (GStrv) fields = g_strsplit (header, ";", 16);
  g_autofree gchar *protocol = find_field (fields, "prot"), *data = find_field (fields, "data");
  MikeyVerdict verdict = MIKEY_MALFORMED;

  *key = NULL;
  if (protocol && g_ascii_strcasecmp (protocol, "mikey") != 0) {
    verdict = MIKEY_UNSUPPORTED;
  } else if (protocol && data && is_base64 (data)) {
    gsize size;
    g_autofree guint8 *message = g_base64_decode (data, &size);

    verdict = read_message (message, size, key);
  }
  return verdict;
}
