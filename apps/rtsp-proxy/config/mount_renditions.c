// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_renditions.h"

#include "stages/choice.h"
#include "text/config_error.h"

static void
clear_renditions (gpointer object)
{
  g_clear_pointer (&((MountConfig *) object)->renditions, g_strfreev);
}

static void
reset_renditions (const SchemaKey *key, gpointer object)
{
  clear_renditions (object);
  ((MountConfig *) object)->renditions = g_new0 (gchar *, 1);
}

static gboolean
read_renditions (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  GStrvBuilder *queries;
  YamlNode *item;
  gboolean ok = TRUE;

  if (!yaml_is_sequence (node))
    return schema_fail (
        reader, node, key, error, "expected a list of queries: [\"size=640x360&rate=600k\", ...]");
  queries = g_strv_builder_new ();
  for (guint i = 0; ok && (item = yaml_item (reader, node, i)); i++) {
    const gchar *text = yaml_text (reader, item);

    if (!text || !*text)
      ok = yaml_fail (reader, item, key->name, CONFIG_ERROR_VALUE, error,
          "expected a query such as size=640x360&rate=600k");
    else if (i == MOUNT_RENDITIONS_MAX)
      ok = yaml_fail (reader, item, key->name, CONFIG_ERROR_VALUE, error,
          "too many renditions: at most 7 are allowed");
    else
      g_strv_builder_add (queries, text);
  }
  clear_renditions (object);
  ((MountConfig *) object)->renditions = g_strv_builder_end (queries);
  g_strv_builder_unref (queries);
  return ok;
}

static gboolean
equal_renditions (gconstpointer a, gconstpointer b)
{
  return g_strv_equal ((const gchar *const *) ((const MountConfig *) a)->renditions,
      (const gchar *const *) ((const MountConfig *) b)->renditions);
}

static void
write_renditions (gconstpointer object, JsonBuilder *builder)
{
  json_builder_set_member_name (builder, "renditions");
  json_builder_begin_array (builder);
  for (gchar **each = ((const MountConfig *) object)->renditions; *each; each++)
    json_builder_add_string_value (builder, *each);
  json_builder_end_array (builder);
}

static void
copy_renditions (gpointer to, gconstpointer from)
{
  clear_renditions (to);
  ((MountConfig *) to)->renditions = g_strdupv (((const MountConfig *) from)->renditions);
}

const SchemaValue mount_renditions_value = { read_renditions, reset_renditions, equal_renditions,
  write_renditions, copy_renditions, clear_renditions, NULL };

// ---- the stages ----

// Returns the key of the chain of a query, or NULL and an error. (transfer full)
static gchar *
dup_key (const MountConfig *config, const gchar *query, GError **error)
{
  GPtrArray *chain =
      choice_make_chain (config->stage_set, config->stages, config->choices, query, error);
  gchar *key = chain ? choice_dup_key (chain) : NULL;

  g_clear_pointer (&chain, g_ptr_array_unref);
  return key;
}

gchar *
mount_renditions_check (const MountConfig *config)
{
  GHashTable *known = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  GError *error = NULL;
  gchar *wrong = NULL, *own = dup_key (config, NULL, NULL);

  if (own)
    g_hash_table_add (known, own);
  if (*config->renditions && config->interval_ms > 0)
    wrong = g_strdup ("renditions: a mount with interval has none");
  else if (g_strv_length (config->renditions) > config->max_presentations)
    wrong = g_strdup_printf (
        "renditions: they need max-presentations: %u or more", g_strv_length (config->renditions));
  for (gchar **each = config->renditions; *each && !wrong; each++) {
    gchar *key = dup_key (config, *each, &error);

    if (!key)
      wrong = g_strdup_printf ("renditions: %s: %s", *each, error->message);
    else if (!g_hash_table_add (known, key))
      wrong = g_strdup_printf (
          "renditions: %s is the same as the mount's own stream or another rendition", *each);
    g_clear_error (&error);
  }
  g_hash_table_unref (known);
  return wrong;
}
