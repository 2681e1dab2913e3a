// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/features.h"
#include "sources/pull.h"

#include <string.h>

static gboolean
names_folder (const gchar *uri)
{
  gsize len = strcspn (uri, "?#");

  return len > 0 && uri[len - 1] == '/';
}

static gchar *
check_folder (const gchar *uri, PullUriFlags flags, PullConfig *config)
{
  GUri *parsed = g_uri_parse (uri, G_URI_FLAGS_ENCODED | G_URI_FLAGS_PARSE_RELAXED, NULL);
  const gchar *wrong = NULL;

  if (flags & PULL_URI_FROM_API)
    wrong = "http and https upstreams are allowed in the configuration file only";
  else if (!parsed || !g_uri_get_host (parsed) || !*g_uri_get_host (parsed))
    wrong = "not a URL like https://host/bucket/";
  else if (g_uri_get_userinfo (parsed))
    wrong = "the URL must not contain a user or a password; set user and password, or keys-file";
  else if (g_uri_get_query (parsed) || g_uri_get_fragment (parsed))
    wrong = "the URL must not contain a query (?...) or a fragment (#...)";
  g_clear_pointer (&parsed, g_uri_unref);
  if (wrong)
    return g_strdup (wrong);
  config->uri = g_strdup (uri);
  config->path = g_strdup (uri);
  config->titles = PULL_TITLES_ORIGIN;
  return NULL;
}

// Checks https://HOST[:PORT]/PATH/, or the same with http. Without the last slash, it is a stream.
gchar *
origin_pull_check (const gchar *uri, PullUriFlags flags, PullConfig *config)
{
  const gchar *lack = feature_get_lack (FEATURE_STORE);

  if (!names_folder (uri))
    return http_pull_check (uri, flags, config);
  return lack ? g_strdup (lack) : check_folder (uri, flags, config);
}
