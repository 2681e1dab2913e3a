// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the reader of the header KeyMgmt. The input is a MIKEY message, or with a first byte of
// 'h' the header.

#include "app.h"

#include "outlets/rtsp/mikey.h"

int
LLVMFuzzerInitialize (int *argc, char ***argv)
{
  init_gst ();
  only_critical ();
  return 0;
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  gboolean whole = size > 0 && data[0] == 'h';
  gchar *base64 = g_base64_encode (data, size);
  gchar *header = whole ? g_strndup ((const gchar *) data + 1, size - 1)
                        : g_strdup_printf ("prot=mikey;uri=\"\";data=\"%s\"", base64);
  GBytes *key;
  MikeyVerdict verdict = mikey_read_header (header, &key);

  require (verdict != MIKEY_NONE && (verdict == MIKEY_GOOD) == (key != NULL));
  if (key)
    require (g_bytes_get_size (key) == MIKEY_KEY_BYTES);
  g_clear_pointer (&key, g_bytes_unref);
  g_free (header);
  g_free (base64);
  return 0;
}
