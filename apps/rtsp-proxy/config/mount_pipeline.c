// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_pipeline.h"

#include "text/config_error.h"

#define STEPS_MAX 32
#define PARAMS_MAX 64

// ---- lists of stages ----

// Returns the list at the key's place in a mount.
static GPtrArray **
steps_at (const SchemaKey *key, gconstpointer mount)
{
  return (GPtrArray **) ((const gchar *) mount + key->offset);
}

static gboolean
read_params (const SchemaKey *key, const MountConfig *mount, MountStep *step, YamlReader *reader,
    YamlNode *node, GError **error)
{
  YamlNode *name, *value;

  if (!yaml_is_mapping (node))
    return schema_fail (
        reader, node, key, error, "expected parameters with values: {PARAMETER: VALUE}");
  for (guint i = 0; yaml_pair (reader, node, i, &name, &value); i++) {
    const gchar *param = yaml_text (reader, name), *text = yaml_text (reader, value);
    MountParam read = { (gchar *) param, (gchar *) text, 0, 0, mount->from_api };

    if (!param || !text)
      return schema_fail (reader, param ? value : name, key, error,
          param ? "expected a single value" : "expected the name of a parameter");
    if (i == PARAMS_MAX)
      return schema_fail (reader, name, key, error, "too many parameters: at most 64 are allowed");
    if (yaml_get (reader, node, param) != value)
      return yaml_fail_take (reader, name, key->name, CONFIG_ERROR_KEY, error,
          g_strdup_printf ("\"%s\" appears twice", param));
    yaml_place (value, &read.line, &read.column);
    mount_step_add (step, &read);
  }
  return TRUE;
}

// Reads a stage: NAME or {NAME: {PARAMETER: VALUE}}.
static gboolean
read_step (
    const SchemaKey *key, MountConfig *mount, YamlReader *reader, YamlNode *node, GError **error)
{
  YamlNode *name = node, *params = NULL, *other;
  guint line, column;
  MountStep *step;

  if (yaml_is_mapping (node)
      && (!yaml_pair (reader, node, 0, &name, &params)
          || yaml_pair (reader, node, 1, &other, &other)))
    name = NULL;
  if (!name || !yaml_text (reader, name))
    return schema_fail (
        reader, node, key, error, "expected a stage: NAME or {NAME: {PARAMETER: VALUE}}");
  yaml_place (name, &line, &column);
  step = mount_step_new (yaml_text (reader, name), line, column);
  g_ptr_array_add (*steps_at (key, mount), step);
  return !params || read_params (key, mount, step, reader, params, error);
}

static gboolean
read_steps (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  GPtrArray *steps = *steps_at (key, object);
  gboolean ok = TRUE;
  YamlNode *item;

  g_ptr_array_set_size (steps, 0);
  if (!yaml_is_sequence (node))
    return schema_fail (
        reader, node, key, error, "expected a list of stages, such as [pull, restamp]");
  for (guint i = 0; (item = yaml_item (reader, node, i)); i++) {
    if (i == STEPS_MAX)
      return schema_fail (reader, item, key, error, "too many stages: at most 32 are allowed");
    ok = read_step (key, object, reader, item, error) && ok;
  }
  return ok;
}

static gboolean
equal_steps (const SchemaKey *key, gconstpointer a, gconstpointer b)
{
  const GPtrArray *x = *steps_at (key, a), *y = *steps_at (key, b);

  if (x->len != y->len)
    return FALSE;
  for (guint i = 0; i < x->len; i++) {
    if (!mount_step_equal (g_ptr_array_index (x, i), g_ptr_array_index (y, i)))
      return FALSE;
  }
  return TRUE;
}

static gboolean
equal_pipelines (const SchemaKey *key, gconstpointer a, gconstpointer b)
{
  const MountConfig *from = a, *to = b;

  return equal_steps (key, a, b) && !g_strcmp0 (from->stage_files, to->stage_files);
}

static gboolean
equal_source_stages (const SchemaKey *key, gconstpointer a, gconstpointer b)
{
  const MountConfig *from = a, *to = b;

  return equal_steps (key, a, b) && !g_strcmp0 (from->source_files, to->source_files);
}

static void
write_steps (const SchemaKey *key, gconstpointer object, JsonBuilder *builder)
{
  const GPtrArray *steps = *steps_at (key, object);

  json_builder_set_member_name (builder, key->name);
  json_builder_begin_array (builder);
  for (guint i = 0; i < steps->len; i++) {
    const MountStep *step = g_ptr_array_index (steps, i);

    if (step->params->len == 0) {
      json_builder_add_string_value (builder, step->name);
      continue;
    }
    json_builder_begin_object (builder);
    json_builder_set_member_name (builder, step->name);
    json_builder_begin_object (builder);
    for (guint j = 0; j < step->params->len; j++) {
      const MountParam *param = g_ptr_array_index (step->params, j);

      json_builder_set_member_name (builder, param->name);
      json_builder_add_string_value (builder, param->value);
    }
    json_builder_end_object (builder);
    json_builder_end_object (builder);
  }
  json_builder_end_array (builder);
}

