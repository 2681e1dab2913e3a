// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/variables.h"

#include "text/yaml_expand.h"

// Returns the name of the variable for a key, or NULL if there is none. (transfer full)
static gchar *
dup_name (const SchemaKey *key)
{
  gchar *name;

  if (!schema_is_text (key))
    return NULL;
  name = g_strconcat ("WEIR_", key->name, NULL);
  for (gchar *c = name; *c; c++)
    *c = *c == '-' ? '_' : g_ascii_toupper (*c);
  return name;
}

void
variables_apply (YamlReader *reader, const SchemaKey *keys)
{
  for (const SchemaKey *key = keys; key->name; key++) {
    g_autofree gchar *name = dup_name (key);
    const gchar *value = name ? g_getenv (name) : NULL;

    if (value && *value)
      yaml_put_text (reader, key->name, value, name);
  }
}

gchar *
variables_to_markdown (const SchemaKey *keys)
{
  GString *out = g_string_new ("| variable | key |\n|---|---|\n");

  for (const SchemaKey *key = keys; key->name; key++) {
    g_autofree gchar *name = dup_name (key);

    if (name)
      g_string_append_printf (out, "| `%s` | `%s` |\n", name, key->name);
  }
  return g_string_free (out, FALSE);
}

gchar *
variables_to_help (const SchemaKey *keys)
{
  GString *out =
      g_string_new ("\nVariables of the environment, each in place of a key of the file:\n");

  for (const SchemaKey *key = keys; key->name; key++) {
    g_autofree gchar *name = dup_name (key);

    if (name)
      g_string_append_printf (out, "  %s\n", name);
  }
  return g_string_free (out, FALSE);
}
