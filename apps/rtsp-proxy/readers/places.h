// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The places of readers on each mount, which the key `max-readers` bounds. A reader has its place
// before it plays, so that readers that come at the same time are never too many. Call from any
// thread.

#include <glib.h>

// Takes a place on the mount with this path. Returns FALSE if `max` are taken; 0 is no limit. End
// with places_leave().
gboolean places_take (const gchar *mount, guint max);
void places_leave (const gchar *mount);