static void
clear_steps (const SchemaKey *key, gpointer object)
{
  g_clear_pointer (steps_at (key, object), g_ptr_array_unref);
}

static void
reset_steps (const SchemaKey *key, gpointer object)
{
  clear_steps (key, object);
  *steps_at (key, object) = g_ptr_array_new_with_free_func (mount_step_free);
}

static void
copy_steps (const SchemaKey *key, gpointer to, gconstpointer from)
{
  const GPtrArray *steps = *steps_at (key, from);

  for (guint i = 0; i < steps->len; i++)
    g_ptr_array_add (*steps_at (key, to), mount_step_copy (g_ptr_array_index (steps, i)));
}

const SchemaValue mount_pipeline_value = { read_steps, reset_steps, equal_pipelines, write_steps,
  copy_steps, clear_steps };
const SchemaValue mount_source_stages_value = { read_steps, reset_steps, equal_source_stages,
  write_steps, copy_steps, clear_steps };

// ---- choices ----

static gboolean
read_choice (const SchemaKey *key, MountConfig *mount, YamlReader *reader, YamlNode *stage,
    YamlNode *params, GError **error)
{
  const gchar *name = yaml_text (reader, stage);
  GPtrArray *names;
  YamlNode *item;

  if (!name || !yaml_is_sequence (params))
    return schema_fail (reader, name ? params : stage, key, error,
        "expected a stage with a list of parameters: STAGE: [PARAMETER, ...]");
  if (g_hash_table_contains (mount->choices, name))
    return yaml_fail_take (reader, stage, key->name, CONFIG_ERROR_KEY, error,
        g_strdup_printf ("\"%s\" appears twice", name));
  names = g_ptr_array_new ();
  for (guint i = 0; (item = yaml_item (reader, params, i)); i++) {
    const gchar *param = yaml_text (reader, item);

    if (!param) {
      g_ptr_array_set_free_func (names, g_free);
      g_ptr_array_unref (names);
      return schema_fail (reader, item, key, error, "expected the name of a parameter");
    }
    g_ptr_array_add (names, g_strdup (param));
  }
  g_ptr_array_add (names, NULL);
  g_hash_table_insert (mount->choices, g_strdup (name), g_ptr_array_free (names, FALSE));
  return TRUE;
}

static gboolean
read_choices (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  MountConfig *mount = object;
  YamlNode *stage, *params;
  gboolean ok = TRUE;

  g_hash_table_remove_all (mount->choices);
  if (!yaml_is_mapping (node))
    return schema_fail (reader, node, key, error,
        "expected stages with lists of parameters: {STAGE: [PARAMETER, ...]}");
  for (guint i = 0; yaml_pair (reader, node, i, &stage, &params); i++)
    ok = read_choice (key, mount, reader, stage, params, error) && ok;
  return ok;
}

static gboolean
equal_choices (const SchemaKey *key, gconstpointer a, gconstpointer b)
{
  GHashTable *x = ((const MountConfig *) a)->choices, *y = ((const MountConfig *) b)->choices;
  GHashTableIter iter;
  gpointer stage, params;

  if (g_hash_table_size (x) != g_hash_table_size (y))
    return FALSE;
  g_hash_table_iter_init (&iter, x);
  while (g_hash_table_iter_next (&iter, &stage, &params)) {
    gconstpointer others = g_hash_table_lookup (y, stage);

    if (!others || !g_strv_equal (params, others))
      return FALSE;
  }
  return TRUE;
}

static void
write_choices (const SchemaKey *key, gconstpointer object, JsonBuilder *builder)
{
  GHashTableIter iter;
  gpointer stage, params;

  json_builder_set_member_name (builder, "choices");
  json_builder_begin_object (builder);
  g_hash_table_iter_init (&iter, ((const MountConfig *) object)->choices);
  while (g_hash_table_iter_next (&iter, &stage, &params)) {
    json_builder_set_member_name (builder, stage);
    json_builder_begin_array (builder);
    for (gchar **param = params; *param; param++)
      json_builder_add_string_value (builder, *param);
    json_builder_end_array (builder);
  }
  json_builder_end_object (builder);
}

static void
clear_choices (const SchemaKey *key, gpointer object)
{
  g_clear_pointer (&((MountConfig *) object)->choices, g_hash_table_unref);
}

static void
reset_choices (const SchemaKey *key, gpointer object)
{
  clear_choices (key, object);
  ((MountConfig *) object)->choices =
      g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify) g_strfreev);
}

static void
copy_choices (const SchemaKey *key, gpointer to, gconstpointer from)
{
  GHashTableIter iter;
  gpointer stage, params;

  g_hash_table_iter_init (&iter, ((const MountConfig *) from)->choices);
  while (g_hash_table_iter_next (&iter, &stage, &params))
    g_hash_table_insert (((MountConfig *) to)->choices, g_strdup (stage), g_strdupv (params));
}

const SchemaValue mount_choices_value = { read_choices, reset_choices, equal_choices, write_choices,
  copy_choices, clear_choices };
