// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "mounts/mount_private.h"

#include "config/mount_broadcast.h"
#include "config/mount_pattern.h"
#include "mounts/mount_store.h"
#include "mounts/offer.h"
#include "stages/choice.h"

#include <gio/gio.h>
#include <string.h>

static void close_readers (Presentation *presentation, const gchar *reason, gpointer data);
static void idle (Presentation *presentation, gpointer data);
static void changed (Presentation *presentation, gpointer data);

static const PresentationCallbacks callbacks = { close_readers, idle, changed };

// ---- presentations ----

Presentation *
mount_add_presentation (
    Mount *self, const gchar *path, const gchar *query, GPtrArray *stages, guint instance)
{
  const MountContext *context = self->context;
  Presentation *new = presentation_new (
      context->graph, path, query, self->config, stages, instance, &callbacks, self);

  if (context->keeps_groups)
    relay_keep_group (presentation_get_relay (new));
  presentation_set_choices (new, self->choices, FALSE);
  g_hash_table_insert (self->presentations, g_strdup (path), new);
  context->outlet->publish (new, context->data);
  return new;
}

static void
remove_path (Mount *self, const gchar *path)
{
  self->context->outlet->withdraw (path, self->context->data);
}

static void
close_readers (Presentation *presentation, const gchar *reason, gpointer data)
{
  Mount *self = data;

  self->context->close_readers (presentation, reason, self->context->close_data);
}

static void
changed (Presentation *presentation, gpointer data)
{
  Mount *self = data;

  self->context->outlet->changed (presentation, self->context->data);
}

// Removes a presentation other than `main` when it has no users.
static void
idle (Presentation *presentation, gpointer data)
{
  Mount *self = data;
  gboolean unused;

  presentation_ref (presentation);
  g_mutex_lock (&self->lock);
  unused = presentation != self->main && presentation_n_users (presentation) == 0;
  if (unused && presentation == self->session)
    g_clear_pointer (&self->session, presentation_unref);
  if (unused)
    g_hash_table_remove (self->presentations, presentation_get_path (presentation));
  g_mutex_unlock (&self->lock);
  if (unused) {
    remove_path (self, presentation_get_path (presentation));
    presentation_stop (presentation);
  }
  presentation_unref (presentation);
}

// ---- finding ----

// Returns the path of a presentation with choices. It lies below the mount's path, where no mount
// can be. (transfer full)
static gchar *
dup_path (Mount *self, const GPtrArray *stages)
{
  g_autofree gchar *key = choice_dup_key (stages);
  g_autofree gchar *sum = g_compute_checksum_for_string (G_CHECKSUM_SHA256, key, -1);
  gchar *path = g_strdup_printf ("%s/=%.16s", self->path, sum);

  return path;
}

static gboolean
is_main_chain (Mount *self, const GPtrArray *stages)
{
  g_autofree gchar *key = choice_dup_key (stages);
  g_autofree gchar *main_key = choice_dup_key (self->main_stages);

  return g_str_equal (key, main_key);
}

// Call with the lock held.
static Presentation *
find_chosen (Mount *self, const gchar *query, GPtrArray *stages, GError **error)
{
  g_autofree gchar *path = dup_path (self, stages), *offered = NULL;
  Presentation *found = g_hash_table_lookup (self->presentations, path);

  if (!found && is_main_chain (self, stages)) {
    found = self->main;
  } else if (!found && self->stopped) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "the mount is stopping");
  } else if (!found && choices_take (self->choices, self->config->max_presentations, error)) {
    offered = offer_dup_choices (self->config, query);
    found = mount_add_presentation (self, path, offered, stages, 0);
    presentation_set_choices (found, self->choices, TRUE);
  }
  return found;
}

