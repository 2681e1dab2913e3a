// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Tells which package installs a GStreamer element, for messages about missing elements.

#include <glib.h>

typedef struct {
  const gchar *element; // a pattern, with * and ?
  const gchar *package; // Debian's package; NULL for an element of Weir
  const gchar *where;   // a clause for a message
} ElementHome;

// Returns the first entry whose pattern matches `element`, or NULL.
const ElementHome *element_home_find (const gchar *element);
