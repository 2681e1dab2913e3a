// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A YAML document as libyaml reads it, with errors that name file, line, column and key. Whoever
// finds one can go on: an error that is set already gets the next one as a further line, by place.

#include <glib.h>
#include <yaml.h>

typedef struct _YamlReader YamlReader;
typedef yaml_node_t YamlNode;

// NULL and an error if the file can't be read or is no YAML.
YamlReader *yaml_reader_open (const gchar *file, GError **error);
// The same of a text in memory, which errors call `name`.
YamlReader *yaml_reader_new (const gchar *name, const gchar *text, gsize len, GError **error);
void yaml_reader_free (YamlReader *self);

// NULL for an empty document.
YamlNode *yaml_root (YamlReader *self);

gboolean yaml_is_mapping (const YamlNode *node);

gboolean yaml_is_sequence (const YamlNode *node);

// Written as null, ~ or nothing at all.
gboolean yaml_is_null (const YamlNode *node);

// The text of a scalar that is not empty; NULL for anything else.
const gchar *yaml_text (YamlReader *self, const YamlNode *node);

// The value of a key of a mapping, or NULL.
YamlNode *yaml_get (YamlReader *self, const YamlNode *mapping, const gchar *key);

// The i-th pair of a mapping; FALSE beyond its end.
gboolean yaml_pair (
    YamlReader *self, const YamlNode *mapping, guint i, YamlNode **key, YamlNode **value);

// The i-th item of a sequence; NULL beyond its end.
YamlNode *yaml_item (YamlReader *self, const YamlNode *sequence, guint i);

// Where it begins, from 1.
void yaml_place (const YamlNode *node, guint *line, guint *column);

// FALSE and errors unless `node` is a mapping whose keys are all in `keys` (NULL-terminated) and
// none of which is there twice. `name` names the mapping, or is NULL for the whole document.
// `renamed` is NULL, or pairs of the name that a key had before and its name (NULL-terminated).
gboolean yaml_check_keys (YamlReader *self, const YamlNode *node, const gchar *name,
    const gchar *const *keys, const gchar *const *renamed, GError **error);

// Of the keys of a mapping that begin with `prefix`, which say the same in several ways, only one
// can be there: else FALSE and the error `text`. One that is null is not there.
gboolean yaml_check_alternatives (YamlReader *self, const YamlNode *mapping, const gchar *prefix,
    const gchar *text, GError **error);

// Sets the error "FILE:LINE:COLUMN: key: text" and returns FALSE. `key` may be NULL.
gboolean yaml_fail (YamlReader *self, const YamlNode *node, const gchar *key, gint code,
    GError **error, const gchar *text);
gboolean yaml_fail_take (YamlReader *self, const YamlNode *node, const gchar *key, gint code,
    GError **error, gchar *text);
gboolean yaml_fail_place (YamlReader *self, guint line, guint column, const gchar *key, gint code,
    GError **error, gchar *text); // takes the text

// The same for what has been found elsewhere, which names its place itself. Takes it.
gboolean yaml_fail_error (
    YamlReader *self, const YamlNode *node, gint code, GError **error, GError *found);
