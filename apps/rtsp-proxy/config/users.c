// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/users.h"

#include "config/user_read.h"
#include "text/config_error.h"
#include "text/yaml_expand.h"

#include <string.h>

// ---- construction ----

UserSet *
user_set_new (void)
{
  UserSet *self = g_new0 (UserSet, 1);

  g_atomic_ref_count_init (&self->refs);
  self->users = g_ptr_array_new_with_free_func (user_free);
  self->by_name = g_hash_table_new (g_str_hash, g_str_equal);
  self->checksum = g_checksum_new (G_CHECKSUM_SHA256);
  return self;
}

UserSet *
user_set_ref (UserSet *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
user_set_unref (UserSet *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_hash_table_unref (self->by_name);
  g_ptr_array_unref (self->users);
  g_checksum_free (self->checksum);
  g_free (self);
}

static gboolean
add_user (UserSet *self, User *user, YamlReader *reader, YamlNode *node, GError **error)
{
  g_ptr_array_add (self->users, user);
  if (user->is_any)
    return TRUE;
  if (g_hash_table_contains (self->by_name, user->name))
    return yaml_fail_take (reader, node, "users", CONFIG_ERROR_VALUE, error,
        g_strdup_printf ("the user \"%s\" appears twice", user->name));
  g_hash_table_insert (self->by_name, user->name, user);
  return TRUE;
}

gboolean
user_set_read (UserSet *self, YamlReader *reader, YamlNode *list, GError **error)
{
  gboolean ok = TRUE;
  YamlNode *node;
  User *user;

  if (!yaml_is_sequence (list))
    return yaml_fail (reader, list, "users", CONFIG_ERROR_VALUE, error,
        "expected a list of users: [{name: NAME, ...}]");
  for (guint i = 0; (node = yaml_item (reader, list, i)); i++) {
    user = user_read (reader, node, error);
    ok = user && add_user (self, user, reader, node, error) && ok;
    if (user)
      user_add_to_checksum (user, self->checksum);
  }
  return ok;
}

// Adds each line of `found`, which names places of another file, at the place of `node`.
static gboolean
add_errors (YamlReader *reader, YamlNode *node, GError **error, GError *found)
{
  g_auto (GStrv) lines = g_strsplit (found->message, "\n", 0);

  for (gchar **line = lines; *line; line++)
    yaml_fail_error (reader, node, CONFIG_ERROR_FILE, error,
        g_error_new_literal (CONFIG_ERROR, found->code, *line));
  g_error_free (found);
  return FALSE;
}

gboolean
user_set_read_file (
    UserSet *self, const gchar *file, YamlReader *reader, YamlNode *node, GError **error)
{
  gchar *wrong = user_check_secret_file (file);
  YamlReader *users;
  GError *found = NULL;
  gboolean ok;

  if (wrong)
    return yaml_fail_take (reader, node, "users-file", CONFIG_ERROR_VALUE, error, wrong);
  users = yaml_expand_file (file, &found);
  if (!users)
    return add_errors (reader, node, error, found);
  ok = yaml_root (users) && user_set_read (self, users, yaml_root (users), &found);
  if (!yaml_root (users))
    g_set_error (&found, CONFIG_ERROR, CONFIG_ERROR_VALUE, "%s: the file has no users", file);
  yaml_reader_free (users);
  return ok || add_errors (reader, node, error, found);
}

const User *
user_set_get_costliest (const UserSet *self)
{
  const User *costliest = NULL;

  for (guint i = 0; i < self->users->len; i++) {
    const User *user = g_ptr_array_index (self->users, i);

    if (user_get_cost (user) > (costliest ? user_get_cost (costliest) : 0))
      costliest = user;
  }
  return costliest;
}

gboolean
user_set_equal (const UserSet *a, const UserSet *b)
{
  // g_checksum_get_string() ends a checksum, so it gets a copy.
  GChecksum *x = g_checksum_copy (a->checksum), *y = g_checksum_copy (b->checksum);
  gboolean equal = a->users->len == b->users->len
                   && g_str_equal (g_checksum_get_string (x), g_checksum_get_string (y));

  g_checksum_free (x);
  g_checksum_free (y);
  return equal;
}

// ---- permissions ----

gboolean
user_set_has_action (const UserSet *self, AccessAction action, gboolean named)
{
  for (guint i = 0; i < self->users->len; i++) {
    const User *user = g_ptr_array_index (self->users, i);

    if (!(named && user->is_any) && user_has_action (user, action))
      return TRUE;
  }
  return FALSE;
}

gboolean
user_set_check_paths (const UserSet *self, UserPathFunc serves, gpointer data, GError **error)
{
  for (guint i = 0; i < self->users->len; i++) {
    const User *user = g_ptr_array_index (self->users, i);

    for (guint j = 0; j < user->permissions->len; j++) {
      const Permission *permission = g_ptr_array_index (user->permissions, j);

      if (!permission->path || serves (permission, data))
        continue;
      g_set_error (error, CONFIG_ERROR, CONFIG_ERROR_VALUE,
          "%s: path: no mount serves \"%s\"; the user \"%s\" could do nothing with this permission",
          permission->place, permission->path, user->name);
      return FALSE;
    }
  }
  return TRUE;
}

gboolean
user_set_check_logins (const UserSet *self, GError **error)
{
  for (guint i = 0; i < self->users->len; i++) {
    const User *user = g_ptr_array_index (self->users, i);

    if (user->is_any || user->md5_digest || user->sha2_digest || !user_may_media (user)
        || user_has_action (user, ACCESS_API) || user_has_action (user, ACCESS_METRICS))
      continue;
    g_set_error (error, CONFIG_ERROR, CONFIG_ERROR_VALUE,
        "%s: users: the user \"%s\" can never log in: a hash needs basic authentication, which is "
        "taken over TLS only; add digest (rtsp-proxy hash-password --user %s prints it), or set "
        "tls, "
        "or basic-without-tls: yes",
        ((const Permission *) g_ptr_array_index (user->permissions, 0))->place, user->name,
        user->name);
    return FALSE;
  }
  return TRUE;
}
