// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/web_url.h"

#include <gio/gio.h>

gboolean
web_url_is (const gchar *text)
{
  return g_ascii_strncasecmp (text, "http://", 7) == 0
         || g_ascii_strncasecmp (text, "https://", 8) == 0;
}

gchar *
web_url_check (const gchar *text)
{
  g_autoptr (GUri) uri = g_uri_parse (text, G_URI_FLAGS_ENCODED, NULL);
  gchar *wrong = NULL;

  if (!uri || !web_url_is (text) || !g_uri_get_host (uri) || !*g_uri_get_host (uri))
    wrong = g_strdup ("expected a URL, such as https://auth.example.org/check");
  else if (g_uri_get_userinfo (uri))
    wrong = g_strdup ("the URL must not contain a user or a password");
  else if (g_uri_get_fragment (uri))
    wrong = g_strdup ("the URL must not contain a fragment (#...)");
  return wrong;
}

gboolean
web_url_is_exposed (const gchar *text)
{
  g_autoptr (GUri) uri = g_uri_parse (text, G_URI_FLAGS_ENCODED, NULL);
  const gchar *host = g_uri_get_host (uri);
  g_autoptr (GInetAddress) address = g_inet_address_new_from_string (host);
  gboolean local = address ? g_inet_address_get_is_loopback (address)
                           : g_ascii_strcasecmp (host, "localhost") == 0;

  return !local && g_str_equal (g_uri_get_scheme (uri), "http");
}
