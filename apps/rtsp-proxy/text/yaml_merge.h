// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Mappings that get pairs of others. The values stay where they are written, which is what errors
// name.

#include "text/yaml_reader.h"

// Resolves YAML's merge keys: "<<: *a" and "<<: [*a, *b]" give a mapping the pairs whose keys it
// does not have, those of the first one before those of the next. Call before nodes are in use.
// Returns FALSE and sets `error` if a merge key has another value, or leads back to its own
// mapping.
gboolean yaml_merge (YamlReader *self, GError **error);

// Removes the pairs of the root mapping whose keys begin with `prefix`.
void yaml_drop_keys (YamlReader *self, const gchar *prefix);

// Reports whether a mapping takes over a pair with this key, which it does not have.
typedef gboolean (*YamlTakes) (YamlReader *self, const YamlNode *mapping, const gchar *key);

// Gives a mapping the pairs of others, NULL-terminated, whose keys it does not have and which it
// takes, those of the first one before those of the next. Its own pairs with the value null say
// that it has no such pair, and are removed if another mapping has one. Has no effect at a second
// time, such as for an alias.
void yaml_inherit (
    YamlReader *self, YamlNode *mapping, const YamlNode *const *others, YamlTakes takes);
