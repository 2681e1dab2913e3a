// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_config.h"

static void
param_free (gpointer data)
{
  MountParam *param = data;

  g_free (param->name);
  g_free (param->value);
  g_free (param);
}

MountStep *
mount_step_new (const gchar *name, guint line, guint column)
{
  MountStep *self = g_new (MountStep, 1);

  *self =
      (MountStep) { g_strdup (name), g_ptr_array_new_with_free_func (param_free), line, column };
  return self;
}

void
mount_step_add (MountStep *self, const gchar *name, const gchar *value, guint line, guint column)
{
  MountParam *param = g_new (MountParam, 1);

  *param = (MountParam) { g_strdup (name), g_strdup (value), line, column };
  g_ptr_array_add (self->params, param);
}

void
mount_step_free (gpointer data)
{
  MountStep *step = data;

  g_free (step->name);
  g_ptr_array_unref (step->params);
  g_free (step);
}

static void
pull_free (gpointer data)
{
  PullConfig *pull = data;

  pull_config_clear (pull);
  g_free (pull);
}

MountConfig *
mount_config_new (const gchar *path)
{
  MountConfig *self = g_new0 (MountConfig, 1);

  g_atomic_ref_count_init (&self->refs);
  self->path = g_strdup (path);
  self->pulls = g_ptr_array_new_with_free_func (pull_free);
  self->pipeline = g_ptr_array_new_with_free_func (mount_step_free);
  self->choices =
      g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify) g_strfreev);
  self->layers = WEIR_LAYER_SET_ALL;
  schema_init (mount_config_keys (), self);
  return self;
}

MountConfig *
mount_config_ref (MountConfig *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
mount_config_unref (MountConfig *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  schema_clear (mount_config_keys (), self);
  g_free (self->path);
  g_free (self->slate);
  g_free (self->cache.spill);
  g_free (self->stage_files);
  g_strfreev (self->upstreams);
  g_ptr_array_unref (self->pulls);
  g_ptr_array_unref (self->pipeline);
  g_hash_table_unref (self->choices);
  g_clear_pointer (&self->stages, g_ptr_array_unref);
  g_clear_pointer (&self->stage_set, stage_set_unref);
  g_free (self);
}

MountConfig *
mount_config_copy (const MountConfig *self)
{
  MountConfig *copy = mount_config_new (self->path);
  GHashTableIter iter;
  gpointer stage, params;

  schema_copy (mount_config_keys (), copy, self);
  copy->upstreams = g_strdupv (self->upstreams);
  copy->slate = g_strdup (self->slate);
  copy->layers = self->layers;
  copy->cache = self->cache;
  copy->cache.spill = g_strdup (self->cache.spill);
  for (guint i = 0; i < self->pipeline->len; i++) {
    const MountStep *from = g_ptr_array_index (self->pipeline, i);
    MountStep *step = mount_step_new (from->name, from->line, from->column);

    for (guint j = 0; j < from->params->len; j++) {
      const MountParam *p = g_ptr_array_index (from->params, j);

      mount_step_add (step, p->name, p->value, p->line, p->column);
    }
    g_ptr_array_add (copy->pipeline, step);
  }
  g_hash_table_iter_init (&iter, self->choices);
  while (g_hash_table_iter_next (&iter, &stage, &params))
    g_hash_table_insert (copy->choices, g_strdup (stage), g_strdupv (params));
  return copy;
}

gboolean
mount_config_equal (const MountConfig *a, const MountConfig *b)
{
  for (const SchemaKey *key = mount_config_keys (); key->name; key++) {
    if (!schema_key_equal (key, a, b))
      return FALSE;
  }
  return g_str_equal (a->path, b->path);
}

GPtrArray *
mount_config_differences (const MountConfig *a, const MountConfig *b)
{
  GPtrArray *names = g_ptr_array_new ();

  for (const SchemaKey *key = mount_config_keys (); key->name; key++) {
    if (!schema_key_equal (key, a, b))
      g_ptr_array_add (names, (gpointer) key->name);
  }
  return names;
}

const gchar *
mount_config_get_folder (const MountConfig *self)
{
  const PullConfig *pull = self->pulls->len ? g_ptr_array_index (self->pulls, 0) : NULL;

  return pull && pull->is_folder ? pull->path : NULL;
}

static gboolean
differs_in (const MountConfig *from, const MountConfig *to, const gchar *const *names)
{
  for (const SchemaKey *key = mount_config_keys (); key->name; key++) {
    if (g_strv_contains (names, key->name) && !schema_key_equal (key, from, to))
      return TRUE;
  }
  return FALSE;
}

gboolean
mount_config_needs_upstream (const MountConfig *from, const MountConfig *to)
{
  static const gchar *const names[] = { "upstream", "slate", "user", "password", "transport",
    "connect-timeout", "read-timeout", NULL };

  return differs_in (from, to, names);
}

gboolean
mount_config_needs_pipeline (const MountConfig *from, const MountConfig *to)
{
  static const gchar *const names[] = { "pipeline", "choices", NULL };

  return differs_in (from, to, names);
}

gboolean
mount_config_needs_media (const MountConfig *from, const MountConfig *to)
{
  static const gchar *const names[] = { "join", "catch-up", "priority", "cache", NULL };

  return differs_in (from, to, names);
}

gboolean
mount_config_needs_layers (const MountConfig *from, const MountConfig *to)
{
  static const gchar *const names[] = { "adapt", "layers", NULL };

  return differs_in (from, to, names);
}

gboolean
mount_config_moves_cache (const MountConfig *from, const MountConfig *to)
{
  return g_strcmp0 (from->cache.spill, to->cache.spill) != 0;
}
