// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tls/tls_fingerprint.h"

gchar *
tls_fingerprint_to_text (const guint8 bytes[TLS_FINGERPRINT_BYTES])
{
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < TLS_FINGERPRINT_BYTES; i++)
    g_string_append_printf (text, i > 0 ? ":%02X" : "%02X", bytes[i]);
  return g_string_free (text, FALSE);
}

gboolean
tls_fingerprint_parse (const gchar *text, guint8 bytes[TLS_FINGERPRINT_BYTES])
{
  for (guint i = 0; i < TLS_FINGERPRINT_BYTES; i++) {
    if (i > 0 && *text == ':')
      text++;
    if (!g_ascii_isxdigit (text[0]) || !g_ascii_isxdigit (text[1]))
      return FALSE;
    bytes[i] = (guint8) (g_ascii_xdigit_value (text[0]) << 4 | g_ascii_xdigit_value (text[1]));
    text += 2;
  }
  return *text == '\0';
}
