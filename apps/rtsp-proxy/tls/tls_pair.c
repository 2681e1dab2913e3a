// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tls/tls_pair.h"

#include <gnutls/x509.h>

#include "tls/tls_fingerprint.h"

#define FILE_BYTES_MAX (1 << 20)

struct _TlsPair {
  gatomicrefcount refs;
  gnutls_certificate_credentials_t credentials;
  gint64 from, until; // the certificate's validity, in seconds since the epoch
  guint8 fingerprint[TLS_FINGERPRINT_BYTES];
};

// What tls_pair_load() reads, until it is in the credentials.
typedef struct {
  gnutls_x509_crt_t *chain;
  guint n_chain;
  gnutls_x509_privkey_t key;
} Parts;

G_DEFINE_QUARK (tls - pair - error - quark, tls_pair_error)

TlsPair *
tls_pair_ref (TlsPair *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
tls_pair_unref (TlsPair *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  gnutls_certificate_free_credentials (self->credentials);
  g_free (self);
}

// ---- reading ----

// Fails for anything but a regular file: a FIFO would block.
static gboolean
read_file (const gchar *file, TlsPairError code, gchar **text, gsize *len, GError **error)
{
  GError *why = NULL;

  if (g_file_test (file, G_FILE_TEST_EXISTS) && !g_file_test (file, G_FILE_TEST_IS_REGULAR)) {
    g_set_error (error, TLS_PAIR_ERROR, code, "%s is not a regular file", file);
    return FALSE;
  }
  if (!g_file_get_contents (file, text, len, &why)) {
    g_set_error (error, TLS_PAIR_ERROR, code, "cannot read %s: %s", file,
        g_error_matches (why, G_FILE_ERROR, G_FILE_ERROR_NOENT)   ? "no such file"
        : g_error_matches (why, G_FILE_ERROR, G_FILE_ERROR_ACCES) ? "permission denied"
                                                                  : why->message);
    g_error_free (why);
    return FALSE;
  }
  if (*len <= FILE_BYTES_MAX)
    return TRUE;
  g_set_error (error, TLS_PAIR_ERROR, code, "%s is larger than %d bytes", file, FILE_BYTES_MAX);
  g_clear_pointer (text, g_free);
  return FALSE;
}

static gboolean
read_chain (Parts *parts, const gchar *file, GError **error)
{
  gchar *text;
  gsize len;
  gnutls_datum_t datum;
  int r;

  if (!read_file (file, TLS_PAIR_ERROR_CERTIFICATE, &text, &len, error))
    return FALSE;
  datum = (gnutls_datum_t) { (guchar *) text, (guint) len };
  r = gnutls_x509_crt_list_import2 (&parts->chain, &parts->n_chain, &datum, GNUTLS_X509_FMT_PEM, 0);
  g_free (text);
  if (r == GNUTLS_E_NO_CERTIFICATE_FOUND || r == GNUTLS_E_BASE64_UNEXPECTED_HEADER_ERROR)
    g_set_error (error, TLS_PAIR_ERROR, TLS_PAIR_ERROR_CERTIFICATE,
        "%s holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)", file);
  else if (r < 0)
    g_set_error (error, TLS_PAIR_ERROR, TLS_PAIR_ERROR_CERTIFICATE,
        "%s holds a damaged certificate: %s", file, gnutls_strerror (r));
  return r >= 0;
}

static gboolean
read_key (Parts *parts, const gchar *file, GError **error)
{
  gchar *text;
  gsize len;
  gnutls_datum_t datum;
  gboolean locked;
  int r;

  if (!read_file (file, TLS_PAIR_ERROR_KEY, &text, &len, error))
    return FALSE;
  datum = (gnutls_datum_t) { (guchar *) text, (guint) len };
  gnutls_x509_privkey_init (&parts->key);
  r = gnutls_x509_privkey_import2 (parts->key, &datum, GNUTLS_X509_FMT_PEM, NULL, 0);
  locked = g_strstr_len (text, (gssize) len, "BEGIN ENCRYPTED PRIVATE KEY")
           || g_strstr_len (text, (gssize) len, "Proc-Type: 4,ENCRYPTED");
  gnutls_memset (text, 0, len);
  g_free (text);
  if (r < 0 && (locked || r == GNUTLS_E_DECRYPTION_FAILED))
    g_set_error (error, TLS_PAIR_ERROR, TLS_PAIR_ERROR_KEY,
        "the key in %s is encrypted; write one without a password with openssl pkey", file);
  else if (r == GNUTLS_E_BASE64_UNEXPECTED_HEADER_ERROR
           || r == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
    g_set_error (error, TLS_PAIR_ERROR, TLS_PAIR_ERROR_KEY,
        "%s holds no private key in PEM form (-----BEGIN PRIVATE KEY-----)", file);
  else if (r < 0)
    g_set_error (error, TLS_PAIR_ERROR, TLS_PAIR_ERROR_KEY, "%s holds a damaged private key: %s",
        file, gnutls_strerror (r));
  return r >= 0;
}

static gboolean
join_parts (
    TlsPair *self, const Parts *parts, const gchar *certificate, const gchar *key, GError **error)
{
  size_t len = sizeof self->fingerprint;
  int r;

  gnutls_certificate_allocate_credentials (&self->credentials);
  r = gnutls_certificate_set_x509_key (
      self->credentials, parts->chain, (int) parts->n_chain, parts->key);
  if (r == GNUTLS_E_CERTIFICATE_KEY_MISMATCH)
    g_set_error (error, TLS_PAIR_ERROR, TLS_PAIR_ERROR_KEY,
        "the key in %s does not belong to the first certificate in %s", key, certificate);
  else if (r < 0)
    g_set_error (error, TLS_PAIR_ERROR, TLS_PAIR_ERROR_KEY, "cannot use the key in %s with %s: %s",
        key, certificate, gnutls_strerror (r));
  if (r < 0)
    return FALSE;
  self->from = gnutls_x509_crt_get_activation_time (parts->chain[0]);
  self->until = gnutls_x509_crt_get_expiration_time (parts->chain[0]);
  gnutls_x509_crt_get_fingerprint (parts->chain[0], GNUTLS_DIG_SHA256, self->fingerprint, &len);
  return TRUE;
}

static void
clear_parts (Parts *parts)
{
  for (guint i = 0; i < parts->n_chain; i++)
    gnutls_x509_crt_deinit (parts->chain[i]);
  gnutls_free (parts->chain);
  if (parts->key)
    gnutls_x509_privkey_deinit (parts->key);
}

TlsPair *
tls_pair_load (const gchar *certificate, const gchar *key, GError **error)
{
  TlsPair *self = g_new0 (TlsPair, 1);
  Parts parts = { NULL };

  g_atomic_ref_count_init (&self->refs);
  if (!read_chain (&parts, certificate, error) || !read_key (&parts, key, error)
      || !join_parts (self, &parts, certificate, key, error)) {
    if (self->credentials)
      gnutls_certificate_free_credentials (self->credentials);
    g_clear_pointer (&self, g_free);
  }
  clear_parts (&parts);
  return self;
}

// ---- values ----

gnutls_certificate_credentials_t
tls_pair_get_credentials (const TlsPair *self)
{
  return self->credentials;
}

static gchar *
dup_date (gint64 seconds)
{
  g_autoptr (GDateTime) date = g_date_time_new_from_unix_utc (seconds);

  return date ? g_date_time_format (date, "%Y-%m-%d") : g_strdup ("an unknown date");
}

gchar *
tls_pair_dup_summary (const TlsPair *self)
{
  g_autofree gchar *until = dup_date (self->until);
  g_autofree gchar *fingerprint = tls_fingerprint_to_text (self->fingerprint);

  return g_strdup_printf ("valid until %s, SHA-256 %s", until, fingerprint);
}

gchar *
tls_pair_dup_warning (const TlsPair *self, gint64 now)
{
  gchar *date, *text;

  if (now >= self->from && now <= self->until)
    return NULL;
  date = dup_date (now < self->from ? self->from : self->until);
  text = g_strdup_printf (
      now < self->from ? "is not valid before %s" : "has expired on %s; clients refuse it", date);
  g_free (date);
  return text;
}
