// SPDX-License-Identifier: LGPL-2.1-or-later
#include "access/digest.h"

#include "access/secrets.h"

#include <string.h>

#define NONCE_BYTES 16

void
nonce_clear (Nonce *self)
{
  g_free (self->text);
  *self = (Nonce) { 0 };
}

static gboolean
is_fresh (const Nonce *self, gint64 now_us)
{
  return self->text && now_us - self->made_us < NONCE_LIFE_S * G_USEC_PER_SEC;
}

gchar *
digest_dup_challenge (Nonce *nonce, gboolean md5, gboolean stale, gint64 now_us)
{
  if (!is_fresh (nonce, now_us)) {
    nonce_clear (nonce);
    nonce->text = secrets_dup_random (NONCE_BYTES);
    nonce->made_us = now_us;
  }
  // Old clients of live555 read the first three parameters, in this order.
  return g_strdup_printf ("Digest realm=\"" USERS_REALM "\", nonce=\"%s\", %salgorithm=%s%s",
      nonce->text, stale ? "stale=true, " : "", md5 ? "MD5" : "SHA-256",
      md5 ? "" : ", qop=\"auth\"");
}

// ---- the response ----

typedef struct {
  const gchar *algorithm, *realm, *nonce, *uri, *response, *qop, *nc, *cnonce;
  gboolean is_md5;
  guint64 count; // of nc
} Parameters;

static gboolean
read_parameters (GHashTable *table, Parameters *out)
{
  *out = (Parameters) { .algorithm = g_hash_table_lookup (table, "algorithm"),
    .realm = g_hash_table_lookup (table, "realm"),
    .nonce = g_hash_table_lookup (table, "nonce"),
    .uri = g_hash_table_lookup (table, "uri"),
    .response = g_hash_table_lookup (table, "response"),
    .qop = g_hash_table_lookup (table, "qop"),
    .nc = g_hash_table_lookup (table, "nc"),
    .cnonce = g_hash_table_lookup (table, "cnonce") };
  if (!out->realm || !out->nonce || !out->uri || !out->response)
    return FALSE;
  out->is_md5 = !out->algorithm || !g_ascii_strcasecmp (out->algorithm, "MD5");
  if (!out->is_md5 && g_ascii_strcasecmp (out->algorithm, "SHA-256"))
    return FALSE;
  if (!out->qop)
    return TRUE;
  return !g_ascii_strcasecmp (out->qop, "auth") && out->nc && out->cnonce
         && g_ascii_string_to_unsigned (out->nc, 16, 1, G_MAXUINT32, &out->count, NULL);
}

// Reports whether the URI of the header is for the requested path. Some clients send the URL of the
// presentation with each SETUP, and some send no host, so only the path is compared.
static gboolean
is_for (const gchar *uri, const AccessRequest *request)
{
  const gchar *path = request->mount ? request->mount : request->path;
  const gchar *authority = strstr (uri, "://"), *given = uri;
  gsize len = strlen (path);

  if (authority)
    given = authority + 3 + strcspn (authority + 3, "/");
  if (request->prefix && g_str_has_prefix (given, request->prefix))
    given += strlen (request->prefix) - 1;
  // What follows "/" is another path.
  return strncmp (given, path, len) == 0 && strchr (len > 1 ? "/?" : "?", given[len]);
}

static gchar *
dup_hash (GChecksumType type, const gchar *a, const gchar *b)
{
  g_autofree gchar *text = g_strconcat (a, ":", b, NULL);

  return g_compute_checksum_for_string (type, text, -1);
}

static gchar *
dup_response (const Parameters *given, const gchar *secret, const gchar *method)
{
  GChecksumType type = given->is_md5 ? G_CHECKSUM_MD5 : G_CHECKSUM_SHA256;
  g_autofree gchar *request = dup_hash (type, method ? method : "", given->uri), *middle = NULL;

  middle = given->qop
               ? g_strjoin (":", given->nonce, given->nc, given->cnonce, given->qop, request, NULL)
               : g_strjoin (":", given->nonce, request, NULL);
  return dup_hash (type, secret, middle);
}

static gboolean
is_right (const Parameters *given, const User *user, const AccessRequest *request)
{
  const gchar *secret = NULL;
  g_autofree gchar *expected = NULL, *response = NULL;
  gboolean same;

  if (user)
    secret = given->is_md5 ? user->md5_digest : user->sha2_digest;
  expected = dup_response (given, secret ? secret : "", request->method);
  response = g_ascii_strdown (given->response, -1);
  same = secrets_equal (response, expected);
  return same && secret;
}

DigestResult
digest_check (GHashTable *parameters, const User *user, const AccessRequest *request, Nonce *nonce,
    gint64 now_us)
{
  Parameters given;

  if (!read_parameters (parameters, &given) || !g_str_equal (given.realm, USERS_REALM)
      || !is_for (given.uri, request) || !is_right (&given, user, request))
    return DIGEST_WRONG;
  if (!is_fresh (nonce, now_us) || !g_str_equal (given.nonce, nonce->text)
      || (given.qop && given.count <= nonce->count))
    return DIGEST_STALE;
  if (given.qop)
    nonce->count = (guint32) given.count;
  return DIGEST_RIGHT;
}
