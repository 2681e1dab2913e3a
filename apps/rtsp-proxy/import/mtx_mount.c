// SPDX-License-Identifier: LGPL-2.1-or-later
#include "import/mtx_mount.h"

#include "import/weir_text.h"

MtxMount *
mtx_mount_new (const gchar *path)
{
  MtxMount *self = g_new0 (MtxMount, 1);

  self->path = g_strdup (path);
  self->keys = g_ptr_array_new ();
  self->values = g_ptr_array_new_with_free_func (g_free);
  return self;
}

void
mtx_mount_free (MtxMount *self)
{
  g_ptr_array_unref (self->keys);
  g_ptr_array_unref (self->values);
  g_free (self->path);
  g_free (self);
}

void
mtx_mount_take (MtxMount *self, const gchar *key, gchar *yaml)
{
  g_ptr_array_add (self->keys, (gpointer) key);
  g_ptr_array_add (self->values, yaml);
}

void
mtx_mount_set (MtxMount *self, const gchar *key, const gchar *text)
{
  GString *yaml = g_string_new (NULL);

  weir_text_append (yaml, text);
  mtx_mount_take (self, key, g_string_free (yaml, FALSE));
}

static const gchar *
get_value (const MtxMount *self, const gchar *key)
{
  for (guint i = 0; i < self->keys->len; i++) {
    if (g_str_equal (g_ptr_array_index (self->keys, i), key))
      return g_ptr_array_index (self->values, i);
  }
  return NULL;
}

// Returns key -> value for all pairs that more than half of the mounts have. The caller owns the
// table; keys and values belong to the mounts.
static GHashTable *
find_common (const GPtrArray *mounts)
{
  GHashTable *common = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GHashTable) counts = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);

  for (guint i = 0; i < mounts->len; i++) {
    const MtxMount *mount = g_ptr_array_index (mounts, i);

    for (guint k = 0; k < mount->keys->len; k++) {
      const gchar *key = g_ptr_array_index (mount->keys, k);
      gpointer value = g_ptr_array_index (mount->values, k);
      gchar *pair = g_strdup_printf ("%s: %s", key, (const gchar *) value);
      const guint n = GPOINTER_TO_UINT (g_hash_table_lookup (counts, pair)) + 1;

      g_hash_table_insert (counts, pair, GUINT_TO_POINTER (n));
      if (n > 1 && n > mounts->len / 2 && !g_str_equal (key, "upstream"))
        g_hash_table_insert (common, (gpointer) key, value);
    }
  }
  return common;
}

static void
append_pair (GString *out, gsize begin, const gchar *key, const gchar *value)
{
  g_string_append_printf (out, "%s%s: %s", out->len > begin ? ", " : "", key, value);
}

static void
append_mount (const MtxMount *mount, GHashTable *common, GString *out)
{
  GHashTableIter iter;
  gpointer key, value;
  gsize begin;

  g_string_append (out, "  ");
  weir_text_append (out, mount->path);
  g_string_append (out, ": {");
  begin = out->len;
  for (guint i = 0; i < mount->keys->len; i++) {
    const gchar *name = g_ptr_array_index (mount->keys, i);
    const gchar *usual = g_hash_table_lookup (common, name);

    if (g_strcmp0 (usual, g_ptr_array_index (mount->values, i)))
      append_pair (out, begin, name, g_ptr_array_index (mount->values, i));
  }
  g_hash_table_iter_init (&iter, common);
  while (g_hash_table_iter_next (&iter, &key, &value)) {
    if (!get_value (mount, key))
      append_pair (out, begin, key, "null");
  }
  g_string_append (out, "}\n");
}

void
mtx_mounts_append (const GPtrArray *mounts, GString *out)
{
  g_autoptr (GHashTable) common = find_common (mounts);
  GList *keys = g_list_sort (g_hash_table_get_keys (common), (GCompareFunc) g_strcmp0);
  GString *defaults = g_string_new (NULL);

  for (const GList *key = keys; key; key = key->next)
    append_pair (defaults, 0, key->data, g_hash_table_lookup (common, key->data));
  if (defaults->len > 0)
    g_string_append_printf (out, "defaults: {%s}\n", defaults->str);
  g_string_append (out, mounts->len ? "mounts:\n" : "mounts: {}\n");
  for (guint i = 0; i < mounts->len; i++)
    append_mount (g_ptr_array_index (mounts, i), common, out);
  g_string_free (defaults, TRUE);
  g_list_free (keys);
}
