// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Values of the configuration that are lists of texts: [TEXT, ...].

#include "text/schema.h"

// Checks one text. Returns NULL, or an error message that the caller owns.
typedef gchar *(*TextListCheck) (const gchar *text);

// Reads a list into the GStrv at the key's offset, which loses what it had. Returns FALSE if
// anything is wrong. For use in SchemaValue.read().
gboolean text_list_read (const SchemaKey *key, gpointer object, TextListCheck check,
    YamlReader *reader, YamlNode *node, GError **error);

// SchemaValue.read() of a list of folders, which need not exist.
gboolean text_list_read_folders (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error);

// Both may be NULL.
gboolean text_list_equal (gchar *const *a, gchar *const *b);
