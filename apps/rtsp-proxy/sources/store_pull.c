// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/pull.h"

#include <string.h>

#include "base/file_roots.h"
#include "store/blockstore.h"

// Says what is wrong with a URI that has a host, or something else before the path: the first part
// of a relative path, such as in store://store/. `rest` is the URI behind store://; `host` may be
// NULL.
static gchar *
dup_problem (const gchar *rest, const gchar *host)
{
  g_autofree gchar *relative = g_uri_unescape_string (rest, NULL);
  g_autofree gchar *path = g_canonicalize_filename (relative ? relative : "", NULL);
  g_autofree gchar *file = g_build_filename (path, WEIR_STORE_FILE, NULL);
  g_autofree gchar *escaped =
      g_uri_escape_string (path, G_URI_RESERVED_CHARS_ALLOWED_IN_PATH, FALSE);

  if (*rest != '/' && g_file_test (file, G_FILE_TEST_EXISTS))
    return g_strdup_printf (
        "the path of a block store must be absolute; write store://%s/ for store://%s", escaped,
        rest);
  if (!host)
    return g_strdup ("not the URI of a block store like store:///srv/store/");
  return g_strdup_printf ("a block store is on this machine, but the URI has the host %s; write "
                          "store:///DIR/, with three slashes",
      host);
}

gchar *
store_pull_check (const gchar *uri, PullUriFlags flags, PullConfig *config)
{
  gchar *file = g_strconcat ("file", uri + strlen ("store"), NULL), *host = NULL;
  WeirBlockStore *store;
  GError *error = NULL;
  gchar *wrong;

  config->path = g_filename_from_uri (file, &host, NULL);
  g_free (file);
  wrong = host || !config->path ? dup_problem (uri + strlen ("store://"), host) : NULL;
  g_free (host);
  if (wrong)
    return wrong;
  config->titles = PULL_TITLES_BLOCK_STORE;
  config->uri = g_strdup (uri);
  config->is_limited = flags & PULL_URI_FROM_API;
  wrong = config->is_limited ? file_roots_check (config->path) : NULL;
  if (wrong)
    return wrong;
  // It is opened again with its first title; until then, nothing is kept of it.
  store = weir_block_store_open (config->path, &error);
  if (store) {
    weir_block_store_unref (store);
    return NULL;
  }
  config->absent = TRUE;
  wrong = g_strdup (error->message);
  g_error_free (error);
  return wrong;
}
