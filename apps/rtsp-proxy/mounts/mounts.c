// SPDX-License-Identifier: LGPL-2.1-or-later
#include "mounts/mounts_private.h"

#include "config/mount_pattern.h"
#include "mounts/offer.h"
#include "sources/mount_pull.h"

#include <gio/gio.h>
#include <string.h>

// ---- mounts as inputs of others ----

static gpointer
use_input (gpointer data, const gchar *path, Relay **relay, GError **error)
{
  g_autoptr (Mount) mount = mounts_get (data, path);
  Presentation *found = NULL;

  if (mount)
    found = mount_use (mount, NULL, error);
  else
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "there is no mount %s", path);
  if (found)
    *relay = presentation_get_relay (found);
  return found;
}

static void
leave_input (gpointer presentation)
{
  presentation_leave (presentation);
}

static const MountFinder inputs = { use_input, leave_input };

Mounts *
mounts_new (const MountContext *context)
{
  Mounts *self = g_new0 (Mounts, 1);

  self->context = context;
  g_mutex_init (&self->lock);
  g_mutex_init (&self->making);
  self->patterns = g_ptr_array_new_with_free_func ((GDestroyNotify) mount_config_unref);
  self->mounts =
      g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify) mount_unref);
  mount_pull_set_finder (&inputs, self);
  return self;
}

void
mounts_free (Mounts *self)
{
  mount_pull_set_finder (NULL, NULL);
  g_hash_table_unref (self->mounts);
  g_ptr_array_unref (self->patterns);
  g_mutex_clear (&self->making);
  g_mutex_clear (&self->lock);
  g_free (self);
}

Mount *
mounts_add (Mounts *self, MountConfig *config, GError **error)
{
  Mount *mount = mount_new (self->context, config, error);

  if (!mount)
    return NULL;
  g_mutex_lock (&self->lock);
  g_hash_table_insert (self->mounts, g_strdup (config->path), mount);
  g_mutex_unlock (&self->lock);
  return mount;
}

void
mounts_remove (Mounts *self, const gchar *path)
{
  g_mutex_lock (&self->lock);
  g_hash_table_remove (self->mounts, path);
  g_mutex_unlock (&self->lock);
}

Mount *
mounts_get (Mounts *self, const gchar *path)
{
  Mount *mount;

  g_mutex_lock (&self->lock);
  mount = g_hash_table_lookup (self->mounts, path);
  if (mount)
    mount_ref (mount);
  g_mutex_unlock (&self->lock);
  return mount;
}

static gint
compare_paths (gconstpointer a, gconstpointer b)
{
  return strcmp (mount_get_path (*(Mount **) a), mount_get_path (*(Mount **) b));
}

MountConfig *
mounts_dup_publish_config (Mounts *self, const gchar *path, gboolean *exists)
{
  g_autoptr (Mount) mount = mounts_get (self, path);
  MountConfig *config = mount ? mount_dup_config (mount) : mounts_dup_instance_config (self, path);

  *exists = config != NULL;
  if (config && !mount_config_awaits (config))
    g_clear_pointer (&config, mount_config_unref);
  return config;
}

GPtrArray *
mounts_dup_all (Mounts *self)
{
  GPtrArray *mounts = g_ptr_array_new_with_free_func ((GDestroyNotify) mount_unref);
  GHashTableIter iter;
  gpointer mount;

  g_mutex_lock (&self->lock);
  g_hash_table_iter_init (&iter, self->mounts);
  while (g_hash_table_iter_next (&iter, NULL, &mount))
    g_ptr_array_add (mounts, mount_ref (mount));
  g_mutex_unlock (&self->lock);
  g_ptr_array_sort (mounts, compare_paths);
  return mounts;
}

// ---- resolve ----

// Returns the mount with the longest path that is above `path`. (transfer full)
static Mount *
find_above (Mounts *self, const gchar *path)
{
  gchar *above = g_strdup (path), *slash;
  Mount *mount = NULL;

  while ((slash = strrchr (above, '/')) && slash != above && !mount) {
    *slash = '\0';
    mount = mounts_get (self, above);
  }
  g_free (above);
  return mount;
}

