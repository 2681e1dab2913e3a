// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The URLs of still pictures: /CAM/picture.jpg?width=640.

#include <glib.h>

#define PICTURE_SUFFIX "picture.jpg"
#define PICTURE_WIDTH_MIN 16
#define PICTURE_WIDTH_MAX 4096

// Returns the target of the mount, with what else the query has, or NULL if more follows the name.
// (transfer full)
gchar *picture_target_dup_mount (const gchar *target);

// Sets `width` to the wanted one, in pixels; 0: the picture's own. Returns FALSE if the query names
// another one than it may, or two.
gboolean picture_target_read_width (const gchar *target, guint *width);
