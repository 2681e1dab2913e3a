// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/rtsp_auth.h"

#include <string.h>

typedef struct {
  RtspScheme scheme;
  gboolean stale;
  gboolean has_qop, has_auth; // qop is there; "auth" is in it
  gchar *realm, *nonce, *opaque;
} Challenge;

static void
challenge_clear (Challenge *self)
{
  g_free (self->realm);
  g_free (self->nonce);
  g_free (self->opaque);
}

void
rtsp_auth_clear (RtspAuth *self)
{
  g_clear_pointer (&self->realm, g_free);
  g_clear_pointer (&self->nonce, g_free);
  g_clear_pointer (&self->opaque, g_free);
  g_clear_pointer (&self->cnonce, g_free);
  self->n_answers = 0;
}

// ---- reading ----

static const gchar *
skip_blanks (const gchar *s)
{
  return s + strspn (s, " \t,");
}

// Returns a token or a quoted string and moves `*s` behind it. (transfer full)
static gchar *
take_value (const gchar **s)
{
  GString *value = g_string_new (NULL);
  const gchar *at = *s;

  if (*at == '"') {
    for (at++; *at && *at != '"'; at++) {
      at += *at == '\\' && at[1];
      g_string_append_c (value, *at);
    }
    at += *at == '"';
  } else {
    gsize len = strcspn (at, " \t,");

    g_string_append_len (value, at, (gssize) len);
    at += len;
  }
  *s = at;
  return g_string_free (value, FALSE);
}

static void
set_algorithm (Challenge *self, const gchar *name)
{
  if (self->scheme != RTSP_SCHEME_MD5)
    return;
  if (!g_ascii_strcasecmp (name, "SHA-256"))
    self->scheme = RTSP_SCHEME_SHA256;
  else if (g_ascii_strcasecmp (name, "MD5") != 0)
    self->scheme = RTSP_SCHEME_NONE;
}

static void
set_qop (Challenge *self, const gchar *list)
{
  gchar **words = g_strsplit_set (list, ", \t", -1);

  self->has_qop = *list != '\0';
  self->has_auth = FALSE;
  for (gchar **word = words; *word; word++)
    self->has_auth |= !g_ascii_strcasecmp (*word, "auth");
  g_strfreev (words);
}

static void
set_parameter (Challenge *self, const gchar *name, gsize len, gchar *value)
{
  gchar **text = NULL;

  if (len == 5 && !g_ascii_strncasecmp (name, "realm", len))
    text = &self->realm;
  else if (len == 5 && !g_ascii_strncasecmp (name, "nonce", len))
    text = &self->nonce;
  else if (len == 6 && !g_ascii_strncasecmp (name, "opaque", len))
    text = &self->opaque;
  else if (len == 5 && !g_ascii_strncasecmp (name, "stale", len))
    self->stale = !g_ascii_strcasecmp (value, "true");
  else if (len == 9 && !g_ascii_strncasecmp (name, "algorithm", len))
    set_algorithm (self, value);
  else if (len == 3 && !g_ascii_strncasecmp (name, "qop", len))
    set_qop (self, value);
  if (text) {
    g_free (*text);
    *text = value;
  } else {
    g_free (value);
  }
}

static RtspScheme
find_scheme (const gchar *name, gsize len)
{
  if (len == 6 && !g_ascii_strncasecmp (name, "Digest", len))
    return RTSP_SCHEME_MD5; // unless it names another algorithm
  return len == 5 && !g_ascii_strncasecmp (name, "Basic", len) ? RTSP_SCHEME_BASIC
                                                               : RTSP_SCHEME_NONE;
}

// Reads the scheme and the parameters of the next challenge. Returns the text behind it.
static const gchar *
read_challenge (const gchar *s, Challenge *out)
{
  gsize len = strcspn (s, " \t,=");

  *out = (Challenge) { .scheme = find_scheme (s, len) };
  s += len + (s[len] == '=');
  while (*(s = skip_blanks (s))) {
    const gchar *name = s;

    len = strcspn (s, " \t,=");
    if (s[len] != '=')
      return s;
    s += len + 1;
    s += strspn (s, " \t");
    set_parameter (out, name, len, take_value (&s));
  }
  return s;
}

// A header cannot hold a value with a quote or a line break.
static gboolean
is_quotable (const gchar *text)
{
  return !text || !strpbrk (text, "\"\\\r\n");
}

static gboolean
is_usable (const Challenge *self)
{
  if (self->scheme < RTSP_SCHEME_MD5)
    return self->scheme == RTSP_SCHEME_BASIC;
  return (!self->has_qop || self->has_auth) && self->realm && self->nonce
         && is_quotable (self->realm) && is_quotable (self->nonce) && is_quotable (self->opaque);
}

