// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A result of plain numbers.

#include <glib.h>

typedef struct {
  const gchar *name, *key; // in the table, and in the JSON object
  gdouble value;
} Line;

void lines_print (const Line *lines, guint n, gboolean json);
