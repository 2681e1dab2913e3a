// SPDX-License-Identifier: LGPL-2.1-or-later
#include "yaml_reader.h"

#include "proxy_config.h"

#include <string.h>

struct _YamlReader {
  gchar *file;
  yaml_document_t document;
};

static gboolean
fail_at (YamlReader *self, yaml_mark_t mark, const gchar *key, gint code, GError **error,
    const gchar *text)
{
  g_set_error (error, PROXY_CONFIG_ERROR, code, "%s:%zu:%zu: %s%s%s", self->file, mark.line + 1,
      mark.column + 1, key ? key : "", key ? ": " : "", text);
  return FALSE;
}

gboolean
yaml_fail (YamlReader *self, const YamlNode *node, const gchar *key, gint code, GError **error,
    const gchar *text)
{
  return fail_at (self, node->start_mark, key, code, error, text);
}

gboolean
yaml_fail_take (YamlReader *self, const YamlNode *node, const gchar *key, gint code, GError **error,
    gchar *text)
{
  yaml_fail (self, node, key, code, error, text);
  g_free (text);
  return FALSE;
}

gboolean
yaml_fail_place (YamlReader *self, guint line, guint column, const gchar *key, gint code,
    GError **error, gchar *text)
{
  yaml_mark_t mark = { .line = line - 1, .column = column - 1 };

  fail_at (self, mark, key, code, error, text);
  g_free (text);
  return FALSE;
}

// libyaml gives no line for bytes that are no text, but where they are.
static yaml_mark_t
mark_of (const gchar *text, gsize offset)
{
  yaml_mark_t mark = { .index = offset };

  for (gsize i = 0; i < offset; i++) {
    mark.column = text[i] == '\n' ? 0 : mark.column + 1;
    mark.line += text[i] == '\n';
  }
  return mark;
}

YamlReader *
yaml_reader_new (const gchar *name, const gchar *text, gsize len, GError **error)
{
  YamlReader *self = g_new0 (YamlReader, 1);
  yaml_parser_t parser;
  gboolean ok;

  self->file = g_strdup (name);
  yaml_parser_initialize (&parser);
  yaml_parser_set_input_string (&parser, (const guchar *) text, len);
  ok = yaml_parser_load (&parser, &self->document) != 0;
  if (!ok && parser.error == YAML_READER_ERROR)
    parser.problem_mark = mark_of (text, MIN (len, parser.problem_offset));
  if (!ok)
    fail_at (self, parser.problem_mark, NULL, PROXY_CONFIG_ERROR_YAML, error,
        parser.problem ? parser.problem : "not YAML");
  yaml_parser_delete (&parser);
  if (!ok) {
    g_free (self->file);
    g_clear_pointer (&self, g_free);
  }
  return self;
}

YamlReader *
yaml_reader_open (const gchar *file, GError **error)
{
  YamlReader *self;
  GError *read_error = NULL;
  gchar *text = NULL;
  gsize len = 0;

  if (!g_file_get_contents (file, &text, &len, &read_error)) {
    g_set_error_literal (error, PROXY_CONFIG_ERROR, PROXY_CONFIG_ERROR_FILE, read_error->message);
    g_error_free (read_error);
    return NULL;
  }
  self = yaml_reader_new (file, text, len, error);
  g_free (text);
  return self;
}

void
yaml_reader_free (YamlReader *self)
{
  yaml_document_delete (&self->document);
  g_free (self->file);
  g_free (self);
}

YamlNode *
yaml_root (YamlReader *self)
{
  return yaml_document_get_root_node (&self->document);
}

gboolean
yaml_is_mapping (const YamlNode *node)
{
  return node->type == YAML_MAPPING_NODE;
}

gboolean
yaml_is_sequence (const YamlNode *node)
{
  return node->type == YAML_SEQUENCE_NODE;
}

gboolean
yaml_is_null (const YamlNode *node)
{
  const gchar *text = (const gchar *) node->data.scalar.value;

  return node->type == YAML_SCALAR_NODE && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE
         && (!*text || g_str_equal (text, "~") || g_str_equal (text, "null"));
}

