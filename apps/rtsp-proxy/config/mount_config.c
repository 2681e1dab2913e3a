// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_config.h"

#include "config/mount_broadcast.h"
#include "config/mount_keys.h"
#include "config/mount_pattern.h"
#include "sources/pull.h"
#include "stages/stage.h"

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
  g_free (self->stage_files);
  g_free (self->source_files);
  g_free (self->lack);
  g_clear_pointer (&self->pattern, mount_pattern_unref);
  g_ptr_array_unref (self->pulls);
  g_clear_pointer (&self->stages, g_ptr_array_unref);
  g_clear_pointer (&self->source_chain, g_ptr_array_unref);
  g_clear_pointer (&self->stage_set, stage_set_unref);
  g_free (self);
}

MountConfig *
mount_config_copy (const MountConfig *self)
{
  MountConfig *copy = mount_config_new (self->path);

  schema_copy (mount_config_keys (), copy, self);
  return copy;
}

gboolean
mount_config_equal (const MountConfig *a, const MountConfig *b)
{
  return schema_equal (mount_config_keys (), a, b) && g_str_equal (a->path, b->path)
         && !g_strcmp0 (a->lack, b->lack);
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

MountEffect
mount_config_get_effect (const MountConfig *from, const MountConfig *to)
{
  MountEffect most = MOUNT_EFFECT_NONE;

  for (const SchemaKey *key = mount_config_keys (); key->name; key++)
    most = MAX (most, (MountEffect) schema_key_effect (key, from, to));
  return most;
}

gboolean
mount_config_same_broadcast (const MountConfig *a, const MountConfig *b)
{
  gboolean titles = mount_config_get_titles (a) || mount_config_get_titles (b);

  return schema_equal (mount_broadcast_object.keys, a, b)
         && (!titles || mount_config_get_effect (a, b) < MOUNT_EFFECT_UPSTREAM);
}
