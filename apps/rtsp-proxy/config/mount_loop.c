// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_loop.h"

#include "sources/pull.h"

#include <gio/gio.h>
#include <string.h>

#define RTSP_PORT 554

typedef struct {
  GPtrArray *mounts;
  const ListenAddress *own; // where the proxy listens; ends with one without an address
  GHashTable *seen;         // visited paths
  GPtrArray *trail;         // paths from the first mount to this one
} Search;

static gboolean
is_this_host (const gchar *host, const gchar *address)
{
  g_autoptr (GInetAddress) inet = NULL, ours = NULL;

  if (g_ascii_strcasecmp (host, "localhost") == 0)
    host = "127.0.0.1";
  inet = g_inet_address_new_from_string (host);
  if (!inet)
    return FALSE;
  ours = g_inet_address_new_from_string (address);
  return g_inet_address_equal (inet, ours)
         || (g_inet_address_get_is_loopback (inet) && g_inet_address_get_is_any (ours));
}

static gboolean
is_own (const ListenAddress *own, const GUri *uri)
{
  const gchar *scheme = g_uri_get_scheme ((GUri *) uri), *host = g_uri_get_host ((GUri *) uri);
  gint port = g_uri_get_port ((GUri *) uri);

  if (!g_str_has_prefix (scheme, "rtsp") || !host)
    return FALSE;
  if (port < 0)
    port = RTSP_PORT; // GStreamer's default for rtsps:// too
  for (; own->address; own++) {
    if (own->port == port && own->port != 0 && is_this_host (host, own->address))
      return TRUE;
  }
  return FALSE;
}

// Returns the path of a URI that leads to this proxy, or NULL if it leads elsewhere.
static gchar *
dup_own_path (const Search *search, const gchar *text)
{
  g_autoptr (GUri) uri = g_uri_parse (text, G_URI_FLAGS_NONE, NULL);
  gchar *path = NULL;

  if (uri && is_own (search->own, uri)) {
    path = g_strdup (g_uri_get_path (uri));
    if (g_str_has_suffix (path, "/"))
      path[strlen (path) - 1] = '\0';
  }
  return path;
}

static const MountConfig *
find_path (const Search *search, const gchar *path)
{
  for (guint i = 0; i < search->mounts->len; i++) {
    const MountConfig *mount = g_ptr_array_index (search->mounts, i);

    if (g_str_equal (mount->path, path))
      return mount;
  }
  return NULL;
}

static gboolean leads_back (Search *search, const MountConfig *mount);

static gboolean
follow_path (Search *search, const gchar *path)
{
  const MountConfig *next = find_path (search, path);

  if (!next)
    return FALSE;
  if (g_str_equal (next->path, g_ptr_array_index (search->trail, 0)))
    return TRUE;
  return g_hash_table_add (search->seen, next->path) && leads_back (search, next);
}

static gboolean
follow (Search *search, const gchar *uri)
{
  g_autofree gchar *path = dup_own_path (search, uri);

  return path && follow_path (search, path);
}

static gboolean
leads_back (Search *search, const MountConfig *mount)
{
  g_ptr_array_add (search->trail, mount->path);
  for (guint i = 0; i < mount->pulls->len; i++) {
    if (follow (search, ((const PullConfig *) g_ptr_array_index (mount->pulls, i))->uri))
      return TRUE;
  }
  for (gchar **path = mount->inputs; *path; path++) {
    if (follow_path (search, *path))
      return TRUE;
  }
  g_ptr_array_set_size (search->trail, (gint) search->trail->len - 1);
  return FALSE;
}

gchar *
mount_loop_find (GPtrArray *mounts, const MountConfig *mount, const ListenAddress *own)
{
  Search search = { mounts, own, g_hash_table_new (g_str_hash, g_str_equal), g_ptr_array_new () };
  gchar *loop = NULL;

  if (leads_back (&search, mount)) {
    g_ptr_array_add (search.trail, mount->path);
    g_ptr_array_add (search.trail, NULL);
    loop = g_strjoinv (", ", (gchar **) search.trail->pdata);
  }
  g_hash_table_unref (search.seen);
  g_ptr_array_unref (search.trail);
  return loop;
}

gboolean
mount_loop_is_own (const MountConfig *mount, const ListenAddress *own)
{
  const Search search = { .own = own };

  for (guint i = 0; i < mount->pulls->len; i++) {
    const PullConfig *pull = g_ptr_array_index (mount->pulls, i);
    g_autofree gchar *path = dup_own_path (&search, pull->uri);

    if (path)
      return TRUE;
  }
  return FALSE;
}
