// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_tls.h"

#include "base/file_roots.h"
#include "text/config_error.h"

static gchar **
text_of (gpointer object, const SchemaKey *key)
{
  TlsTrust *trust = &((MountConfig *) object)->pull.trust;

  return g_str_equal (key->name, "tls-ca") ? &trust->ca : &trust->fingerprint;
}

static void
reset (const SchemaKey *key, gpointer object)
{
  g_clear_pointer (text_of (object, key), g_free);
}

static gboolean
equal_strings (const gchar *a, const gchar *b)
{
  return g_strcmp0 (a, b) == 0;
}

static void
write_string (JsonBuilder *builder, const gchar *name, const gchar *text)
{
  if (!text)
    return;
  json_builder_set_member_name (builder, name);
  json_builder_add_string_value (builder, text);
}

// ---- tls-ca ----

static gboolean
read_ca (const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  MountConfig *mount = object;
  const gchar *file = yaml_text (reader, node);
  GError *why = NULL;
  GList *found;
  gchar *wrong;

  reset (key, object);
  if (!file)
    return schema_fail (reader, node, key, error, "expected a single value");
  wrong = mount->from_api ? file_roots_check (file) : NULL;
  if (wrong)
    return yaml_fail_take (reader, node, key->name, CONFIG_ERROR_VALUE, error, wrong);
  found = g_file_test (file, G_FILE_TEST_IS_REGULAR)
              ? g_tls_certificate_list_new_from_file (file, &why)
              : NULL;
  if (!found) {
    yaml_fail_take (reader, node, key->name, CONFIG_ERROR_ABSENT, error,
        g_strdup_printf ("%s holds no certificate in PEM form: %s", file,
            why ? why->message : "no such file, or no certificate in it"));
    g_clear_error (&why);
    return FALSE;
  }
  g_list_free_full (found, g_object_unref);
  mount->pull.trust.ca = g_strdup (file);
  mount->pull.trust.is_limited = mount->from_api;
  return TRUE;
}

static gboolean
equal_ca (gconstpointer a, gconstpointer b)
{
  return equal_strings (
      ((const MountConfig *) a)->pull.trust.ca, ((const MountConfig *) b)->pull.trust.ca);
}

static void
write_ca (gconstpointer object, JsonBuilder *builder)
{
  write_string (builder, "tls-ca", ((const MountConfig *) object)->pull.trust.ca);
}

static void
copy_ca (gpointer to, gconstpointer from)
{
  ((MountConfig *) to)->pull.trust.ca = g_strdup (((const MountConfig *) from)->pull.trust.ca);
  ((MountConfig *) to)->pull.trust.is_limited = ((const MountConfig *) from)->pull.trust.is_limited;
}

static void
clear_ca (gpointer object)
{
  g_clear_pointer (&((MountConfig *) object)->pull.trust.ca, g_free);
}

const SchemaValue mount_tls_ca_value = { read_ca, reset, equal_ca, write_ca, copy_ca, clear_ca,
  NULL };

// ---- tls-fingerprint ----

static gboolean
read_fingerprint (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  const gchar *text = yaml_text (reader, node);
  guint8 bytes[TLS_FINGERPRINT_BYTES];

  reset (key, object);
  if (!text || !tls_fingerprint_parse (text, bytes))
    return schema_fail (reader, node, key, error,
        "expected the SHA-256 of a certificate: 64 hexadecimal digits, such as 5A:0B:...");
  *text_of (object, key) = tls_fingerprint_to_text (bytes);
  return TRUE;
}

static gboolean
equal_fingerprint (gconstpointer a, gconstpointer b)
{
  return equal_strings (((const MountConfig *) a)->pull.trust.fingerprint,
      ((const MountConfig *) b)->pull.trust.fingerprint);
}

static void
write_fingerprint (gconstpointer object, JsonBuilder *builder)
{
  write_string (builder, "tls-fingerprint", ((const MountConfig *) object)->pull.trust.fingerprint);
}

static void
copy_fingerprint (gpointer to, gconstpointer from)
{
  ((MountConfig *) to)->pull.trust.fingerprint =
      g_strdup (((const MountConfig *) from)->pull.trust.fingerprint);
}

static void
clear_fingerprint (gpointer object)
{
  g_clear_pointer (&((MountConfig *) object)->pull.trust.fingerprint, g_free);
}

const SchemaValue mount_tls_fingerprint_value = { read_fingerprint, reset, equal_fingerprint,
  write_fingerprint, copy_fingerprint, clear_fingerprint, NULL };
