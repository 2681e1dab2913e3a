// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Regular expressions of MediaMTX, as far as paths with variables and patterns of permissions can
// say the same.

#include <glib.h>

// Returns the path of a mount, with variables, for an expression without its "~": "^live/(.+)$" is
// "/live/{g1*}". The variable of the group N is gN. Returns NULL if no such path exists.
// (transfer full)
gchar *mtx_pattern_dup_path (const gchar *expression);

// Returns the pattern of a permission: "^cam" is "/cam*". Returns NULL if no pattern means the
// same. (transfer full)
gchar *mtx_pattern_dup_permission (const gchar *expression);

// Puts {gN} in place of $GN in a URI. Returns NULL if a group is not a variable of `path`.
// (transfer full)
gchar *mtx_pattern_dup_source (const gchar *path, const gchar *uri);