// Call with the lock held.
static Presentation *
find (Mount *self, const gchar *choices, GError **error)
{
  Presentation *found = NULL;
  g_autoptr (GPtrArray) stages = NULL;

  if (!choices)
    return self->config->interval_ms ? mount_find_session (self, 0, error) : self->main;
  stages = offer_make_chain (self->config, choices, error);
  if (stages)
    found = find_chosen (self, choices, stages, error);
  return found;
}

// Returns the path of the presentation with these choices. Returns NULL without an error if the
// reader gets a session, and NULL with an error on failure. Call with the lock held. (transfer
// full)
static gchar *
resolve_path (Mount *self, const gchar *choices, GError **error)
{
  g_autoptr (GPtrArray) stages = NULL;

  if (!choices)
    return self->config->interval_ms ? NULL : g_strdup (self->path);
  stages = offer_make_chain (self->config, choices, error);
  if (!stages)
    return NULL;
  return is_main_chain (self, stages) ? g_strdup (self->path) : dup_path (self, stages);
}

gboolean
mount_resolve (
    Mount *self, const Demand *demand, const gchar **choices, gchar **path, GError **error)
{
  GError *wrong = NULL;

  *path = NULL;
  g_mutex_lock (&self->lock);
  if (self->config->lack)
    *path = g_strdup (self->path);
  else if (mount_config_get_titles (self->config))
    g_set_error (&wrong, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
        "the path is a folder; append the name of a title");
  else if (offer_check (self->config, demand, choices, &wrong))
    *path = resolve_path (self, *choices, &wrong);
  g_mutex_unlock (&self->lock);
  if (wrong)
    g_propagate_error (error, wrong);
  return !wrong;
}

gboolean
mount_has_path (Mount *self, const gchar *path)
{
  gboolean has;

  g_mutex_lock (&self->lock);
  has = g_hash_table_contains (self->presentations, path);
  g_mutex_unlock (&self->lock);
  return has;
}

Presentation *
mount_use (Mount *self, const gchar *choices, GError **error)
{
  Presentation *found;

  g_mutex_lock (&self->lock);
  found = find (self, choices, error);
  if (found) // with the lock held, so that idle() cannot remove it first
    presentation_use (presentation_ref (found));
  g_mutex_unlock (&self->lock);
  return found;
}

Presentation *
mount_use_path (Mount *self, const gchar *path, GError **error)
{
  Presentation *found;

  g_mutex_lock (&self->lock);
  found = g_hash_table_lookup (self->presentations, path);
  if (found)
    presentation_use (presentation_ref (found));
  g_mutex_unlock (&self->lock);
  if (!found)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "%s no longer exists", path);
  return found;
}

gboolean
mount_lacks (Mount *self)
{
  gboolean lacks;

  g_mutex_lock (&self->lock);
  lacks = self->config->lack != NULL;
  g_mutex_unlock (&self->lock);
  return lacks;
}

gboolean
mount_has_titles (Mount *self)
{
  gboolean has;

  g_mutex_lock (&self->lock);
  has = mount_config_get_titles (self->config) != PULL_TITLES_NONE;
  g_mutex_unlock (&self->lock);
  return has;
}

gboolean
mount_has_title (Mount *self, Title *title, const gchar *name)
{
  return title_is (title, self->titles, name);
}

Store *
mount_dup_store (Mount *self)
{
  return titles_dup_store (self->titles);
}

Title *
mount_open_title (Mount *self, const gchar *name, GError **error)
{
  return titles_open (self->titles, name, error);
}

static gint
compare_paths (gconstpointer a, gconstpointer b)
{
  return strcmp (
      presentation_get_path (*(Presentation **) a), presentation_get_path (*(Presentation **) b));
}

GPtrArray *
mount_dup_presentations (Mount *self)
{
  GPtrArray *all = g_ptr_array_new_with_free_func ((GDestroyNotify) presentation_unref);
  GHashTableIter iter;
  gpointer presentation;

  g_mutex_lock (&self->lock);
  g_hash_table_iter_init (&iter, self->presentations);
  while (g_hash_table_iter_next (&iter, NULL, &presentation))
    g_ptr_array_add (all, presentation_ref (presentation));
  g_mutex_unlock (&self->lock);
  g_ptr_array_sort (all, compare_paths);
  return all;
}

