// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/tls_trust.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file_roots.h"

void
tls_trust_copy (TlsTrust *to, const TlsTrust *from)
{
  tls_trust_clear (to);
  *to =
      (TlsTrust) { from->any, g_strdup (from->fingerprint), g_strdup (from->ca), from->is_limited };
}

void
tls_trust_clear (TlsTrust *self)
{
  g_clear_pointer (&self->fingerprint, g_free);
  g_clear_pointer (&self->ca, g_free);
}

GTlsDatabase *
tls_trust_load (const TlsTrust *self, GError **error)
{
  GTlsDatabase *database;
  gchar *name;
  int fd;

  if (!self->is_limited)
    return g_tls_file_database_new (self->ca, error);
  fd = file_roots_open (self->ca, O_RDONLY);
  name = file_roots_dup_name (fd);
  database = g_tls_file_database_new (name, error);
  if (!database)
    g_prefix_error (error, "%s: ", self->ca);
  if (fd >= 0)
    close (fd);
  g_free (name);
  return database;
}

// ---- judging ----

static gchar *
dup_fingerprint (GTlsCertificate *certificate)
{
  guint8 digest[TLS_FINGERPRINT_BYTES];
  gsize len = sizeof digest;
  GChecksum *checksum = g_checksum_new (G_CHECKSUM_SHA256);
  GByteArray *bytes = NULL;

  g_object_get (certificate, "certificate", &bytes, NULL);
  if (bytes)
    g_checksum_update (checksum, bytes->data, (gssize) bytes->len);
  g_checksum_get_digest (checksum, digest, &len);
  g_checksum_free (checksum);
  g_clear_pointer (&bytes, g_byte_array_unref);
  return tls_fingerprint_to_text (digest);
}

// Returns all faults as text, which the caller owns.
static gchar *
dup_faults (GTlsCertificateFlags faults)
{
  static const struct {
    GTlsCertificateFlags flag;
    const gchar *text;
  } names[] = {
    { G_TLS_CERTIFICATE_UNKNOWN_CA, "its authority is unknown" },
    { G_TLS_CERTIFICATE_BAD_IDENTITY, "it is for another host" },
    { G_TLS_CERTIFICATE_EXPIRED, "it has expired" },
    { G_TLS_CERTIFICATE_NOT_ACTIVATED, "it is not valid yet" },
    { G_TLS_CERTIFICATE_REVOKED, "it was revoked" },
    { G_TLS_CERTIFICATE_INSECURE, "its signature is not secure" },
  };
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    if (faults & names[i].flag)
      g_string_append_printf (text, "%s%s", text->len ? ", " : "", names[i].text);
  }
  if (!text->len)
    g_string_append (text, "it is not valid");
  return g_string_free (text, FALSE);
}

gchar *
tls_trust_check (const TlsTrust *self, GTlsCertificate *certificate, GTlsCertificateFlags faults)
{
  gchar *seen, *wrong, *reason = NULL;

  if (!self->fingerprint && (self->any || faults == 0))
    return NULL;
  seen = dup_fingerprint (certificate);
  wrong = dup_faults (faults);
  if (!self->fingerprint)
    reason = g_strdup_printf (
        "the certificate of the upstream is not trusted: %s; its fingerprint is %s", wrong, seen);
  else if (!g_str_equal (seen, self->fingerprint))
    reason = g_strdup_printf (
        "the certificate of the upstream is not the one of tls-fingerprint; its fingerprint is %s",
        seen);
  g_free (wrong);
  g_free (seen);
  return reason;
}
