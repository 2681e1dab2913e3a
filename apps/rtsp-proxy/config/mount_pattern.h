// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Paths with variables, of which one mount of the file serves many: "/site/{site}/{cam}". {NAME}
// stands for one segment, and {NAME*} at the end for one or more. A variable has the characters of
// a path, and none of its segments begins with a dot. Immutable, and reference counted; call from
// any thread.

#include "config/mount_values.h"

// Reports whether this is the mount of a pattern in the file, which serves nothing itself.
gboolean mount_is_pattern (const MountConfig *self);

// Checks a host of the key `hosts`.
gchar *mount_pattern_check_host (SchemaText *it);

// Reports whether a path of the file is one of a pattern.
gboolean mount_pattern_is (const gchar *path);

// Returns NULL and sets `*wrong` to an error message that the caller owns if it is none.
MountPattern *mount_pattern_new (const gchar *path, gchar **wrong);
MountPattern *mount_pattern_ref (MountPattern *self);
void mount_pattern_unref (MountPattern *self);

const gchar *mount_pattern_get_path (const MountPattern *self);

// Sorts patterns that match the same path: the first has a segment without a variable where the
// other has one, or one for a single segment where the other has one for several.
gint mount_pattern_compare (const MountPattern *a, const MountPattern *b);

// Returns the number of segments before the first variable.
guint mount_pattern_count_fixed (const MountPattern *self);

// Matches a path. Returns NULL, or the values of the variables, by name. The caller owns the table.
GHashTable *mount_pattern_match (const MountPattern *self, const gchar *path);

// Returns values as of some path, to check what they are put into. The caller owns the table.
GHashTable *mount_pattern_dup_sample (const MountPattern *self);

// Checks a URI with {NAME} in it: the scheme, the user, the password and the port have no variable,
// and each variable is one of the pattern. Sets `*in_host` if the host has one. Returns NULL, or an
// error message that the caller owns.
gchar *mount_pattern_check_uri (const MountPattern *self, const gchar *uri, gboolean *in_host);

// Puts the values into a URI that was checked. (transfer full)
gchar *mount_pattern_expand (const gchar *uri, GHashTable *values);

// Returns the host of a URI, or "" if it has none. (transfer full)
gchar *mount_pattern_dup_host (const gchar *uri);
