// SPDX-License-Identifier: LGPL-2.1-or-later
#include "access/credentials.h"

#include <libsoup/soup.h>
#include <string.h>

static void
wipe (gchar *text)
{
  if (text)
    explicit_bzero (text, strlen (text));
  g_free (text);
}

// Reads NAME:PASSWORD.
static gboolean
split_password (const gchar *text, gsize len, Credentials *result)
{
  const gchar *colon = memchr (text, ':', len);

  if (!colon || memchr (text, 0, len))
    return FALSE;
  result->user = g_strndup (text, (gsize) (colon - text));
  result->secret = g_strndup (colon + 1, len - (gsize) (colon + 1 - text));
  return TRUE;
}

static gboolean
parse_basic (const gchar *encoded, Credentials *result)
{
  gsize len = 0;
  g_autofree guchar *text = g_base64_decode (encoded, &len);
  gboolean ok = split_password ((const gchar *) text, len, result);

  explicit_bzero (text, len);
  return ok;
}

static gboolean
parse_digest (const gchar *parameters, Credentials *result)
{
  const gchar *user;

  result->digest = soup_header_parse_param_list_strict (parameters);
  user = result->digest ? g_hash_table_lookup (result->digest, "username") : NULL;
  result->user = g_strdup (user);
  return user != NULL;
}

// Returns the text behind the scheme, or NULL if `header` has another one.
static const gchar *
after_scheme (const gchar *header, const gchar *scheme)
{
  gsize len = strlen (scheme);

  if (g_ascii_strncasecmp (header, scheme, len) != 0 || header[len] != ' ')
    return NULL;
  return header + len + strspn (header + len, " ");
}

void
credentials_parse (const gchar *authorization, Credentials *result)
{
  const gchar *rest;

  *result = (Credentials) { .kind = authorization ? CREDENTIALS_WRONG : CREDENTIALS_NONE };
  if (!authorization || !g_utf8_validate (authorization, -1, NULL))
    return;
  if ((rest = after_scheme (authorization, "Basic")) && parse_basic (rest, result))
    result->kind = CREDENTIALS_BASIC;
  else if ((rest = after_scheme (authorization, "Digest")) && parse_digest (rest, result))
    result->kind = CREDENTIALS_DIGEST;
  else if ((rest = after_scheme (authorization, "Bearer"))
           && split_password (rest, strlen (rest), result))
    result->kind = CREDENTIALS_BASIC; // for clients that cannot send it as Basic
  else if (rest && *rest) {
    result->kind = CREDENTIALS_BEARER;
    result->secret = g_strdup (rest);
  }
}

void
credentials_clear (Credentials *self)
{
  g_free (self->user);
  wipe (self->secret);
  g_clear_pointer (&self->digest, soup_header_free_param_list);
  *self = (Credentials) { 0 };
}
