// SPDX-License-Identifier: LGPL-2.1-or-later
#include "control/reload.h"

#include "base/log.h"
#include "control/look_again.h"
#include "mounts/offer.h"

struct _Reload {
  const Options *options;
  Proxy *proxy;
  GHashTable *mounts; // path -> MountConfig, as the file was when it was last read
  UserSet *users;     // as the file was; may be NULL
  const ProxyConfig *started_with;
  // Mounts that lacked something of this machine when the file was last read: path -> MountConfig
  // that the mount had then. If the mount has another one now, the API has replaced it.
  GHashTable *waiting;
  LookAgain *look_again;
};

// ---- the file's mounts ----

static GHashTable *
new_index (void)
{
  return g_hash_table_new_full (
      g_str_hash, g_str_equal, g_free, (GDestroyNotify) mount_config_unref);
}

static GHashTable *
index_mounts (const ProxyConfig *config)
{
  GHashTable *mounts = new_index ();

  for (guint i = 0; i < config->mounts->len; i++) {
    MountConfig *mount = mount_config_ref (g_ptr_array_index (config->mounts, i));

    g_hash_table_insert (mounts, g_strdup (mount->path), mount);
  }
  return mounts;
}

// ---- mounts that lack something ----

// Notes them, and what their mounts have now.
static void
await (Reload *self)
{
  GHashTableIter iter;
  gpointer path, config;

  g_hash_table_remove_all (self->waiting);
  g_hash_table_iter_init (&iter, self->mounts);
  while (g_hash_table_iter_next (&iter, &path, &config)) {
    g_autoptr (Mount) mount =
        ((MountConfig *) config)->lack ? mounts_get (proxy_get_mounts (self->proxy), path) : NULL;

    if (mount)
      g_hash_table_insert (self->waiting, g_strdup (path), mount_dup_config (mount));
  }
  look_again_set (self->look_again, g_hash_table_size (self->waiting) > 0);
}

// Gives a mount that waits its configuration, unless it still lacks something.
static void
give (Reload *self, const gchar *path, MountConfig *before, MountConfig *to)
{
  g_autoptr (Mount) mount = mounts_get (proxy_get_mounts (self->proxy), path);
  g_autoptr (GError) error = NULL;

  if (mount && mount_get_config (mount) == before
      && (!to->lack || (before->lack && !mount_config_equal (before, to)))) {
    if (proxy_put_mount (self->proxy, to, &error))
      g_hash_table_replace (self->mounts, g_strdup (path), mount_config_ref (to));
    else
      log_event ("mount %s was not changed: %s", path, error->message);
  }
}

// The file was read again; only mounts that wait take what it says.
static void
looked_again (ProxyConfig *config, gpointer data)
{
  Reload *self = data;

  for (guint i = 0; i < config->mounts->len; i++) {
    MountConfig *to = g_ptr_array_index (config->mounts, i);
    MountConfig *before = g_hash_table_lookup (self->waiting, to->path);

    if (before)
      give (self, to->path, before, to);
  }
  proxy_config_free (config);
  await (self);
}

Reload *
reload_new (const Options *options, Proxy *proxy, const ProxyConfig *config)
{
  Reload *self = g_new0 (Reload, 1);

  self->options = options;
  self->proxy = proxy;
  self->mounts = index_mounts (config);
  self->users = config->users ? user_set_ref (config->users) : NULL;
  self->started_with = config;
  self->waiting = new_index ();
  self->look_again = look_again_new (options, looked_again, self);
  await (self);
  return self;
}

void
reload_free (Reload *self)
{
  look_again_free (self->look_again);
  g_hash_table_unref (self->waiting);
  g_hash_table_unref (self->mounts);
  g_clear_pointer (&self->users, user_set_unref);
  g_free (self);
}

// ---- the plan ----

static void
change_free (gpointer data)
{
  ReloadChange *change = data;

  g_free (change->path);
  g_clear_pointer (&change->from, mount_config_unref);
  g_clear_pointer (&change->to, mount_config_unref);
  g_free (change);
}

void
reload_plan_free (ReloadPlan *plan)
{
  g_ptr_array_unref (plan->changes);
  g_ptr_array_unref (plan->notes);
  g_hash_table_unref (plan->mounts);
  proxy_config_free (plan->config);
  g_free (plan);
}

static void
plan_change (ReloadPlan *plan, Mount *mount, const gchar *path, MountConfig *to)
{
  ReloadChange *change = g_new0 (ReloadChange, 1);

  change->path = g_strdup (path);
  change->from = mount ? mount_config_ref ((MountConfig *) mount_get_config (mount)) : NULL;
  change->to = to ? mount_config_ref (to) : NULL;
  g_ptr_array_add (plan->changes, change);
}

// Compares `to`, the mount in the file (NULL if the file has none), with the mount in the file as
// it was last read.
static void
plan_mount (Reload *self, ReloadPlan *plan, const gchar *path, MountConfig *to)
{
  const MountConfig *before = g_hash_table_lookup (self->mounts, path);
  gboolean same = before && to && mount_config_equal (before, to);
  g_autoptr (Mount) mount = mounts_get (proxy_get_mounts (self->proxy), path);
  gboolean keeps = mount && to && to->lack && !mount_lacks (mount);

  if (keeps)
    g_ptr_array_add (plan->notes,
        g_strdup_printf ("mount %s stays as it is, as it now lacks something: %s", path, to->lack));
  // If the mount equals `to` already, the API has made the same change.
  if (!same && !keeps && (mount || to)
      && !(mount && to && mount_config_equal (mount_get_config (mount), to)))
    plan_change (plan, mount, path, to);
  else
    plan->n_unchanged++;
}

