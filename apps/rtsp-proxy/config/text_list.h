// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Values of the configuration that are lists of texts: [TEXT, ...].

#include "text/schema.h"

// Checks one text. Returns NULL, or an error message that the caller owns.
typedef gchar *(*TextListCheck) (const gchar *text);

// Reads a list into `list`, which loses what it had. Returns FALSE if anything is wrong.
gboolean text_list_read (GStrv *list, const SchemaKey *key, TextListCheck check, YamlReader *reader,
    YamlNode *node, GError **error);

// Both may be NULL.
gboolean text_list_equal (gchar *const *a, gchar *const *b);
