// SPDX-License-Identifier: LGPL-2.1-or-later
#include "access/member_token.h"

#include "access/secrets.h"
#include "text/jwks.h"
#include "text/json_strict.h"

#include <string.h>

#define HEADER "{\"alg\":\"HS256\",\"typ\":\"JWT\",\"kid\":\"weir-member\"}"
#define SIGNATURE_SIZE 32
#define TOKEN_MAX 1024
#define DEPTH_MAX 2

// Base64url without padding.
static gchar *
encode (const guint8 *bytes, gsize len)
{
  gchar *text = g_base64_encode (bytes, len);

  g_strdelimit (text, "+", '-');
  g_strdelimit (text, "/", '_');
  text[strcspn (text, "=")] = '\0';
  return text;
}

// Returns the signature of a text, encoded.
static gchar *
dup_signature (const gchar *secret, const gchar *text, gsize len)
{
  GHmac *hmac = g_hmac_new (G_CHECKSUM_SHA256, (const guchar *) secret, strlen (secret));
  guint8 signature[SIGNATURE_SIZE];
  gsize size = sizeof signature;

  g_hmac_update (hmac, (const guchar *) text, (gssize) len);
  g_hmac_get_digest (hmac, signature, &size);
  g_hmac_unref (hmac);
  return encode (signature, size);
}

gchar *
member_token_new (const gchar *secret, const gchar *from, const gchar *to, gint64 expires_s)
{
  // Names of members need no escapes.
  g_autofree gchar *json = g_strdup_printf (
      "{\"sub\":\"%s\",\"aud\":\"%s\",\"exp\":%" G_GINT64_FORMAT "}", from, to, expires_s);
  g_autofree gchar *header = encode ((const guint8 *) HEADER, strlen (HEADER));
  g_autofree gchar *claims = encode ((const guint8 *) json, strlen (json));
  g_autofree gchar *text = g_strconcat (header, ".", claims, NULL);
  g_autofree gchar *signature = dup_signature (secret, text, strlen (text));

  return g_strconcat (text, ".", signature, NULL);
}

static gboolean
is_signed (const gchar *secret, const gchar *token, const gchar *dot)
{
  g_autofree gchar *expected = dup_signature (secret, token, (gsize) (dot - token));

  return secrets_equal (dot + 1, expected);
}

static MemberVerdict
check_claims (const gchar *text, gsize text_len, const gchar *to, gint64 now_s, gchar **from)
{
  gsize len;
  g_autofree guint8 *json = jwks_decode (text, text_len, &len);
  g_autoptr (JsonObject) claims =
      json ? json_strict_read ((const gchar *) json, len, DEPTH_MAX) : NULL;
  const gchar *sender = claims ? json_strict_text (claims, "sub") : NULL;
  gdouble expires;

  if (!sender || g_strcmp0 (json_strict_text (claims, "aud"), to) != 0
      || !json_strict_number (claims, "exp", &expires))
    return MEMBER_TOKEN_WRONG;
  *from = g_strdup (sender);
  return (gdouble) now_s < expires ? MEMBER_TOKEN_GOOD : MEMBER_TOKEN_EXPIRED;
}

MemberVerdict
member_token_check (
    const gchar *secret, const gchar *token, const gchar *to, gint64 now_s, gchar **from)
{
  g_autofree gchar *header = encode ((const guint8 *) HEADER, strlen (HEADER));
  const gchar *claims = token + strlen (header) + 1, *dot;

  *from = NULL;
  if (!g_str_has_prefix (token, header) || token[strlen (header)] != '.')
    return MEMBER_TOKEN_NONE;
  dot = strchr (claims, '.');
  if (!dot || strlen (token) > TOKEN_MAX || !is_signed (secret, token, dot))
    return MEMBER_TOKEN_WRONG;
  return check_claims (claims, (gsize) (dot - claims), to, now_s, from);
}