void
yaml_place (const YamlNode *node, guint *line, guint *column)
{
  *line = (guint) node->start_mark.line + 1;
  *column = (guint) node->start_mark.column + 1;
}

const gchar *
yaml_text (YamlReader *self, const YamlNode *node)
{
  if (node->type != YAML_SCALAR_NODE || node->data.scalar.length == 0
      || memchr (node->data.scalar.value, 0, node->data.scalar.length))
    return NULL;
  return (const gchar *) node->data.scalar.value;
}

YamlNode *
yaml_item (YamlReader *self, const YamlNode *sequence, guint i)
{
  yaml_node_item_t *item = sequence->data.sequence.items.start + i;

  if (item >= sequence->data.sequence.items.top)
    return NULL;
  return yaml_document_get_node (&self->document, *item);
}

gboolean
yaml_pair (YamlReader *self, const YamlNode *mapping, guint i, YamlNode **key, YamlNode **value)
{
  yaml_node_pair_t *pair = mapping->data.mapping.pairs.start + i;

  if (pair >= mapping->data.mapping.pairs.top)
    return FALSE;
  *key = yaml_document_get_node (&self->document, pair->key);
  *value = yaml_document_get_node (&self->document, pair->value);
  return TRUE;
}

YamlNode *
yaml_get (YamlReader *self, const YamlNode *mapping, const gchar *name)
{
  YamlNode *key, *value;

  for (guint i = 0; yaml_pair (self, mapping, i, &key, &value); i++) {
    if (!g_strcmp0 (yaml_text (self, key), name))
      return value;
  }
  return NULL;
}

// The number of single-character edits between two keys (Levenshtein's distance).
static guint
distance (const gchar *a, const gchar *b)
{
  gsize len = strlen (b);
  guint *row = g_new (guint, len + 1);
  guint result;

  for (gsize j = 0; j <= len; j++)
    row[j] = (guint) j;
  for (gsize i = 0; a[i]; i++) {
    guint diagonal = row[0];

    row[0] = (guint) i + 1;
    for (gsize j = 0; j < len; j++) {
      guint change = diagonal + (a[i] != b[j]);

      diagonal = row[j + 1];
      row[j + 1] = MIN (change, MIN (row[j], row[j + 1]) + 1);
    }
  }
  result = row[len];
  g_free (row);
  return result;
}

static const gchar *
nearest (const gchar *key, const gchar *const *keys)
{
  const gchar *best = keys[0];

  for (guint i = 1; keys[i]; i++) {
    if (distance (key, keys[i]) < distance (key, best))
      best = keys[i];
  }
  return best;
}

gboolean
yaml_check_keys (YamlReader *self, const YamlNode *node, const gchar *name,
    const gchar *const *keys, GError **error)
{
  YamlNode *key, *value;

  if (!yaml_is_mapping (node))
    return yaml_fail (
        self, node, name, PROXY_CONFIG_ERROR_VALUE, error, "\"key: value\" lines belong here");
  for (guint i = 0; yaml_pair (self, node, i, &key, &value); i++) {
    const gchar *text = yaml_text (self, key);

    if (!text)
      return yaml_fail (self, key, name, PROXY_CONFIG_ERROR_KEY, error, "a key is missing here");
    if (strlen (text) > 64 || !g_strv_contains (keys, text))
      return yaml_fail_take (self, key, name, PROXY_CONFIG_ERROR_KEY, error,
          g_strdup_printf ("unknown key \"%.64s\"; the nearest known one is \"%s\"", text,
              strlen (text) > 64 ? keys[0] : nearest (text, keys)));
    if (yaml_get (self, node, text) != value)
      return yaml_fail_take (self, key, name, PROXY_CONFIG_ERROR_KEY, error,
          g_strdup_printf ("\"%s\" is there twice", text));
  }
  return TRUE;
}
