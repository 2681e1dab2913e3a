// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tls/tls_make.h"

#include "tls/tls_fingerprint.h"

#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <gnutls/crypto.h>
#include <gnutls/x509.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DAY_S ((time_t) 24 * 60 * 60)
#define SERIAL_BYTES 16
#define NAME_MAX_BYTES 253
#define COMMON_NAME_MAX 64

static gboolean
fail_gnutls (int r, GError **error)
{
  if (r >= 0)
    return TRUE;
  g_set_error (
      error, G_IO_ERROR, G_IO_ERROR_FAILED, "cannot make the certificate: %s", gnutls_strerror (r));
  return FALSE;
}

static gboolean
is_name (const gchar *host)
{
  return *host && strlen (host) <= NAME_MAX_BYTES && !strstr (host, "..")
         && strspn (host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.*")
                == strlen (host);
}

static gboolean
add_host (gnutls_x509_crt_t certificate, const gchar *host, GError **error)
{
  GInetAddress *inet = g_inet_address_new_from_string (host);
  int r;

  if (!inet && !is_name (host)) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
        "\"%s\" is neither a host name nor an IP address", host);
    return FALSE;
  }
  if (inet)
    r = gnutls_x509_crt_set_subject_alt_name (certificate, GNUTLS_SAN_IPADDRESS,
        g_inet_address_to_bytes (inet), (guint) g_inet_address_get_native_size (inet),
        GNUTLS_FSAN_APPEND);
  else
    r = gnutls_x509_crt_set_subject_alt_name (
        certificate, GNUTLS_SAN_DNSNAME, host, (guint) strlen (host), GNUTLS_FSAN_APPEND);
  g_clear_object (&inet);
  return fail_gnutls (r, error);
}

static gboolean
fill (gnutls_x509_crt_t certificate, gnutls_x509_privkey_t key, const gchar *const *hosts,
    GError **error)
{
  guint8 serial[SERIAL_BYTES];
  time_t now = (time_t) (g_get_real_time () / G_USEC_PER_SEC);
  const gchar *name = hosts[0];

  if (!fail_gnutls (gnutls_rnd (GNUTLS_RND_NONCE, serial, sizeof serial), error))
    return FALSE;
  serial[0] = (serial[0] & 0x7f) | 0x40; // a positive number
  if (gnutls_x509_crt_set_version (certificate, 3) < 0
      || gnutls_x509_crt_set_serial (certificate, serial, sizeof serial) < 0
      || gnutls_x509_crt_set_activation_time (certificate, now - DAY_S) < 0
      || gnutls_x509_crt_set_expiration_time (certificate, now + TLS_MAKE_DAYS * DAY_S) < 0
      || gnutls_x509_crt_set_key (certificate, key) < 0
      || gnutls_x509_crt_set_basic_constraints (certificate, 0, -1) < 0
      || gnutls_x509_crt_set_key_usage (certificate, GNUTLS_KEY_DIGITAL_SIGNATURE) < 0
      || gnutls_x509_crt_set_key_purpose_oid (certificate, GNUTLS_KP_TLS_WWW_SERVER, 0) < 0
      || gnutls_x509_crt_set_dn_by_oid (certificate, GNUTLS_OID_X520_COMMON_NAME, 0, name,
             (guint) MIN (strlen (name), COMMON_NAME_MAX))
             < 0)
    return fail_gnutls (GNUTLS_E_INVALID_REQUEST, error);
  for (guint i = 0; hosts[i]; i++) {
    if (!add_host (certificate, hosts[i], error))
      return FALSE;
  }
  return fail_gnutls (
      gnutls_x509_crt_sign2 (certificate, certificate, key, GNUTLS_DIG_SHA256, 0), error);
}

// Writes both as PEM to a file that must not exist.
static gboolean
write_file (
    gnutls_x509_crt_t certificate, gnutls_x509_privkey_t key, const gchar *file, GError **error)
{
  gnutls_datum_t parts[2] = { { NULL } };
  gboolean ok;
  int fd, why;

  ok =
      fail_gnutls (gnutls_x509_privkey_export2_pkcs8 (
                       key, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN, &parts[0]),
          error)
      && fail_gnutls (gnutls_x509_crt_export2 (certificate, GNUTLS_X509_FMT_PEM, &parts[1]), error);
  fd = ok ? open (file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR) : -1;
  why = errno;
  for (guint i = 0; fd >= 0 && i < 2 && ok; i++) {
    ok = write (fd, parts[i].data, parts[i].size) == (gssize) parts[i].size;
    why = errno;
  }
  if (ok && fd >= 0)
    ok = fsync (fd) == 0 || errno == EINVAL;
  if (fd >= 0 && !ok)
    unlink (file);
  if (fd < 0 || !ok)
    g_set_error (error, G_IO_ERROR, g_io_error_from_errno (why), "cannot write %s: %s", file,
        why == EEXIST ? "the file exists; remove it first" : g_strerror (why));
  if (fd >= 0)
    close (fd);
  if (parts[0].data)
    gnutls_memset (parts[0].data, 0, parts[0].size);
  gnutls_free (parts[0].data);
  gnutls_free (parts[1].data);
  return ok && fd >= 0;
}

gchar *
tls_make_certificate (const gchar *const *hosts, const gchar *file, GError **error)
{
  gnutls_x509_crt_t certificate;
  gnutls_x509_privkey_t key;
  guint8 digest[TLS_FINGERPRINT_BYTES];
  size_t len = sizeof digest;
  gchar *text = NULL;

  gnutls_x509_crt_init (&certificate);
  gnutls_x509_privkey_init (&key);
  if (fail_gnutls (gnutls_x509_privkey_generate (
                       key, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS (GNUTLS_ECC_CURVE_SECP256R1), 0),
          error)
      && fill (certificate, key, hosts, error) && write_file (certificate, key, file, error)) {
    gnutls_x509_crt_get_fingerprint (certificate, GNUTLS_DIG_SHA256, digest, &len);
    text = tls_fingerprint_to_text (digest);
  }
  gnutls_x509_privkey_deinit (key);
  gnutls_x509_crt_deinit (certificate);
  return text;
}
