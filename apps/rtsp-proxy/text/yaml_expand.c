// SPDX-License-Identifier: LGPL-2.1-or-later
#include "text/yaml_expand.h"

#include "text/config_error.h"
#include "text/yaml_merge.h"
#include "text/yaml_reader_private.h"

#include <stdlib.h>
#include <string.h>

#define VALUE_MAX (64 << 10) // bytes of a value with its variables

// ---- one value ----

static gsize
get_name_len (const gchar *text)
{
  gsize len = 0;

  while (
      g_ascii_isalpha (text[len]) || text[len] == '_' || (len > 0 && g_ascii_isdigit (text[len])))
    len++;
  return len;
}

// Appends the value of the variable at `*text`, which begins after "${", and moves `*text` behind
// its }. Returns NULL, or an error message that the caller owns.
static gchar *
append_variable (YamlReader *self, GString *out, const gchar **text)
{
  const gsize len = get_name_len (*text);
  const gchar *rest = *text + len, *end = strchr (rest, '}'), *value;
  const gboolean has_preset = g_str_has_prefix (rest, ":-");
  g_autofree gchar *name = g_strndup (*text, len);

  if (len == 0 || !end || (end != rest && !has_preset)
      || g_strstr_len (rest, end - rest, "${")) // in TEXT
    return g_strdup ("expected ${NAME} or ${NAME:-TEXT}, the value of an environment variable; "
                     "write $${ for a ${ of the text itself");
  *text = end + 1;
  value = g_getenv (name);
  if (has_preset && (!value || !*value)) {
    g_string_append_len (out, rest + 2, end - rest - 2);
    return NULL;
  }
  if (!value)
    return g_strdup_printf ("the environment variable %s is not set; set it, or give a default: "
                            "${%s:-TEXT}",
        name, name);
  if (!g_utf8_validate (value, -1, NULL))
    return g_strdup_printf ("the environment variable %s is not text in UTF-8", name);
  g_string_append (out, value);
  g_hash_table_insert (self->variables, g_strdup (value), g_steal_pointer (&name));
  return NULL;
}

// Expands a text into `out`. Returns NULL, or an error message that the caller owns.
static gchar *
expand (YamlReader *self, const gchar *text, GString *out)
{
  gchar *wrong = NULL;
  const gchar *sign;

  while (!wrong && (sign = strstr (text, "${"))) {
    const gboolean is_quoted = sign > text && sign[-1] == '$';

    g_string_append_len (out, text, sign - text);
    text = sign + 2;
    if (is_quoted)
      g_string_append_c (out, '{');
    else
      wrong = append_variable (self, out, &text);
    if (!wrong && out->len > VALUE_MAX)
      wrong = g_strdup ("the value is longer than 64 KiB with its environment variables");
  }
  g_string_append (out, text);
  return wrong;
}

// ---- the document ----

static YamlNode *
get_node (YamlReader *self, int number)
{
  return yaml_document_get_node (&self->document, number);
}

// What is known about a node from those that contain it.
typedef struct {
  const gchar *key; // under which the value stands, or NULL
  gboolean is_key;
} Role;

// Parents have lower numbers than what they contain, but for aliases.
static Role *
find_roles (YamlReader *self, gsize n)
{
  Role *roles = g_new0 (Role, n + 1); // by number

  for (int i = 1; i <= (int) n; i++) {
    YamlNode *node = get_node (self, i), *key, *value;

    for (guint k = 0; yaml_is_mapping (node) && yaml_pair (self, node, k, &key, &value); k++) {
      roles[yaml_number (self, key)].is_key = TRUE;
      roles[yaml_number (self, value)].key = yaml_text (self, key);
    }
    for (guint k = 0; yaml_is_sequence (node) && (value = yaml_item (self, node, k)); k++)
      roles[yaml_number (self, value)].key = roles[i].key;
  }
  return roles;
}

static void
set_text (YamlNode *node, const gchar *text)
{
  free (node->data.scalar.value); // libyaml's memory is that of malloc()
  node->data.scalar.value = (yaml_char_t *) strdup (text);
  node->data.scalar.length = strlen (text);
  node->data.scalar.style = YAML_DOUBLE_QUOTED_SCALAR_STYLE; // never a null
}

static gboolean
expand_node (YamlReader *self, YamlNode *node, const gchar *key, GError **error)
{
  const gchar *text = yaml_text (self, node);
  g_autoptr (GString) expanded = g_string_new (NULL);
  gchar *wrong;

  if (!text || !strstr (text, "${"))
    return TRUE;
  wrong = expand (self, text, expanded);
  if (wrong)
    return yaml_fail_take (self, node, key, CONFIG_ERROR_VALUE, error, wrong);
  set_text (node, expanded->str);
  return TRUE;
}

static gboolean
expand_variables (YamlReader *self, GError **error)
{
  const gsize n = (gsize) (self->document.nodes.top - self->document.nodes.start);
  g_autofree Role *roles = find_roles (self, n);
  gboolean ok = TRUE;

  for (int i = 1; i <= (int) n; i++) {
    if (!roles[i].is_key)
      ok = expand_node (self, get_node (self, i), roles[i].key, error) && ok;
  }
  return ok;
}

YamlReader *
yaml_expand_file (const gchar *file, GError **error)
{
  YamlReader *self = yaml_reader_open (file, error);

  if (self && (!expand_variables (self, error) || !yaml_merge (self, error)))
    g_clear_pointer (&self, yaml_reader_free);
  return self;
}

void
yaml_put_text (YamlReader *self, const gchar *key, const gchar *text, const gchar *origin)
{
  YamlNode *root = yaml_root (self), *found;
  const int value = root && yaml_is_mapping (root)
                        ? yaml_document_add_scalar (&self->document, NULL,
                              (const yaml_char_t *) text, -1, YAML_DOUBLE_QUOTED_SCALAR_STYLE)
                        : 0;
  int name;

  if (!value)
    return;
  g_hash_table_insert (self->origins, GINT_TO_POINTER (value), g_strdup (origin));
  root = yaml_root (self); // the nodes may have moved
  for (yaml_node_pair_t *pair = root->data.mapping.pairs.start; pair < root->data.mapping.pairs.top;
      pair++) {
    found = get_node (self, pair->key);
    if (!g_strcmp0 (yaml_text (self, found), key)) {
      pair->value = value;
      return;
    }
  }
  name = yaml_document_add_scalar (
      &self->document, NULL, (const yaml_char_t *) key, -1, YAML_PLAIN_SCALAR_STYLE);
  yaml_document_append_mapping_pair (
      &self->document, yaml_number (self, yaml_root (self)), name, value);
}
