// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_tls.h"

#include "text/config_error.h"
#include "tls/tls_fingerprint.h"

gchar *
mount_tls_check_ca (SchemaText *it)
{
  g_autoptr (GError) why = NULL;
  GList *found = g_file_test (it->text, G_FILE_TEST_IS_REGULAR)
                     ? g_tls_certificate_list_new_from_file (it->text, &why)
                     : NULL;
  gchar *wrong = NULL;

  if (!found) {
    it->code = CONFIG_ERROR_ABSENT;
    wrong = g_strdup_printf ("%s holds no certificate in PEM form: %s", it->text,
        why ? why->message : "no such file, or no certificate in it");
  }
  g_list_free_full (found, g_object_unref);
  return wrong;
}

gchar *
mount_tls_check_fingerprint (SchemaText *it)
{
  guint8 bytes[TLS_FINGERPRINT_BYTES];

  if (!tls_fingerprint_parse (it->text, bytes))
    return g_strdup (
        "expected the SHA-256 of a certificate: 64 hexadecimal digits, such as 5A:0B:...");
  it->value = tls_fingerprint_to_text (bytes);
  return NULL;
}