// ---- the broadcast ----

Broadcast *
mount_dup_broadcast (Mount *self)
{
  Broadcast *broadcast;

  g_mutex_lock (&self->lock);
  broadcast = WITH_BROADCAST && self->broadcast ? broadcast_ref (self->broadcast) : NULL;
  g_mutex_unlock (&self->lock);
  return broadcast;
}

LiveBroadcast *
mount_dup_live_broadcast (Mount *self)
{
  LiveBroadcast *live;

  g_mutex_lock (&self->lock);
  live = WITH_BROADCAST && self->live_broadcast ? live_broadcast_ref (self->live_broadcast) : NULL;
  g_mutex_unlock (&self->lock);
  return live;
}

// Replaces the broadcast; each may be NULL.
static void
set_broadcast (Mount *self, Broadcast *broadcast, LiveBroadcast *live)
{
  Broadcast *old_broadcast;
  LiveBroadcast *old_live;

  if (!WITH_BROADCAST)
    return;
  g_mutex_lock (&self->lock);
  old_broadcast = self->broadcast;
  old_live = self->live_broadcast;
  self->broadcast = broadcast;
  self->live_broadcast = live;
  g_mutex_unlock (&self->lock);
  g_clear_pointer (&old_broadcast, broadcast_unref);
  if (old_live)
    live_broadcast_stop (old_live);
  g_clear_pointer (&old_live, live_broadcast_unref);
}

// Makes the broadcast that the configuration says, and ends the one before only then: each packet
// of a stream that changes its group is on one of both, and clients find it by its number.
static void
begin_broadcast (Mount *self, const MountConfig *mount_config)
{
  const BroadcastConfig config = mount_broadcast_get (mount_config);
  g_autoptr (Store) store = config.n_groups > 0 ? mount_dup_store (self) : NULL;
  Broadcast *broadcast =
      WITH_BROADCAST && store ? broadcast_new (self->path, &config, store) : NULL;
  Relay *relay = presentation_get_relay (self->main);
  LiveBroadcast *live = WITH_BROADCAST && config.n_groups > 0 && !store
                            ? live_broadcast_new (self->path, &config, relay)
                            : NULL;

  set_broadcast (self, broadcast, live);
}

// ---- configuration ----

static gboolean
configure_one (Mount *self, Presentation *presentation, MountConfig *config)
{
  const gchar *query = presentation_get_query (presentation);
  GError *error = NULL;
  GPtrArray *stages;

  if (presentation_get_instance (presentation))
    return TRUE; // a session keeps its configuration to its end
  stages = offer_make_chain (config, query, &error);
  if (!stages) {
    g_autofree gchar *reason = g_strdup_printf ("no longer offered: %s", error->message);

    presentation_stop (presentation);
    close_readers (presentation, reason, self);
    g_error_free (error);
    return FALSE;
  }
  presentation_configure (presentation, config, stages);
  g_ptr_array_unref (stages);
  return TRUE;
}

gboolean
mount_configure (Mount *self, MountConfig *config, GError **error)
{
  GPtrArray *main_stages = offer_make_chain (config, NULL, error);
  g_autoptr (GPtrArray) all = NULL;
  gboolean recast;

  if (!main_stages)
    return FALSE;
  all = mount_dup_presentations (self);
  g_mutex_lock (&self->lock);
  g_clear_pointer (&self->session, presentation_unref);
  g_ptr_array_unref (self->main_stages);
  recast = !mount_config_same_broadcast (self->config, config);
  mount_config_ref (config);
  mount_config_unref (self->config);
  self->config = config;
  self->main_stages = main_stages;
  self->unsought = FALSE;
  g_mutex_unlock (&self->lock);
  titles_configure (
      self->titles, mount_store_new (config), config->max_titles, config->start_timeout_ms);
  if (recast)
    begin_broadcast (self, config);

  for (guint i = 0; i < all->len; i++) {
    Presentation *presentation = g_ptr_array_index (all, i);

    if (configure_one (self, presentation, config))
      continue;
    g_mutex_lock (&self->lock);
    g_hash_table_remove (self->presentations, presentation_get_path (presentation));
    g_mutex_unlock (&self->lock);
    remove_path (self, presentation_get_path (presentation));
  }
  return TRUE;
}

