// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/host_names.h"

#include <gio/gio.h>
#include <string.h>

#define NAME_MAX_BYTES 253 // RFC 1035

gchar *
host_names_check (SchemaText *it)
{
  const gchar *name = it->text;
  gsize len = strlen (name);
  gboolean ok = len > 0 && len <= NAME_MAX_BYTES && name[0] != '.';

  for (const gchar *c = name; ok && *c; c++)
    ok = g_ascii_isalnum (*c) || strchr ("-._", *c);
  return ok ? NULL
            : g_strdup_printf (
                  "\"%.64s\" is not a host name; write it without a port, like proxy.example.org",
                  name);
}

gchar *
host_names_check_origin (SchemaText *it)
{
  const gchar *origin = it->text;
  const gchar *host = g_str_has_prefix (origin, "http://")    ? origin + strlen ("http://")
                      : g_str_has_prefix (origin, "https://") ? origin + strlen ("https://")
                                                              : NULL;

  if (g_str_equal (origin, "*") || (host && *host && !strpbrk (host, "/?#@ ")))
    return NULL;
  return g_strdup_printf (
      "\"%.64s\" is not an origin; write it like https://www.example.org, without a path", origin);
}

// Returns the host of a header such as "localhost:9554" or "[::1]". (transfer full)
static gchar *
dup_name (const gchar *host)
{
  const gchar *end = host[0] == '[' ? strchr (host, ']') : NULL;

  if (end)
    return g_strndup (host + 1, (gsize) (end - host - 1));
  return g_strndup (host, strcspn (host, ":"));
}

// A browser connects to an address that a URL names, so a page with this address is the proxy's.
static gboolean
is_address (const gchar *name)
{
  g_autoptr (GInetAddress) address = g_inet_address_new_from_string (name);

  return address != NULL;
}

gboolean
host_names_take (gchar *const *names, const gchar *host)
{
  g_autofree gchar *name = NULL;
  gboolean ours;

  if (!host)
    return FALSE;
  name = dup_name (host);
  ours = is_address (name) || g_ascii_strcasecmp (name, "localhost") == 0
         || g_ascii_strcasecmp (name, g_get_host_name ()) == 0;
  for (; names && *names && !ours; names++)
    ours = g_ascii_strcasecmp (name, *names) == 0;
  return ours;
}
