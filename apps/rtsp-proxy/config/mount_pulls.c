// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_pulls.h"

#include "sources/pull.h"

PullTitles
mount_config_get_titles (const MountConfig *self)
{
  return self->pulls->len ? ((const PullConfig *) g_ptr_array_index (self->pulls, 0))->titles
                          : PULL_TITLES_NONE;
}

const gchar *
mount_config_get_folder (const MountConfig *self)
{
  return mount_config_get_titles (self)
             ? ((const PullConfig *) g_ptr_array_index (self->pulls, 0))->path
             : NULL;
}

gboolean
mount_config_is_limited (const MountConfig *self)
{
  const PullConfig *pull = self->pulls->len ? g_ptr_array_index (self->pulls, 0) : NULL;

  return pull && pull->is_limited;
}

gboolean
mount_config_awaits (const MountConfig *self)
{
  gboolean awaits = FALSE;

  for (guint i = 0; i < self->pulls->len; i++)
    awaits |= pull_config_awaits (g_ptr_array_index (self->pulls, i));
  return awaits;
}

gboolean
mount_config_takes_layers (const MountConfig *self)
{
  const gchar *const *params = g_hash_table_lookup (self->choices, "pull");

  return params && g_strv_contains (params, "simulcast");
}
