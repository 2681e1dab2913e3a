// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/pull.h"

#include <string.h>

// Checks swarm:///DIR/.
gchar *
swarm_pull_check (const gchar *uri, PullUriFlags flags, PullConfig *config)
{
  gchar *file = g_strconcat ("file", uri + strlen ("swarm"), NULL);

  config->path = g_filename_from_uri (file, NULL, NULL);
  g_free (file);
  if (flags & PULL_URI_FROM_API)
    return g_strdup ("swarm upstreams are allowed in the configuration file only");
  if (!config->path || !g_str_has_suffix (uri, "/"))
    return g_strdup ("not the URI of a folder of torrents like swarm:///srv/torrents/");
  config->absent = !g_file_test (config->path, G_FILE_TEST_IS_DIR);
  if (config->absent)
    return g_strdup_printf ("no such folder: %s", config->path);
  config->titles = PULL_TITLES_SWARM;
  config->uri = g_strdup (uri);
  return NULL;
}
