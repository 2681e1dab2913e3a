// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/pull_uri.h"

#include <gio/gio.h>
#include <string.h>

GHashTable *
pull_uri_query (const gchar *uri)
{
  const gchar *query = strchr (uri, '?');

  return g_uri_parse_params (query ? query + 1 : "", -1, "&", G_URI_PARAMS_NONE, NULL);
}

gchar *
pull_uri_take (GHashTable *query, const gchar *name)
{
  gchar *value = g_strdup (g_hash_table_lookup (query, name));

  g_hash_table_remove (query, name);
  return value;
}

gchar *
pull_uri_finish (GHashTable *query, const gchar *known)
{
  GHashTableIter iter;
  gpointer name;

  g_hash_table_iter_init (&iter, query);
  if (!g_hash_table_iter_next (&iter, &name, NULL))
    return NULL;
  return g_strdup_printf ("unknown parameter \"%s\"; known parameter: %s", (gchar *) name, known);
}

gchar *
pull_uri_endpoint (const gchar *uri, GHashTable *query, gint last_port, PullEndpoint *endpoint)
{
  gchar *host = NULL, *path = NULL, *user = NULL;
  gint port = -1;
  gboolean ok = g_uri_split_with_user (
      uri, G_URI_FLAGS_NONE, NULL, &user, NULL, NULL, &host, &port, &path, NULL, NULL, NULL);
  gchar *wrong = NULL;

  if (ok && host && !*host) {
    g_free (host);
    host = g_strdup ("0.0.0.0");
  }
  if (!ok || !host || user || (path && *path && !g_str_equal (path, "/")))
    wrong = g_strdup ("not an address and a port like 239.1.2.3:5000 or [::]:5000");
  else if (!g_hostname_is_ip_address (host))
    wrong = g_strdup_printf ("\"%s\" is not an IP address", host);
  else if (port < 1 || port > last_port)
    wrong = g_strdup_printf ("the port must be from 1 to %d", last_port);
  endpoint->address = host;
  endpoint->port = (guint16) port;
  endpoint->iface = pull_uri_take (query, "iface");
  if (!wrong && endpoint->iface && !*endpoint->iface)
    wrong = g_strdup ("iface is empty");
  g_free (path);
  g_free (user);
  return wrong;
}
