// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Where an element is to be had that is not here.

#include <glib.h>

typedef struct {
  const gchar *element; // a pattern
  const gchar *package; // Debian's; NULL: it is Weir's own
  const gchar *where;   // in words
} ElementHome;

// NULL if it isn't known.
const ElementHome *element_home_find (const gchar *element);
