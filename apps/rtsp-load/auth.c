// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "auth.h"

#include <string.h>

static const gchar *
find_param (const GstRTSPAuthCredential *credential, const gchar *name)
{
  for (GstRTSPAuthParam **param = credential->params; param && *param; param++) {
    if (g_ascii_strcasecmp ((*param)->name, name) == 0)
      return (*param)->value;
  }
  return NULL;
}

static gboolean
can_do (const GstRTSPAuthCredential *credential)
{
  const gchar *algorithm = find_param (credential, "algorithm");

  if (credential->scheme == GST_RTSP_AUTH_BASIC)
    return TRUE;
  return credential->scheme == GST_RTSP_AUTH_DIGEST && find_param (credential, "realm")
         && find_param (credential, "nonce")
         && (!algorithm || g_ascii_strcasecmp (algorithm, "md5") == 0);
}

static void
take (Auth *self, const GstRTSPAuthCredential *credential)
{
  auth_clear (self);
  self->method = credential->scheme;
  self->realm = g_strdup (find_param (credential, "realm"));
  self->nonce = g_strdup (find_param (credential, "nonce"));
  self->opaque = g_strdup (find_param (credential, "opaque"));
  self->algorithm = g_strdup (find_param (credential, "algorithm"));
}

gboolean
auth_take_challenge (Auth *self, GstRTSPMessage *answer)
{
  GstRTSPAuthCredential **all =
      gst_rtsp_message_parse_auth_credentials (answer, GST_RTSP_HDR_WWW_AUTHENTICATE);
  const GstRTSPAuthCredential *best = NULL;

  for (guint i = 0; all && all[i]; i++) {
    if (can_do (all[i]) && (!best || all[i]->scheme == GST_RTSP_AUTH_DIGEST))
      best = all[i];
  }
  if (best)
    take (self, best);
  if (all)
    gst_rtsp_auth_credentials_free (all);
  return best != NULL;
}

static gchar *
basic (const gchar *user, const gchar *password)
{
  gchar *pair = g_strconcat (user, ":", password, NULL);
  gchar *code = g_base64_encode ((const guchar *) pair, strlen (pair));
  gchar *line = g_strdup_printf ("Authorization: Basic %s\r\n", code);

  g_free (pair);
  g_free (code);
  return line;
}

static gchar *
digest (const Auth *self, const gchar *method, const gchar *uri, const gchar *user,
    const gchar *password)
{
  gchar *response = gst_rtsp_generate_digest_auth_response (
      NULL, method, self->realm, user, password, uri, self->nonce);
  GString *line = g_string_new (NULL);

  g_string_printf (line,
      "Authorization: Digest username=\"%s\", realm=\"%s\", nonce=\"%s\", uri=\"%s\", "
      "response=\"%s\"",
      user, self->realm, self->nonce, uri, response);
  if (self->algorithm)
    g_string_append_printf (line, ", algorithm=%s", self->algorithm);
  if (self->opaque)
    g_string_append_printf (line, ", opaque=\"%s\"", self->opaque);
  g_string_append (line, "\r\n");
  g_free (response);
  return g_string_free (line, FALSE);
}

gchar *
auth_header (const Auth *self, const gchar *method, const gchar *uri, const gchar *user,
    const gchar *password)
{
  switch (self->method) {
    case GST_RTSP_AUTH_BASIC:
      return basic (user, password);
    case GST_RTSP_AUTH_DIGEST:
      return digest (self, method, uri, user, password);
    default:
      return NULL;
  }
}

void
auth_clear (Auth *self)
{
  g_free (self->realm);
  g_free (self->nonce);
  g_free (self->algorithm);
  g_free (self->opaque);
  *self = (Auth) { 0 };
}
