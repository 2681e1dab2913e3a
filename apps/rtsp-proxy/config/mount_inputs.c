// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_inputs.h"

#include "sources/mount_pull.h"
#include "stages/stage.h"

static void
add_pull (MountConfig *mount, const gchar *path)
{
  PullConfig *pull = g_new0 (PullConfig, 1);

  mount_pull_init (pull, path);
  g_ptr_array_add (mount->pulls, pull);
}

void
mount_inputs_apply (MountConfig *mount)
{
  g_ptr_array_set_size (mount->pulls, 0);
  g_strfreev (mount->upstreams);
  mount->upstreams = g_new0 (gchar *, 1);
  add_pull (mount, mount->inputs[0]);
}

MountConfig *
mount_inputs_make_alone (const MountConfig *mount, guint input)
{
  MountConfig *alone = mount_config_new (mount->inputs[input]);
  const PullConfig *first = g_ptr_array_index (mount->pulls, 0);
  PullConfig *pull;

  add_pull (alone, mount->inputs[input]);
  pull = g_ptr_array_index (alone->pulls, 0);
  pull->connect_timeout_ms = first->connect_timeout_ms;
  pull->read_timeout_ms = first->read_timeout_ms;
  pull->trust.any = first->trust.any;
  return alone;
}

// ---- checks ----

static gchar *
check_stage (const MountConfig *mount, const StageFile *file)
{
  const guint n = g_strv_length (mount->inputs);

  if (!file->inputs || (n > 1 && n <= file->inputs))
    return NULL;
  if (n > file->inputs)
    return g_strdup_printf (
        "inputs: stage %s takes at most %u, but the mount has %u", file->name, file->inputs, n);
  return g_strdup_printf ("stage %s: takes the media of 2%s mounts; set inputs: [/CAM1, /CAM2]",
      file->name, file->inputs > 2 ? " or more" : "");
}

gchar *
mount_inputs_check_stages (const MountConfig *mount)
{
  gboolean taken = !mount_has_inputs (mount);
  GHashTableIter iter;
  gchar *wrong = NULL;
  gpointer name;

  for (guint i = 0; i < mount->stages->len && !wrong; i++) {
    const StageFile *file = stage_get_file (g_ptr_array_index (mount->stages, i));

    taken |= file->inputs > 0;
    wrong = check_stage (mount, file);
  }
  g_hash_table_iter_init (&iter, mount->choices);
  while (!wrong && g_hash_table_iter_next (&iter, &name, NULL)) {
    const StageFile *file = stage_set_find (mount->stage_set, name);

    taken |= file && file->inputs > 0;
    wrong = file ? check_stage (mount, file) : NULL;
  }
  if (!wrong && !taken)
    return g_strdup ("inputs: no stage of the pipeline takes several mounts; add one, such as "
                     "picture-in-picture or mix");
  return wrong;
}

static const MountConfig *
find (GPtrArray *mounts, const gchar *path)
{
  for (guint i = 0; i < mounts->len; i++) {
    const MountConfig *mount = g_ptr_array_index (mounts, i);

    if (g_str_equal (mount->path, path))
      return mount;
  }
  return NULL;
}

gchar *
mount_inputs_find_wrong (GPtrArray *mounts, const MountConfig *mount)
{
  for (gchar **path = mount->inputs; *path; path++) {
    const MountConfig *input = find (mounts, *path);

    if (!input)
      return g_strdup_printf ("inputs: there is no mount %s", *path);
    if (mount_config_get_titles (input) || input->interval_ms)
      return g_strdup_printf ("inputs: %s serves stored titles and has no single stream", *path);
  }
  return NULL;
}

const gchar *
mount_inputs_find_user (GPtrArray *mounts, const gchar *path)
{
  for (guint i = 0; i < mounts->len; i++) {
    const MountConfig *mount = g_ptr_array_index (mounts, i);

    if (g_strv_contains ((const gchar *const *) mount->inputs, path))
      return mount->path;
  }
  return NULL;
}