// Resolves a path below a mount, to a title or an existing presentation. Returns FALSE if there is
// none.
static gboolean
resolve_below (Mount *mount, const Demand *demand, Resolved *resolved)
{
  const gchar *name = demand->path + strlen (mount_get_path (mount)) + 1;

  // Titles have no choices.
  if (demand->query && (offer_is_strict () || g_strcmp0 (demand->query, demand->choices) != 0))
    return FALSE;
  if (mount_has_titles (mount) || mount_lacks (mount)) {
    resolved->title = g_strdup (name);
    return TRUE;
  }
  resolved->is_below = mount_has_path (mount, demand->path);
  if (resolved->is_below)
    resolved->path = g_strdup (demand->path);
  return resolved->is_below;
}

static guint
count_segments (const gchar *path)
{
  guint n = 0;

  for (; *path; path++)
    n += *path == '/';
  return n;
}

// Returns the configuration of a mount that could be made for a path, unless one above that exists
// is more exact. (transfer full)
static MountConfig *
find_instance (Mounts *self, const gchar *path)
{
  MountConfig *config = mounts_dup_instance_config (self, path);
  g_autoptr (Mount) above = config ? find_above (self, path) : NULL;

  if (above
      && count_segments (mount_get_path (above)) > mount_pattern_count_fixed (config->pattern))
    g_clear_pointer (&config, mount_config_unref);
  return config;
}

// Resolves a demand for a mount that is not made yet. Its path is then that of the mount, also with
// choices.
static gboolean
resolve_instance (const Demand *demand, Resolved *resolved, GError **error)
{
  if (offer_check (resolved->instance, demand, &resolved->choices, error)) {
    resolved->path = g_strdup (demand->path);
    return TRUE;
  }
  g_prefix_error (error, "%s: ", demand->path);
  resolved_clear (resolved);
  return FALSE;
}

gboolean
mounts_resolve (Mounts *self, const Demand *demand, Resolved *resolved, GError **error)
{
  Mount *mount = mounts_get (self, demand->path);
  gboolean found;

  *resolved = (Resolved) { 0 };
  if (!mount)
    resolved->instance = find_instance (self, demand->path);
  if (resolved->instance)
    return resolve_instance (demand, resolved, error);
  if (mount) {
    found = mount_resolve (mount, demand, &resolved->choices, &resolved->path, error);
    if (!found)
      g_prefix_error (error, "%s: ", demand->path);
  } else {
    mount = find_above (self, demand->path);
    found = mount && resolve_below (mount, demand, resolved);
    if (!found)
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "no mount serves %s", demand->path);
  }
  resolved->mount = mount;
  if (!found && mount)
    resolved_clear (resolved);
  return found;
}

void
resolved_clear (Resolved *self)
{
  g_clear_pointer (&self->mount, mount_unref);
  g_clear_pointer (&self->instance, mount_config_unref);
  g_clear_pointer (&self->title, g_free);
  g_clear_pointer (&self->path, g_free);
}

const gchar *
resolved_get_mount_path (const Resolved *self)
{
  return self->mount ? mount_get_path (self->mount) : self->instance ? self->instance->path : NULL;
}

// ---- use ----

// Reports whether something of the mount can be used.
static gboolean
is_usable (const Resolved *resolved, GError **error)
{
  if (!mount_lacks (resolved->mount))
    return TRUE;
  g_set_error (
      error, G_IO_ERROR, G_IO_ERROR_BUSY, MOUNT_LACKS_PROBLEM, mount_get_path (resolved->mount));
  return FALSE;
}

Title *
mounts_open_title (const Resolved *resolved, GError **error)
{
  if (!is_usable (resolved, error))
    return NULL;
  return mount_open_title (resolved->mount, resolved->title, error);
}

Presentation *
mounts_use (const Resolved *resolved, GError **error)
{
  Presentation *found;

  if (!is_usable (resolved, error))
    return NULL;
  if (resolved->title) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "%s has titles, and no stream",
        mount_get_path (resolved->mount));
    return NULL;
  }
  found = resolved->is_below ? mount_use_path (resolved->mount, resolved->path, error)
                             : mount_use (resolved->mount, resolved->choices, error);
  if (!found)
    g_prefix_error (error, "%s: ", mount_get_path (resolved->mount));
  return found;
}

Presentation *
mounts_use_demand (Mounts *self, const Demand *demand, GError **error)
{
  Presentation *found;
  Resolved resolved;

  if (!mounts_resolve (self, demand, &resolved, error))
    return NULL;
  found = mounts_make (self, demand, &resolved, error) ? mounts_use (&resolved, error) : NULL;
  resolved_clear (&resolved);
  return found;
}
