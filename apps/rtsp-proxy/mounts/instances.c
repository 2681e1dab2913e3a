// SPDX-License-Identifier: LGPL-2.1-or-later
#include "mounts/mounts_private.h"

#include "base/log.h"
#include "config/mount_instance.h"
#include "config/mount_pattern.h"
#include "sources/publication.h"

#include <gio/gio.h>

#define NS_PER_MS G_GINT64_CONSTANT (1000000)
#define UNUSED_MIN_MS 3000 // a mount is made before it is used

// ---- patterns ----

GPtrArray *
mounts_dup_patterns (Mounts *self)
{
  GPtrArray *patterns;

  g_mutex_lock (&self->lock);
  patterns = g_ptr_array_ref (self->patterns);
  g_mutex_unlock (&self->lock);
  return patterns;
}

static gint
compare (gconstpointer a, gconstpointer b)
{
  return mount_pattern_compare (
      (*(const MountConfig **) a)->pattern, (*(const MountConfig **) b)->pattern);
}

void
mounts_set_patterns (Mounts *self, GPtrArray *patterns)
{
  GPtrArray *sorted = g_ptr_array_new_with_free_func ((GDestroyNotify) mount_config_unref), *before;

  for (guint i = 0; i < patterns->len; i++)
    g_ptr_array_add (sorted, mount_config_ref (g_ptr_array_index (patterns, i)));
  g_ptr_array_sort (sorted, compare);
  g_mutex_lock (&self->lock);
  before = self->patterns;
  self->patterns = sorted;
  g_mutex_unlock (&self->lock);
  g_ptr_array_unref (before);
}

MountConfig *
mounts_dup_instance_config (Mounts *self, const gchar *path)
{
  g_autoptr (GPtrArray) patterns = mounts_dup_patterns (self);
  MountConfig *config = NULL;

  for (guint i = 0; i < patterns->len && !config; i++)
    config = mount_instance_new (g_ptr_array_index (patterns, i), path);
  return config;
}

guint
mounts_count_instances (Mounts *self, const MountPattern *pattern)
{
  const gchar *path = mount_pattern_get_path (pattern);
  GHashTableIter iter;
  gpointer mount;
  guint n = 0;

  g_mutex_lock (&self->lock);
  g_hash_table_iter_init (&iter, self->mounts);
  while (g_hash_table_iter_next (&iter, NULL, &mount))
    n += !g_strcmp0 (mount_get_pattern (mount), path);
  g_mutex_unlock (&self->lock);
  return n;
}

// Returns how many mounts the pattern of this name may make.
static guint
get_max (Mounts *self, const MountPattern *pattern)
{
  g_autoptr (GPtrArray) patterns = mounts_dup_patterns (self);

  for (guint i = 0; i < patterns->len; i++) {
    const MountConfig *each = g_ptr_array_index (patterns, i);

    if (g_str_equal (each->path, mount_pattern_get_path (pattern)))
      return each->max_instances;
  }
  return 0;
}

// ---- making ----

static gboolean
start (gpointer mount)
{
  mount_start (mount);
  mount_unref (mount);
  return G_SOURCE_REMOVE;
}

// Call with `making` held.
static gboolean
make (Mounts *self, MountConfig *config, GError **error)
{
  const gchar *pattern = mount_pattern_get_path (config->pattern);
  const guint max = get_max (self, config->pattern);
  Mount *mount;

  if (mounts_count_instances (self, config->pattern) >= max) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY,
        "%s: %s has made %u mounts, which are all that it may (max-instances)", config->path,
        pattern, max);
    return FALSE;
  }
  mount = mounts_add (self, config, error);
  if (!mount)
    return FALSE;
  log_event ("mount %s added, by %s", config->path, pattern);
  g_main_context_invoke (NULL, start, mount_ref (mount));
  return TRUE;
}

static gboolean
make_config (Mounts *self, MountConfig *config, GError **error)
{
  g_autoptr (Mount) found = NULL;
  gboolean ok;

  g_mutex_lock (&self->making);
  found = mounts_get (self, config->path);
  ok = found || make (self, config, error);
  g_mutex_unlock (&self->making);
  return ok;
}

gboolean
mounts_make (Mounts *self, const Demand *demand, Resolved *resolved, GError **error)
{
  gboolean made;

  if (resolved->mount || !resolved->instance)
    return TRUE;
  made = make_config (self, resolved->instance, error);
  resolved_clear (resolved);
  *resolved = (Resolved) { 0 };
  return made && mounts_resolve (self, demand, resolved, error);
}

gboolean
mounts_make_path (Mounts *self, const gchar *path, GError **error)
{
  g_autoptr (Mount) mount = mounts_get (self, path);
  g_autoptr (MountConfig) config = mount ? NULL : mounts_dup_instance_config (self, path);

  return !config || make_config (self, config, error);
}

gboolean
mounts_has (Mounts *self, const gchar *path)
{
  g_autoptr (Mount) mount = mounts_get (self, path);
  g_autoptr (MountConfig) config = mount ? NULL : mounts_dup_instance_config (self, path);

  return mount || config;
}

// ---- the end ----

// Reports whether anybody but the mount's own recording and pushes uses it.
static gboolean
is_used (Mount *mount, const MountConfig *config)
{
  g_autoptr (GPtrArray) all = mount_dup_presentations (mount);
  guint n = 0;

  for (guint i = 0; i < all->len; i++)
    n += presentation_n_users (g_ptr_array_index (all, i));
  return n > g_strv_length (config->push) + (config->record.folder != NULL)
         || publication_is_claimed (config->path);
}

GPtrArray *
mounts_dup_unused (Mounts *self, gint64 now)
{
  g_autoptr (GPtrArray) mounts = mounts_dup_all (self);
  GPtrArray *paths = g_ptr_array_new_with_free_func (g_free);

  for (guint i = 0; i < mounts->len; i++) {
    Mount *mount = g_ptr_array_index (mounts, i);
    const MountConfig *config = mount_get_config (mount);
    const gint64 least = MAX (config->linger_ms, UNUSED_MIN_MS) * NS_PER_MS;

    if (config->pattern && mount_note_use (mount, is_used (mount, config), now) >= least)
      g_ptr_array_add (paths, g_strdup (config->path));
  }
  return paths;
}

Mount *
mounts_end_instance (Mounts *self, const gchar *path)
{
  Mount *mount;

  // The path stays taken until the mount has withdrawn it, so that no other one is made meanwhile.
  g_mutex_lock (&self->making);
  mount = mounts_get (self, path);
  if (mount)
    mount_stop (mount);
  mounts_remove (self, path);
  g_mutex_unlock (&self->making);
  return mount;
}
