// SPDX-License-Identifier: LGPL-2.1-or-later
#include "access/member_token.h"

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

static void
sign (const gchar *secret, const gchar *text, gsize len, guint8 signature[SIGNATURE_SIZE])
{
  GHmac *hmac = g_hmac_new (G_CHECKSUM_SHA256, (const guchar *) secret, strlen (secret));
  gsize size = SIGNATURE_SIZE;

  g_hmac_update (hmac, (const guchar *) text, (gssize) len);
  g_hmac_get_digest (hmac, signature, &size);
  g_hmac_unref (hmac);
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
  guint8 signature[SIGNATURE_SIZE];
  g_autofree gchar *encoded = NULL;

  sign (secret, text, strlen (text), signature);
  encoded = encode (signature, sizeof signature);
  return g_strconcat (text, ".", encoded, NULL);
}

// The time that this takes says nothing about where they differ.
static gboolean
are_equal (const guint8 *a, const guint8 *b, gsize len)
{
  guint8 differs = 0;

  for (gsize i = 0; i < len; i++)
    differs |= a[i] ^ b[i];
  return differs == 0;
}

static gboolean
is_signed (const gchar *secret, const gchar *token, const gchar *dot)
{
  guint8 expected[SIGNATURE_SIZE];
  gsize len;
  g_autofree guint8 *signature = jwks_decode (dot + 1, strlen (dot + 1), &len);

  sign (secret, token, (gsize) (dot - token), expected);
  return signature && len == SIGNATURE_SIZE && are_equal (signature, expected, len);
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