static void
note_restarts (Reload *self, ReloadPlan *plan, const ProxyConfig *config)
{
  for (const SchemaKey *key = proxy_config_keys (); key->name; key++) {
    if (schema_key_effect (key, self->started_with, config) == PROXY_EFFECT_RESTART)
      g_ptr_array_add (plan->notes,
          g_strdup_printf ("%s has changed; this takes effect at the next start", key->name));
  }
}

static void
note_users (Reload *self, ReloadPlan *plan)
{
  UserSet *users = plan->config->users;

  if (users && self->users ? !user_set_equal (users, self->users) : users != self->users)
    g_ptr_array_add (plan->notes, g_strdup ("the users have changed; readers who play stay"));
}

static void
note_patterns (Reload *self, ReloadPlan *plan)
{
  g_autoptr (GPtrArray) before = mounts_dup_patterns (proxy_get_mounts (self->proxy));
  const GPtrArray *after = plan->config->patterns;
  gboolean same = before->len == after->len;

  for (guint i = 0; i < after->len && same; i++) {
    MountConfig *to = g_ptr_array_index (after, i);

    same = g_ptr_array_find_with_equal_func (before, to, (GEqualFunc) mount_config_equal, NULL);
  }
  if (!same)
    g_ptr_array_add (plan->notes, g_strdup ("paths with variables have changed; the mounts that "
                                            "they have made change or go"));
}

// Takes ownership of `config`.
static ReloadPlan *
plan_config (Reload *self, ProxyConfig *config)
{
  ReloadPlan *plan = g_new0 (ReloadPlan, 1);
  GHashTableIter iter;
  gpointer path;

  plan->changes = g_ptr_array_new_with_free_func (change_free);
  plan->notes = g_ptr_array_new_with_free_func (g_free);
  plan->mounts = index_mounts (config);
  plan->config = config;
  plan->limits = config->limits;
  for (guint i = 0; i < config->mounts->len; i++) {
    MountConfig *to = g_ptr_array_index (config->mounts, i);

    plan_mount (self, plan, to->path, to);
  }
  g_hash_table_iter_init (&iter, self->mounts);
  while (g_hash_table_iter_next (&iter, &path, NULL)) {
    if (!g_hash_table_contains (plan->mounts, path))
      plan_mount (self, plan, path, NULL);
  }
  note_restarts (self, plan, config);
  note_users (self, plan);
  note_patterns (self, plan);
  return plan;
}

ReloadPlan *
reload_plan (Reload *self, GError **error)
{
  ProxyConfig *config = options_load_config (self->options, error);

  return config ? plan_config (self, config) : NULL;
}

// ---- applying it ----

void
reload_apply (Reload *self, ReloadPlan *plan)
{
  GError *error = NULL;

  proxy_set_stages (self->proxy, plan->config->stage_set);
  access_configure (proxy_get_access (self->proxy), plan->config);
  g_clear_pointer (&self->users, user_set_unref);
  self->users = plan->config->users ? user_set_ref (plan->config->users) : NULL;
  proxy_reload_tls (self->proxy);
  limits_set (&plan->limits);
  offer_configure (plan->config);
  proxy_set_patterns (self->proxy, plan->config->patterns);
  for (guint i = 0; i < plan->changes->len; i++) {
    const ReloadChange *change = g_ptr_array_index (plan->changes, i);

    if (change->to && !proxy_put_mount (self->proxy, change->to, &error)) {
      g_ptr_array_add (plan->notes,
          g_strdup_printf ("mount %s was not changed: %s", change->path, error->message));
      g_clear_error (&error);
    } else if (!change->to)
      proxy_remove_mount (self->proxy, change->path, "the mount is no longer in the configuration");
  }
  for (guint i = 0; i < plan->notes->len; i++)
    log_event ("reload: %s", (const gchar *) g_ptr_array_index (plan->notes, i));
  log_event ("reloaded: %u changed, %u unchanged", plan->changes->len, plan->n_unchanged);
  g_hash_table_unref (self->mounts);
  self->mounts = g_hash_table_ref (plan->mounts);
  await (self);
}

void
reload_log_failure (const GError *error)
{
  g_auto (GStrv) lines = g_strsplit (error->message, "\n", 0);

  log_event ("not reloaded, nothing has changed: %s", lines[0]);
  for (guint i = 1; lines[0] && lines[i]; i++)
    log_event ("not reloaded: %s", lines[i]);
}

void
reload_run (Reload *self)
{
  GError *error = NULL;
  ReloadPlan *plan = reload_plan (self, &error);

  if (!plan) {
    reload_log_failure (error);
    g_error_free (error);
    return;
  }
  reload_apply (self, plan);
  reload_plan_free (plan);
}

gboolean
reload_is_as_in_file (Reload *self, const MountConfig *config)
{
  const MountConfig *before = g_hash_table_lookup (self->mounts, config->path);

  return before && mount_config_equal (before, config);
}
