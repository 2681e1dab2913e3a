// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/user.h"

#include <string.h>

void
permission_free (gpointer data)
{
  Permission *self = data;

  g_free (self->path);
  g_free (self->place);
  g_clear_pointer (&self->pattern, g_pattern_spec_free);
  g_free (self);
}

void
user_free (gpointer data)
{
  User *self = data;

  g_free (self->name);
  g_free (self->argon2);
  g_free (self->sha256);
  g_free (self->md5_digest);
  g_free (self->sha2_digest);
  g_ptr_array_unref (self->networks);
  g_ptr_array_unref (self->permissions);
  g_free (self);
}

static void
add_text (GChecksum *checksum, const gchar *text)
{
  // With the end of the text, so that "a", "b" differs from "ab", "".
  if (text)
    g_checksum_update (checksum, (const guchar *) text, (gssize) strlen (text) + 1);
  g_checksum_update (checksum, (const guchar *) "\n", 1);
}

void
user_add_to_checksum (const User *self, GChecksum *checksum)
{
  add_text (checksum, self->name);
  add_text (checksum, self->argon2);
  add_text (checksum, self->sha256);
  add_text (checksum, self->md5_digest);
  add_text (checksum, self->sha2_digest);
  for (guint i = 0; i < self->networks->len; i++) {
    g_autofree gchar *text = g_inet_address_mask_to_string (g_ptr_array_index (self->networks, i));

    add_text (checksum, text);
  }
  for (guint i = 0; i < self->permissions->len; i++) {
    const Permission *permission = g_ptr_array_index (self->permissions, i);

    add_text (checksum, access_action_words[permission->action]);
    add_text (checksum, permission->path);
  }
}

gboolean
user_has_secret (const User *self)
{
  return self->argon2 || self->sha256 || self->md5_digest || self->sha2_digest;
}

guint64
user_get_cost (const User *self)
{
  return self->argon2 ? (guint64) self->kib * self->passes : 0;
}

// ---- permissions ----

gboolean
user_has_action (const User *self, AccessAction action)
{
  for (guint i = 0; i < self->permissions->len; i++) {
    const Permission *permission = g_ptr_array_index (self->permissions, i);

    if (permission->action == action)
      return TRUE;
  }
  return FALSE;
}

gboolean
user_may_media (const User *self)
{
  return user_has_action (self, ACCESS_READ) || user_has_action (self, ACCESS_PLAYBACK)
         || user_has_action (self, ACCESS_PUBLISH);
}

gboolean
user_comes_from (const User *self, GInetAddress *address)
{
  if (self->networks->len == 0)
    return TRUE;
  for (guint i = 0; address && i < self->networks->len; i++) {
    if (g_inet_address_mask_matches (g_ptr_array_index (self->networks, i), address))
      return TRUE;
  }
  return FALSE;
}

gboolean
permission_covers (const Permission *self, const gchar *path)
{
  gsize len;

  if (!path)
    return FALSE;
  if (self->pattern)
    return g_pattern_spec_match_string (self->pattern, path);
  len = strlen (self->path);
  return strncmp (path, self->path, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

gboolean
user_may (const User *self, AccessAction action, const gchar *path, const gchar *mount)
{
  for (guint i = 0; i < self->permissions->len; i++) {
    const Permission *permission = g_ptr_array_index (self->permissions, i);

    if (permission->action == action
        && (!permission->path || permission_covers (permission, path)
            || permission_covers (permission, mount)))
      return TRUE;
  }
  return FALSE;
}
