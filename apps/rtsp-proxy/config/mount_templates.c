// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_templates.h"

#include "config/mount_config.h"
#include "config/mount_keys.h"
#include "text/config_error.h"
#include "text/yaml_merge.h"

// ---- what the file says ----

// Checks the keys of defaults or of a template. What this machine lacks is said of each mount that
// has them.
static gboolean
check (YamlReader *reader, YamlNode *node, const gchar *name, GError **error)
{
  g_autoptr (MountConfig) scratch = mount_config_new ("/template");
  g_autoptr (GError) before = error && *error ? g_error_copy (*error) : NULL;
  const guint n_mistakes = yaml_n_mistakes (reader);
  YamlNode *nested = yaml_is_mapping (node) ? yaml_get (reader, node, "template") : NULL;
  g_autofree gchar *lack = NULL;

  if (nested)
    return yaml_fail (reader, nested, "template", CONFIG_ERROR_KEY, error,
        "only a mount names a template; YAML's merge key takes over the keys of another mapping: "
        "<<: *NAME");
  if (schema_read (mount_config_keys (), scratch, reader, node, name, SCHEMA_WHOLE, error))
    return TRUE;
  lack = yaml_forgive_absences (reader, n_mistakes);
  if (!lack)
    return FALSE;
  g_clear_error (error);
  if (before)
    g_propagate_error (error, g_steal_pointer (&before));
  return TRUE;
}

static gboolean
read_defaults (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  return yaml_expect_mapping (
             reader, node, key->name, "expected keys of a mount: {linger: 30s}", error)
         && check (reader, node, key->name, error);
}

static gboolean
read_templates (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  const gchar *expected = "expected names with keys of a mount: {NAME: {linger: 30s}}";
  YamlNode *name, *value;
  gboolean ok = TRUE;

  if (!yaml_expect_mapping (reader, node, key->name, expected, error))
    return FALSE;
  for (guint i = 0; yaml_pair (reader, node, i, &name, &value); i++) {
    const gchar *text = yaml_text (reader, name);

    if (!text)
      ok = yaml_fail (reader, name, key->name, CONFIG_ERROR_KEY, error, expected);
    else if (yaml_get (reader, node, text) != value)
      ok = yaml_fail_take (reader, name, key->name, CONFIG_ERROR_KEY, error,
          g_strdup_printf ("\"%s\" appears twice", text));
    else
      ok = check (reader, value, text, error) && ok;
  }
  return ok;
}

const SchemaValue mount_defaults_value = { .read = read_defaults };
const SchemaValue mount_templates_value = { .read = read_templates };

// ---- what a mount takes over ----

// Keys for the same: one that a mount has replaces the others.
static const gchar *const alike[][4] = {
  { "upstream", "upstreams", "inputs", NULL },
  { "password", "password-file", "password-env", NULL },
};

static gboolean
is_known (const gchar *key)
{
  for (const SchemaKey *row = mount_config_keys (); row->name; row++) {
    if (g_str_equal (row->name, key))
      return TRUE;
  }
  return FALSE;
}

static gboolean
takes (YamlReader *reader, const YamlNode *mount, const gchar *key)
{
  for (guint i = 0; i < G_N_ELEMENTS (alike); i++) {
    for (guint k = 0; g_strv_contains (alike[i], key) && alike[i][k]; k++) {
      if (yaml_get (reader, mount, alike[i][k]))
        return FALSE;
    }
  }
  return is_known (key); // read_defaults() and read_templates() report others
}

static gchar *
dup_unknown (YamlReader *reader, const YamlNode *templates, const gchar *name)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();
  g_auto (GStrv) names = NULL;
  g_autofree gchar *all = NULL;
  YamlNode *key, *value;

  for (guint i = 0; templates && yaml_pair (reader, templates, i, &key, &value); i++) {
    if (yaml_text (reader, key))
      g_strv_builder_add (builder, yaml_text (reader, key));
  }
  names = g_strv_builder_end (builder);
  all = g_strjoinv (", ", names);
  return g_strdup_printf ("there is no template \"%s\"; %s%s", name,
      *all ? "known: " : "add it under templates: {NAME: {KEY: ...}}", all);
}

// Returns a mapping of the root, or NULL.
static YamlNode *
get_mapping (YamlReader *reader, const gchar *key)
{
  YamlNode *found = yaml_get (reader, yaml_root (reader), key);

  return found && yaml_is_mapping (found) ? found : NULL;
}

gboolean
mount_templates_apply (YamlReader *reader, YamlNode *mount, GError **error)
{
  const YamlNode *templates = get_mapping (reader, "templates"), *others[3] = { NULL };
  YamlNode *named, *found = NULL;
  const gchar *name = NULL;
  guint n = 0;
  gboolean ok = TRUE;

  if (!yaml_is_mapping (mount))
    return TRUE; // mount_read() reports it
  named = yaml_get (reader, mount, "template");
  if (named)
    name = yaml_text (reader, named);
  if (name && templates)
    found = yaml_get (reader, templates, name);
  if (named && !name)
    ok = yaml_fail (
        reader, named, "template", CONFIG_ERROR_VALUE, error, "expected the name of a template");
  else if (named && !found)
    ok = yaml_fail_take (reader, named, "template", CONFIG_ERROR_VALUE, error,
        dup_unknown (reader, templates, name));
  if (found && yaml_is_mapping (found))
    others[n++] = found;
  others[n] = get_mapping (reader, "defaults");
  yaml_inherit (reader, mount, others, takes);
  return ok;
}
