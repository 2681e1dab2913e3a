// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What a configuration file may say in place of a value: the value of an environment variable, or
// pairs of another mapping.

#include "text/yaml_reader.h"

// Reads a file of the operator. Replaces ${NAME} in each value by the environment variable NAME,
// ${NAME:-TEXT} by TEXT where that variable is not set or empty, and $${ by ${. The result is one
// text, whatever is in it: it cannot change the structure of the file, and is no null. Keys stay as
// they are. Errors show the name of the variable in place of its value. Resolves merge keys
// (yaml_merge.h). Returns NULL and sets `error` if the file cannot be read or is not YAML, if a
// variable without a TEXT is not set, if ${ is not followed by a name and }, or if a merge key is
// wrong.
YamlReader *yaml_expand_file (const gchar *file, GError **error);

// Sets the value of `key` in the root mapping, in place of any value of the file. `origin` stands
// for the place of this value in errors. Call before nodes are in use. No effect without a root
// mapping.
void yaml_put_text (YamlReader *self, const gchar *key, const gchar *text, const gchar *origin);