// Finds the strongest challenge that can be answered and is not refused. Basic authentication is
// refused where a refused digest is offered beside it.
static void
find_best (const RtspAuth *self, const RtspMessage *answer, Challenge *best)
{
  const gchar *text;
  guint offered = 0;

  *best = (Challenge) { 0 };
  for (guint i = 0; (text = rtsp_message_get (answer, "WWW-Authenticate", i)); i++) {
    while (*(text = skip_blanks (text))) {
      Challenge each;

      text = read_challenge (text, &each);
      offered |= is_usable (&each) ? 1u << each.scheme : 0;
      if (is_usable (&each) && each.scheme > best->scheme && !(self->refused >> each.scheme & 1)) {
        challenge_clear (best);
        *best = each;
      } else {
        challenge_clear (&each);
      }
    }
  }
  if (best->scheme == RTSP_SCHEME_BASIC && self->refused & offered) {
    challenge_clear (best);
    *best = (Challenge) { 0 };
  }
}

// Reports whether a challenge repeats the one that was answered.
static gboolean
is_repeated (const RtspAuth *self, const Challenge *challenge, guint nth)
{
  if (!self->realm || self->scheme != challenge->scheme || challenge->stale)
    return FALSE;
  return challenge->scheme == RTSP_SCHEME_BASIC || nth >= 3
         || !g_strcmp0 (self->nonce, challenge->nonce);
}

gboolean
rtsp_auth_take (RtspAuth *self, const RtspMessage *answer, guint nth)
{
  guint refused = self->refused;
  Challenge best;

  find_best (self, answer, &best);
  if (is_repeated (self, &best, nth) && best.scheme != RTSP_SCHEME_BASIC) {
    self->refused |= 1u << best.scheme;
    challenge_clear (&best);
    find_best (self, answer, &best);
  }
  if (!best.scheme || !self->user || !self->password || is_repeated (self, &best, nth)) {
    challenge_clear (&best);
    self->refused = refused;
    return FALSE;
  }
  rtsp_auth_clear (self);
  self->scheme = best.scheme;
  self->realm = best.realm ? best.realm : g_strdup ("");
  self->nonce = best.nonce;
  self->opaque = best.opaque;
  if (best.has_auth)
    self->cnonce = g_strdup_printf ("%08x%08x", g_random_int (), g_random_int ());
  return TRUE;
}

// ---- answering ----

static gchar *
dup_basic (const RtspAuth *self)
{
  gchar *text = g_strdup_printf ("%s:%s", self->user, self->password);
  gchar *encoded = g_base64_encode ((const guchar *) text, strlen (text));
  gchar *header = g_strconcat ("Basic ", encoded, NULL);

  g_free (text);
  g_free (encoded);
  return header;
}

// Returns the hash of the arguments with colons between them, in hexadecimal. (transfer full)
static gchar *
dup_hash (GChecksumType type, const gchar *a, const gchar *b, const gchar *c)
{
  gchar *text = g_strjoin (":", a, b, c, NULL);
  gchar *hash = g_compute_checksum_for_string (type, text, -1);

  g_free (text);
  return hash;
}

gchar *
rtsp_auth_dup_header (RtspAuth *self, const gchar *method, const gchar *uri)
{
  gboolean sha256 = self->scheme == RTSP_SCHEME_SHA256;
  GChecksumType type = sha256 ? G_CHECKSUM_SHA256 : G_CHECKSUM_MD5;
  gchar *user, *request, *response, *nonce, *qop, *header;

  if (!self->realm)
    return NULL;
  if (self->scheme == RTSP_SCHEME_BASIC)
    return dup_basic (self);
  user = dup_hash (type, self->user, self->realm, self->password);
  request = dup_hash (type, method, uri, NULL);
  nonce = self->cnonce
              ? g_strdup_printf ("%s:%08x:%s:auth", self->nonce, ++self->n_answers, self->cnonce)
              : g_strdup (self->nonce);
  qop = self->cnonce
            ? g_strdup_printf (", qop=auth, nc=%08x, cnonce=\"%s\"", self->n_answers, self->cnonce)
            : g_strdup ("");
  response = dup_hash (type, user, nonce, request);
  header = g_strdup_printf (
      "Digest username=\"%s\", realm=\"%s\", nonce=\"%s\", uri=\"%s\", response=\"%s\"%s%s%s%s%s",
      self->user, self->realm, self->nonce, uri, response, sha256 ? ", algorithm=SHA-256" : "", qop,
      self->opaque ? ", opaque=\"" : "", self->opaque ? self->opaque : "",
      self->opaque ? "\"" : "");
  g_free (nonce);
  g_free (qop);
  g_free (user);
  g_free (request);
  g_free (response);
  return header;
}
