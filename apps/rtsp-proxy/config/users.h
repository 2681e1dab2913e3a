// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The users of the configuration. A set does not change after it was read, so any thread may use
// it.

#include "config/user.h"
#include "text/yaml_reader.h"

typedef struct {
  gatomicrefcount refs;
  GPtrArray *users;    // of User
  GHashTable *by_name; // without `any`
  GChecksum *checksum; // of all that was read, while it is read
} UserSet;

UserSet *user_set_new (void);
UserSet *user_set_ref (UserSet *self);
void user_set_unref (UserSet *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (UserSet, user_set_unref)

// Reads a list of users. Returns FALSE and sets `error` if anything is wrong.
gboolean user_set_read (UserSet *self, YamlReader *reader, YamlNode *list, GError **error);

// Reads a file that is a list of users. `node` is the value that names the file, for errors.
gboolean user_set_read_file (
    UserSet *self, const gchar *file, YamlReader *reader, YamlNode *node, GError **error);

// Returns the user whose password costs most to check, or NULL if nobody has an argon2id hash.
const User *user_set_get_costliest (const UserSet *self);

// Reports whether two sets are the same, with the same secrets.
gboolean user_set_equal (const UserSet *a, const UserSet *b);

// Reports whether a user, other than `any` if `named` is TRUE, has a permission for `action`.
gboolean user_set_has_action (const UserSet *self, AccessAction action, gboolean named);

// Checks that nobody needs basic authentication for media, for a proxy that takes no passwords for
// media. Returns FALSE and sets `error` to the place of the first user who could do nothing.
gboolean user_set_check_logins (const UserSet *self, GError **error);

// Checks that each path of a permission is that of a mount, or of what a mount may serve. `serves`
// reports that for a path. Returns FALSE and sets `error` to the place of the first other one.
typedef gboolean (*UserPathFunc) (const Permission *permission, gpointer data);
gboolean user_set_check_paths (
    const UserSet *self, UserPathFunc serves, gpointer data, GError **error);