const gchar *
mount_get_path (Mount *self)
{
  return self->path;
}

const gchar *
mount_get_pattern (Mount *self)
{
  return self->pattern;
}

gint64
mount_note_use (Mount *self, gboolean used, gint64 now)
{
  if (used)
    self->unused_ns = 0;
  else if (!self->unused_ns)
    self->unused_ns = now;
  return used ? 0 : now - self->unused_ns;
}

MountConfig *
mount_dup_config (Mount *self)
{
  MountConfig *config;

  g_mutex_lock (&self->lock);
  config = mount_config_ref (self->config);
  g_mutex_unlock (&self->lock);
  return config;
}

const MountConfig *
mount_get_config (Mount *self)
{
  return self->config;
}

Presentation *
mount_dup_main (Mount *self)
{
  return presentation_ref (self->main);
}

const gchar *
mount_get_state_name (Mount *self)
{
  return presentation_get_state_name (self->main);
}

void
mount_start (Mount *self)
{
  presentation_start (self->main);
}

void
mount_stop (Mount *self)
{
  g_autoptr (GPtrArray) all = mount_dup_presentations (self);

  g_mutex_lock (&self->lock);
  self->stopped = TRUE;
  g_clear_pointer (&self->session, presentation_unref);
  g_hash_table_remove_all (self->presentations);
  g_mutex_unlock (&self->lock);
  titles_configure (self->titles, NULL, 0, 0);
  set_broadcast (self, NULL, NULL);
  for (guint i = 0; i < all->len; i++) {
    remove_path (self, presentation_get_path (g_ptr_array_index (all, i)));
    presentation_stop (g_ptr_array_index (all, i));
  }
}

// ---- construction ----

Mount *
mount_new (const MountContext *context, MountConfig *config, GError **error)
{
  GPtrArray *main_stages = offer_make_chain (config, NULL, error);
  Mount *self;

  if (!main_stages)
    return NULL;
  self = g_new0 (Mount, 1);
  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->context = context;
  self->path = g_strdup (config->path);
  self->pattern = config->pattern ? g_strdup (mount_pattern_get_path (config->pattern)) : NULL;
  self->config = mount_config_ref (config);
  self->main_stages = main_stages;
  self->choices = choices_new ();
  self->titles = titles_new (config->path, context->title_outlet, context->title_data);
  titles_configure (
      self->titles, mount_store_new (config), config->max_titles, config->start_timeout_ms);
  self->presentations = g_hash_table_new_full (
      g_str_hash, g_str_equal, g_free, (GDestroyNotify) (void (*) (void)) presentation_unref);
  self->main = presentation_ref (mount_add_presentation (self, config->path, NULL, main_stages, 0));
  begin_broadcast (self, config);
  return self;
}

Mount *
mount_ref (Mount *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

static gboolean
free_here (gpointer data)
{
  Mount *self = data;

  mount_stop (self);
  titles_unref (self->titles);
  presentation_unref (self->main);
  g_hash_table_unref (self->presentations);
  choices_unref (self->choices);
  mount_config_unref (self->config);
  g_ptr_array_unref (self->main_stages);
  g_mutex_clear (&self->lock);
  g_free (self->path);
  g_free (self->pattern);
  g_free (self);
  return G_SOURCE_REMOVE;
}

void
mount_unref (Mount *self)
{
  if (g_atomic_ref_count_dec (&self->refs))
    g_main_context_invoke (NULL, free_here, self);
}
