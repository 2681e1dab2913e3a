// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stores/sigv4.h"

#include <errno.h>
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <string.h>

#define SECTION "default"
#define DEFAULT_REGION "us-east-1"
#define SHA256_BYTES 32

// ---- keys ----

void
s3_keys_free (S3Keys *self)
{
  g_free (self->access_key);
  g_free (self->secret_key);
  g_free (self->region);
  g_free (self);
}

S3Keys *
s3_keys_copy (const S3Keys *self)
{
  S3Keys *copy = self ? g_new0 (S3Keys, 1) : NULL;

  if (copy)
    *copy = (S3Keys) { g_strdup (self->access_key), g_strdup (self->secret_key),
      g_strdup (self->region) };
  return copy;
}

static gboolean
check_mode (const gchar *path, GError **error)
{
  GStatBuf st;

  if (g_stat (path, &st) != 0) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "%s: %s", path, g_strerror (errno));
    return FALSE;
  }
  if ((st.st_mode & 077) != 0) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED,
        "%s: others can read these keys; run: chmod 600 %s", path, path);
    return FALSE;
  }
  return TRUE;
}

S3Keys *
s3_keys_read (const gchar *path, GError **error)
{
  GKeyFile *file = g_key_file_new ();
  S3Keys *self = g_new0 (S3Keys, 1);
  gboolean ok = check_mode (path, error);

  if (ok && !g_key_file_load_from_file (file, path, G_KEY_FILE_NONE, error)) {
    g_prefix_error (error, "%s: ", path);
    ok = FALSE;
  }
  if (ok) {
    self->access_key = g_key_file_get_string (file, SECTION, "aws_access_key_id", NULL);
    self->secret_key = g_key_file_get_string (file, SECTION, "aws_secret_access_key", NULL);
    self->region = g_key_file_get_string (file, SECTION, "region", NULL);
    if (!self->region)
      self->region = g_strdup (DEFAULT_REGION);
    if (!self->access_key || !*self->access_key || !self->secret_key || !*self->secret_key) {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED,
          "%s: section [" SECTION "] needs aws_access_key_id and aws_secret_access_key", path);
      ok = FALSE;
    }
  }
  g_key_file_free (file);
  if (!ok)
    g_clear_pointer (&self, s3_keys_free);
  return self;
}

// ---- signatures ----

static void
hmac (guint8 digest[SHA256_BYTES], const guint8 *key, gsize key_length, const gchar *text)
{
  g_autoptr (GHmac) state = g_hmac_new (G_CHECKSUM_SHA256, key, key_length);
  gsize length = SHA256_BYTES;

  g_hmac_update (state, (const guchar *) text, strlen (text));
  g_hmac_get_digest (state, digest, &length);
}

// Returns the hash of the request in its canonical form.
static gchar *
hash_request (const S3Request *request, const gchar *signed_headers)
{
  g_autofree gchar *range =
      request->range ? g_strdup_printf ("range:%s\n", request->range) : g_strdup ("");
  g_autofree gchar *canonical = g_strdup_printf ("%s\n%s\n%s\nhost:%s\n%sx-amz-content-sha256:%s\n"
                                                 "x-amz-date:%s\n\n%s\n%s",
      request->method, request->path, request->query, request->host, range, S3_EMPTY_HASH,
      request->date, signed_headers, S3_EMPTY_HASH);

  return g_compute_checksum_for_string (G_CHECKSUM_SHA256, canonical, -1);
}

// Signs `text` with a key that is valid for one day, region and service.
static gchar *
sign (const S3Keys *keys, const gchar *day, const gchar *text)
{
  g_autofree gchar *secret = g_strconcat ("AWS4", keys->secret_key, NULL);
  guint8 key[SHA256_BYTES];
  gchar *signature;

  hmac (key, (const guint8 *) secret, strlen (secret), day);
  hmac (key, key, sizeof key, keys->region);
  hmac (key, key, sizeof key, "s3");
  hmac (key, key, sizeof key, "aws4_request");
  signature = g_compute_hmac_for_string (G_CHECKSUM_SHA256, key, sizeof key, text, -1);
  return signature;
}

gchar *
s3_sign (const S3Keys *keys, const S3Request *request)
{
  const gchar *signed_headers = request->range ? "host;range;x-amz-content-sha256;x-amz-date"
                                               : "host;x-amz-content-sha256;x-amz-date";
  g_autofree gchar *day = g_strndup (request->date, strlen ("20130524"));
  g_autofree gchar *scope = g_strdup_printf ("%s/%s/s3/aws4_request", day, keys->region);
  g_autofree gchar *hash = hash_request (request, signed_headers);
  g_autofree gchar *text =
      g_strdup_printf ("AWS4-HMAC-SHA256\n%s\n%s\n%s", request->date, scope, hash);
  g_autofree gchar *signature = sign (keys, day, text);

  return g_strdup_printf ("AWS4-HMAC-SHA256 Credential=%s/%s,SignedHeaders=%s,Signature=%s",
      keys->access_key, scope, signed_headers, signature);
}
