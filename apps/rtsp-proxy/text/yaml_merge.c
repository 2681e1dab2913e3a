// SPDX-License-Identifier: LGPL-2.1-or-later
#include "text/yaml_merge.h"

#include "text/config_error.h"
#include "text/yaml_reader_private.h"

#include <string.h>

#define ADDED_MAX 100000 // pairs that merge keys add to a document

// Removes the i-th pair of a mapping.
static void
remove_pair (YamlNode *mapping, guint i)
{
  yaml_node_pair_t *pair = mapping->data.mapping.pairs.start + i;
  const gsize n_behind = (gsize) (mapping->data.mapping.pairs.top - pair) - 1;

  memmove (pair, pair + 1, n_behind * sizeof *pair);
  mapping->data.mapping.pairs.top--;
}

static void
add_pair (YamlReader *self, YamlNode *mapping, const YamlNode *key, const YamlNode *value)
{
  yaml_document_append_mapping_pair (&self->document, yaml_number (self, mapping),
      yaml_number (self, key), yaml_number (self, value));
}

// Returns the texts of the keys of a mapping. The caller owns the table.
static GHashTable *
dup_keys (YamlReader *self, const YamlNode *mapping)
{
  GHashTable *keys = g_hash_table_new (g_str_hash, g_str_equal);
  YamlNode *key, *value;

  for (guint i = 0; yaml_pair (self, mapping, i, &key, &value); i++) {
    if (yaml_text (self, key))
      g_hash_table_add (keys, (gpointer) yaml_text (self, key));
  }
  return keys;
}

// ---- merge keys ----

typedef enum { MERGE_TO_DO, MERGE_BEGUN, MERGE_DONE } MergeState;

typedef struct {
  YamlReader *reader;
  guint8 *states; // MergeState of each node, by number
  guint n_added;
  GError **error;
} Merge;

static gboolean merge_mapping (Merge *self, YamlNode *mapping);

static gboolean
fail (Merge *self, const YamlNode *node, const gchar *text)
{
  return yaml_fail (self->reader, node, "<<", CONFIG_ERROR_YAML, self->error, text);
}

// Adds the pairs of `from`. `place` is where the merge key names it.
static gboolean
merge_from (Merge *self, YamlNode *mapping, GHashTable *keys, YamlNode *from, const YamlNode *place)
{
  YamlNode *key, *value;

  if (!yaml_is_mapping (from))
    return fail (self, place, "expected a mapping, or a list of mappings, such as *NAME");
  if (self->states[yaml_number (self->reader, from)] == MERGE_BEGUN)
    return fail (self, place, "this mapping takes over itself");
  if (!merge_mapping (self, from))
    return FALSE;
  for (guint i = 0; yaml_pair (self->reader, from, i, &key, &value); i++) {
    const gchar *text = yaml_text (self->reader, key);

    if (!text || !g_hash_table_add (keys, (gpointer) text))
      continue;
    if (++self->n_added > ADDED_MAX)
      return fail (self, place, "the merge keys of this file add more than 100000 pairs");
    add_pair (self->reader, mapping, key, value);
  }
  return TRUE;
}

static gboolean
merge_value (Merge *self, YamlNode *mapping, GHashTable *keys, YamlNode *value)
{
  YamlNode *item;
  gboolean ok = TRUE;

  if (!yaml_is_sequence (value))
    return merge_from (self, mapping, keys, value, value);
  for (guint i = 0; ok && (item = yaml_item (self->reader, value, i)); i++)
    ok = merge_from (self, mapping, keys, item, value);
  return ok;
}

static gboolean
is_merge_key (YamlReader *reader, const YamlNode *key)
{
  return !g_strcmp0 (yaml_text (reader, key), "<<")
         && key->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

// An alias stands behind its anchor, so that all mappings with lower numbers are done or contain
// this one: this goes no deeper than the file is nested.
static gboolean
merge_mapping (Merge *self, YamlNode *mapping)
{
  guint8 *state = &self->states[yaml_number (self->reader, mapping)];
  g_autoptr (GHashTable) keys = NULL;
  YamlNode *key, *value;
  gboolean ok = TRUE;

  if (*state != MERGE_TO_DO)
    return TRUE;
  *state = MERGE_BEGUN;
  for (guint i = 0; ok && yaml_pair (self->reader, mapping, i, &key, &value); i++) {
    if (!is_merge_key (self->reader, key))
      continue;
    if (keys)
      return fail (self, key, "appears twice; write <<: [*A, *B]");
    keys = dup_keys (self->reader, mapping);
    remove_pair (mapping, i--);
    ok = merge_value (self, mapping, keys, value);
  }
  *state = MERGE_DONE;
  return ok;
}

gboolean
yaml_merge (YamlReader *reader, GError **error)
{
  const int n = (int) (reader->document.nodes.top - reader->document.nodes.start);
  g_autofree guint8 *states = g_new0 (guint8, (gsize) n + 1);
  Merge self = { reader, states, 0, error };
  gboolean ok = TRUE;

  for (int i = 1; ok && i <= n; i++) {
    YamlNode *node = yaml_document_get_node (&reader->document, i);

    ok = !yaml_is_mapping (node) || merge_mapping (&self, node);
  }
  return ok;
}

// ---- other pairs ----

// Reports whether a pair goes.
typedef gboolean (*Goes) (const gchar *key, const YamlNode *value, gconstpointer data);

static void
remove_pairs (YamlReader *self, YamlNode *mapping, Goes goes, gconstpointer data)
{
  yaml_node_pair_t *kept = mapping->data.mapping.pairs.start;
  YamlNode *key, *value;

  for (guint i = 0; yaml_pair (self, mapping, i, &key, &value); i++) {
    if (!yaml_text (self, key) || !goes (yaml_text (self, key), value, data))
      *kept++ = mapping->data.mapping.pairs.start[i];
  }
  mapping->data.mapping.pairs.top = kept;
}

static gboolean
has_prefix (const gchar *key, const YamlNode *value, gconstpointer prefix)
{
  return g_str_has_prefix (key, prefix);
}

void
yaml_drop_keys (YamlReader *self, const gchar *prefix)
{
  YamlNode *root = yaml_root (self);

  if (root && yaml_is_mapping (root))
    remove_pairs (self, root, has_prefix, prefix);
}

static gboolean
is_offered_null (const gchar *key, const YamlNode *value, gconstpointer offered)
{
  return yaml_is_null (value) && g_hash_table_contains ((GHashTable *) offered, key);
}

void
yaml_inherit (YamlReader *self, YamlNode *mapping, const YamlNode *const *others, YamlTakes takes)
{
  g_autoptr (GHashTable) keys = NULL, offered = NULL;
  YamlNode *key, *value;

  if (!g_hash_table_add (self->heirs, mapping))
    return;
  keys = dup_keys (self, mapping);
  offered = g_hash_table_new (g_str_hash, g_str_equal);
  for (; *others; others++) {
    for (guint i = 0; yaml_pair (self, *others, i, &key, &value); i++) {
      const gchar *text = yaml_text (self, key);

      if (!text)
        continue;
      g_hash_table_add (offered, (gpointer) text);
      if (!g_hash_table_contains (keys, text) && takes (self, mapping, text))
        add_pair (self, mapping, key, value);
      g_hash_table_add (keys, (gpointer) text);
    }
  }
  remove_pairs (self, mapping, is_offered_null, offered);
}
