// SPDX-License-Identifier: LGPL-2.1-or-later
#include "access/jwt.h"

#include "text/json_strict.h"

#include <string.h>

#define DEPTH_MAX 8
#define LEEWAY_S 30.0

typedef struct {
  const gchar *header, *claims, *signature;
  gsize header_len, claims_len, signature_len;
} Parts;

const gchar jwt_unknown_key[] = "wrong token: unknown key";
const gchar jwt_expired[] = "expired token";

static gboolean
split (const gchar *token, Parts *parts)
{
  const gchar *first = strchr (token, '.'), *second = first ? strchr (first + 1, '.') : NULL;

  if (!second || strchr (second + 1, '.') || second[1] == '\0')
    return FALSE;
  *parts = (Parts) { token, first + 1, second + 1, (gsize) (first - token),
    (gsize) (second - first - 1), strlen (second + 1) };
  return parts->header_len > 0 && parts->claims_len > 0;
}

gboolean
jwt_is_token (const gchar *text)
{
  Parts parts;

  return g_str_has_prefix (text, "ey") && split (text, &parts); // "ey": of "{"
}

static JsonObject *
read_part (const gchar *text, gsize text_len)
{
  gsize len;
  g_autofree guint8 *json = jwks_decode (text, text_len, &len);

  return json ? json_strict_read ((const gchar *) json, len, DEPTH_MAX) : NULL;
}

// ---- the signature ----

static const gchar *
check_verdict (JwksVerdict verdict)
{
  switch (verdict) {
    case JWKS_GOOD:
      return NULL;
    case JWKS_UNKNOWN_KEY:
      return jwt_unknown_key;
    case JWKS_UNKNOWN_ALGORITHM:
      return "wrong token: not signed by RS256, ES256 or EdDSA";
    default:
      return "wrong token: wrong signature";
  }
}

// This and the functions below return what is wrong, or NULL.
static const gchar *
check_signature (const Jwks *keys, const Parts *parts, JsonObject *header)
{
  const gchar *algorithm = json_strict_text (header, "alg"), *id = json_strict_text (header, "kid");
  JwksVerdict verdict;
  g_autofree guint8 *signature = NULL;
  gsize len;

  // "crit" names extensions that a receiver must know; this one knows none.
  if (json_object_has_member (header, "crit"))
    return "wrong token: unknown extension (crit)";
  if (!algorithm || (!id && json_object_has_member (header, "kid")))
    return "wrong token: malformed header";
  signature = jwks_decode (parts->signature, parts->signature_len, &len);
  if (!signature)
    return "wrong token: malformed signature";
  verdict = jwks_verify (keys, algorithm, id, parts->header,
      parts->header_len + 1 + parts->claims_len, signature, len);
  return check_verdict (verdict);
}

// ---- the claims ----

// Gets a time. Returns FALSE if the claim is there, but is not a time.
static gboolean
get_time (JsonObject *claims, const gchar *name, gdouble preset, gdouble *time)
{
  *time = preset;
  return !json_object_has_member (claims, name) || json_strict_number (claims, name, time);
}

static const gchar *
check_times (JsonObject *claims, gdouble now)
{
  gdouble expires, begins, issued;

  if (!json_strict_number (claims, "exp", &expires))
    return "wrong token: no time at which it expires (exp)";
  if (!get_time (claims, "nbf", now, &begins) || !get_time (claims, "iat", now, &issued))
    return "wrong token: nbf or iat is not a time";
  if (now >= expires + LEEWAY_S)
    return jwt_expired;
  if (now < begins - LEEWAY_S)
    return "wrong token: not valid yet (nbf)";
  if (now < issued - LEEWAY_S)
    return "wrong token: issued in the future (iat)";
  return NULL;
}

static gboolean
has_audience (JsonObject *claims, const gchar *audience)
{
  const gchar *only = json_strict_text (claims, "aud");
  JsonArray *several = json_strict_array (claims, "aud");

  for (guint i = 0; several && i < json_array_get_length (several); i++) {
    JsonNode *node = json_array_get_element (several, i);

    if (JSON_NODE_HOLDS_VALUE (node) && g_strcmp0 (json_node_get_string (node), audience) == 0)
      return TRUE;
  }
  return g_strcmp0 (only, audience) == 0;
}

static const gchar *
check_claims (JsonObject *claims, const JwtRules *rules, gint64 now_s)
{
  const gchar *wrong = check_times (claims, (gdouble) now_s);

  if (wrong)
    return wrong;
  if (rules->issuer && g_strcmp0 (json_strict_text (claims, "iss"), rules->issuer) != 0)
    return "wrong token: other issuer (iss)";
  if (rules->audience && !has_audience (claims, rules->audience))
    return "wrong token: other audience (aud)";
  return NULL;
}

JsonObject *
jwt_verify (
    const Jwks *keys, const gchar *token, const JwtRules *rules, gint64 now_s, const gchar **wrong)
{
  JsonObject *header = NULL, *claims = NULL;
  Parts parts;

  *wrong = NULL;
  if (strlen (token) > JWT_SIZE_MAX)
    *wrong = "wrong token: more than 4096 bytes";
  else if (!split (token, &parts))
    *wrong = "wrong token: not three parts";
  else if (!(header = read_part (parts.header, parts.header_len)))
    *wrong = "wrong token: malformed header";
  else
    *wrong = check_signature (keys, &parts, header);
  // Claims are read only when the signature is good.
  if (!*wrong) {
    claims = read_part (parts.claims, parts.claims_len);
    *wrong = claims ? check_claims (claims, rules, now_s) : "wrong token: malformed claims";
  }
  if (*wrong)
    g_clear_pointer (&claims, json_object_unref);
  g_clear_pointer (&header, json_object_unref);
  return claims;
}
