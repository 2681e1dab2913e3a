// SPDX-License-Identifier: LGPL-2.1-or-later
#include "control/api_guard.h"

#include "config/proxy_config.h"

#include <string.h>

// Compares two texts of the same length, in a time that does not depend on where they differ.
static gboolean
is_same (const gchar *a, const gchar *b)
{
  guint8 differ = 0;

  for (gsize i = 0; a[i]; i++)
    differ |= (guint8) a[i] ^ (guint8) b[i];
  return differ == 0;
}

static gboolean
has_token (Api *self, SoupMessageHeaders *headers)
{
  const gchar *given = soup_message_headers_get_one (headers, "Authorization");
  gchar *a, *b;
  gboolean same;

  if (!given || g_ascii_strncasecmp (given, "Bearer ", 7) != 0)
    return FALSE;
  // The checksums have the same length for every token that a client sends.
  a = g_compute_checksum_for_string (G_CHECKSUM_SHA256, self->token, -1);
  b = g_compute_checksum_for_string (G_CHECKSUM_SHA256, given + 7, -1);
  same = is_same (a, b);
  g_free (a);
  g_free (b);
  return same;
}

// Returns the host of a header such as "localhost:9554" or "[::1]". (transfer full)
static gchar *
dup_host_name (const gchar *host)
{
  const gchar *end = host[0] == '[' ? strchr (host, ']') : NULL;

  if (end)
    return g_strndup (host + 1, (gsize) (end - host - 1));
  return g_strndup (host, strcspn (host, ":"));
}

// Reports whether the Host header names this machine. Any other name may be one that a web page
// made to resolve to loopback (DNS rebinding).
static gboolean
is_our_host (Api *self, SoupMessageHeaders *headers)
{
  const gchar *host = soup_message_headers_get_one (headers, "Host");
  gchar *name;
  gboolean ours;

  if (!proxy_config_is_loopback (self->address))
    return TRUE; // the token protects it
  if (!host)
    return FALSE;
  name = dup_host_name (host);
  ours = g_ascii_strcasecmp (name, "localhost") == 0 || g_str_equal (name, "127.0.0.1")
         || g_str_equal (name, "::1") || g_str_equal (name, self->address);
  g_free (name);
  return ours;
}

// Reports whether the Origin header, which browsers send, is missing or names the API itself.
static gboolean
is_our_page (Api *self, SoupMessageHeaders *headers)
{
  const gchar *scheme = self->tls ? "https://" : "http://";
  const gchar *origin = soup_message_headers_get_one (headers, "Origin");
  const gchar *host = soup_message_headers_get_one (headers, "Host");

  return !origin
         || (g_str_has_prefix (origin, scheme) && host
             && g_str_equal (origin + strlen (scheme), host));
}

gboolean
api_guard_admit (Api *api, SoupServerMessage *message)
{
  SoupMessageHeaders *headers = soup_server_message_get_request_headers (message);

  if (!is_our_host (api, headers)) {
    api_fail (message, SOUP_STATUS_FORBIDDEN, "Host", "must be localhost, a loopback address or %s",
        api->address);
    return FALSE;
  }
  if (!is_our_page (api, headers)) {
    api_fail (
        message, SOUP_STATUS_FORBIDDEN, "Origin", "web pages of other sites may not use the API");
    return FALSE;
  }
  if (api->token && !has_token (api, headers)) {
    api_fail (message, SOUP_STATUS_UNAUTHORIZED, NULL,
        "the token is missing or wrong; send Authorization: Bearer TOKEN");
    soup_message_headers_replace (
        soup_server_message_get_response_headers (message), "WWW-Authenticate", "Bearer");
    return FALSE;
  }
  return TRUE;
}
