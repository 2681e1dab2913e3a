// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/users_check.h"

#include <string.h>

// Reports whether the permission is for a mount, for mounts below its path, or for its titles.
static gboolean
is_served_by (const Permission *permission, const MountConfig *mount)
{
  gsize literal = strcspn (permission->path, "*"), len = strlen (mount->path);

  if (permission_covers (permission, mount->path))
    return TRUE;
  return (mount_config_get_titles (mount) || mount->lack) && literal > len
         && permission->path[len] == '/' && strncmp (permission->path, mount->path, len) == 0;
}

// Reports whether the permission could be for a mount of this path with variables: what stands
// before the first variable, and before the first *, is the same.
static gboolean
is_served_by_pattern (const Permission *permission, const MountConfig *pattern)
{
  const gsize n = MIN (strcspn (permission->path, "*"), strcspn (pattern->path, "{"));

  return strncmp (permission->path, pattern->path, n) == 0;
}

static gboolean
is_served (const Permission *permission, gpointer config)
{
  const GPtrArray *mounts = ((const ProxyConfig *) config)->mounts;
  const GPtrArray *patterns = ((const ProxyConfig *) config)->patterns;

  for (guint i = 0; i < mounts->len; i++) {
    if (is_served_by (permission, g_ptr_array_index (mounts, i)))
      return TRUE;
  }
  for (guint i = 0; i < patterns->len; i++) {
    if (is_served_by_pattern (permission, g_ptr_array_index (patterns, i)))
      return TRUE;
  }
  return FALSE;
}

// Reports whether a client for media can log in by basic authentication.
static gboolean
takes_passwords (const ProxyConfig *self)
{
  return self->basic || self->tls.pair || self->http.tls_in_front
         || (self->http.trusted_proxies && *self->http.trusted_proxies);
}

gboolean
users_check (const ProxyConfig *self, GError **error)
{
  return !self->users
         || (user_set_check_paths (self->users, is_served, (gpointer) self, error)
             && (takes_passwords (self) || user_set_check_logins (self->users, error)));
}
