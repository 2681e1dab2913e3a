// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads YAML documents with libyaml. Errors name file, line, column and key. A caller may continue
// after an error: the next error is added to the same GError as another line, in the order of the
// file.

#include <glib.h>
#include <yaml.h>

typedef struct _YamlReader YamlReader;
typedef yaml_node_t YamlNode;

// Reads a file. Returns NULL and sets `error` if the file cannot be read or is not YAML.
YamlReader *yaml_reader_open (const gchar *file, GError **error);

// Reads a text in memory. `name` stands for the file in errors.
YamlReader *yaml_reader_new (const gchar *name, const gchar *text, gsize len, GError **error);
void yaml_reader_free (YamlReader *self);

// Returns the root node, or NULL if the document is empty.
YamlNode *yaml_root (YamlReader *self);

gboolean yaml_is_mapping (const YamlNode *node);

gboolean yaml_is_sequence (const YamlNode *node);

// Reports whether the value is written as null, as ~ or not at all.
gboolean yaml_is_null (const YamlNode *node);

// Reports whether the value is not written at all.
gboolean yaml_is_missing (const YamlNode *node);

// Returns the text of a scalar; NULL if it is empty or the node is not a scalar.
const gchar *yaml_text (YamlReader *self, const YamlNode *node);

// Returns the value of `key` in a mapping, or NULL.
YamlNode *yaml_get (YamlReader *self, const YamlNode *mapping, const gchar *key);

// Gets the i-th pair of a mapping. Returns FALSE beyond its end.
gboolean yaml_pair (
    YamlReader *self, const YamlNode *mapping, guint i, YamlNode **key, YamlNode **value);

// Returns the i-th item of a sequence, or NULL beyond its end.
YamlNode *yaml_item (YamlReader *self, const YamlNode *sequence, guint i);

// Gets the line and column, from 1, where the node begins.
void yaml_place (const YamlNode *node, guint *line, guint *column);

// Returns "FILE:LINE:COLUMN", where the node begins. (transfer full)
gchar *yaml_dup_place (YamlReader *self, const YamlNode *node);

// Checks that `node` is a mapping. Returns FALSE and sets the error `expected` otherwise, with what
// the person may have meant. `name` is the mapping's name for errors, or NULL.
gboolean yaml_expect_mapping (YamlReader *self, const YamlNode *node, const gchar *name,
    const gchar *expected, GError **error);

// Checks that `node` is a mapping, that all its keys are in `keys` (NULL-terminated), and that no
// key appears twice. Returns FALSE and sets `error` otherwise. `name` is the mapping's name for
// errors, or NULL for the whole document. `renamed` is NULL, or pairs of a former and a present
// name of a key (NULL-terminated).
gboolean yaml_check_keys (YamlReader *self, const YamlNode *node, const gchar *name,
    const gchar *const *keys, const gchar *const *renamed, GError **error);

// Checks that at most one key of a mapping begins with `prefix`: such keys set the same value. A
// key with the value null does not count. Otherwise returns FALSE and sets the error `text`.
gboolean yaml_check_alternatives (YamlReader *self, const YamlNode *mapping, const gchar *prefix,
    const gchar *text, GError **error);

// These set the error "FILE:LINE:COLUMN: key: text" and return FALSE. `key` may be NULL.
gboolean yaml_fail (YamlReader *self, const YamlNode *node, const gchar *key, gint code,
    GError **error, const gchar *text);
// Takes ownership of `text`.
gboolean yaml_fail_take (YamlReader *self, const YamlNode *node, const gchar *key, gint code,
    GError **error, gchar *text);
// Takes ownership of `text`. `line` and `column` count from 1.
gboolean yaml_fail_place (YamlReader *self, guint line, guint column, const gchar *key, gint code,
    GError **error, gchar *text);

// Notes that the value of a key is wrong, or that a mapping has a key which it must not have, and
// reports whether it is so.
void yaml_set_wrong (YamlReader *self, const YamlNode *node);
gboolean yaml_is_wrong (const YamlReader *self, const YamlNode *node);

// Returns the number of mistakes so far.
guint yaml_n_mistakes (const YamlReader *self);

// If each mistake after the first `n` is a CONFIG_ERROR_ABSENT, forgets them and returns their
// lines, joined by "; ". Otherwise returns NULL. The caller frees the error that names them.
// (transfer full)
gchar *yaml_forgive_absences (YamlReader *self, guint n);

// Adds the error `found`, whose message names its own place, at the position of `node`. Takes
// ownership of `found`. Returns FALSE.
gboolean yaml_fail_error (
    YamlReader *self, const YamlNode *node, gint code, GError **error, GError *found);
