// SPDX-License-Identifier: LGPL-2.1-or-later
#include "content/presentation.h"

#include "base/clock.h"
#include "base/log.h"
#include "relay/relay_link.h"

// What readers of a stored title may still have before them when the last of them gets the end.
#define TITLE_TAIL_MS 1000

// A chain of stages that feeds the presentation's relay, or is to.
typedef struct {
  Presentation *owner;
  Node *node;
  RelaySource *source;
  gchar *key;
  gboolean running;
  gboolean changed; // readers could not go on with its tracks
  gchar *problem;   // why it gives nothing, or NULL
} Branch;

struct _Presentation {
  gatomicrefcount refs;
  gchar *path, *mount_path, *query, *label;
  Relay *relay;
  const PresentationCallbacks *callbacks;
  gpointer data;
  guint instance;
  gint64 made; // ns

  // Main thread only.
  Graph *graph;
  GPtrArray *stages;
  guint end;       // of a stored title: what is still in the window is sent
  Branch *current; // NULL while nobody needs it
  Branch *next;
  guint switch_timeout;
  gchar *problem; // of the last change
  guint linger;

  GMutex lock; // all below
  MountConfig *config;
  GList *waiting; // of Waiter
  guint n_users;
  gboolean known;       // media has flowed, so the tracks are real
  gint64 failing_until; // ns: the last attempt failed and the next comes then; 0 while one runs
  gboolean stopped;
  gboolean ended; // a stored title: nothing more will come
  guint media_generation;
  GstRTSPMedia *media; // the one that is kept prepared
};

MountConfig *
presentation_dup_config (Presentation *self)
{
  MountConfig *config;

  g_mutex_lock (&self->lock);
  config = mount_config_ref (self->config);
  g_mutex_unlock (&self->lock);
  return config;
}

// ---- who waits ----

typedef struct {
  Presentation *presentation;
  PresentationToldFunc told;
  gpointer data;
  GSource *deadline; // on the main thread
} Waiter;

static void
tell (gpointer data)
{
  Waiter *waiter = data;

  g_source_destroy (waiter->deadline);
  g_source_unref (waiter->deadline);
  waiter->told (waiter->data);
  g_free (waiter);
}

static void
tell_all (Presentation *self)
{
  GList *waiting;

  g_mutex_lock (&self->lock);
  waiting = g_steal_pointer (&self->waiting);
  g_mutex_unlock (&self->lock);
  g_list_free_full (waiting, tell);
}

static gboolean
deadline_over (gpointer data)
{
  Waiter *waiter = data;
  Presentation *self = waiter->presentation;
  GList *link;

  g_mutex_lock (&self->lock);
  link = g_list_find (self->waiting, waiter);
  if (link)
    self->waiting = g_list_delete_link (self->waiting, link);
  g_mutex_unlock (&self->lock);
  if (link)
    tell (waiter);
  return G_SOURCE_REMOVE;
}

// With the lock held.
static PresentationState
get_state (Presentation *self)
{
  if (self->stopped)
    return PRESENTATION_DOWN;
  if (self->known)
    return PRESENTATION_KNOWN;
  return clock_now () < self->failing_until ? PRESENTATION_DOWN : PRESENTATION_STARTING;
}

gboolean
presentation_is_at_start (Presentation *self)
{
  gboolean is;

  g_mutex_lock (&self->lock);
  is = self->instance && !self->ended && !self->stopped
       && clock_now () - self->made < (gint64) self->config->interval_ms * GST_MSECOND;
  g_mutex_unlock (&self->lock);
  return is;
}

PresentationState
presentation_ask (Presentation *self)
{
  PresentationState state;

  g_mutex_lock (&self->lock);
  state = get_state (self);
  g_mutex_unlock (&self->lock);
  return state;
}

void
presentation_wait (Presentation *self, PresentationToldFunc told, gpointer data)
{
  Waiter *waiter = g_new (Waiter, 1);
  gboolean waits;

  g_mutex_lock (&self->lock);
  *waiter = (Waiter) { self, told, data, g_timeout_source_new (self->config->start_timeout_ms) };
  g_source_set_callback (waiter->deadline, deadline_over, waiter, NULL);
  waits = get_state (self) == PRESENTATION_STARTING;
  if (waits) {
    self->waiting = g_list_prepend (self->waiting, waiter);
    g_source_attach (waiter->deadline, NULL);
  }
  g_mutex_unlock (&self->lock);
  if (!waits)
    tell (waiter);
}

// ---- media ----

gchar *
presentation_dup_media_key (Presentation *self)
{
  gchar *key;

  g_mutex_lock (&self->lock);
  key = g_strdup_printf ("%s#%u", self->path, self->media_generation);
  g_mutex_unlock (&self->lock);
  return key;
}

void
presentation_keep_media (Presentation *self, GstRTSPMedia *media)
{
  gboolean keep;

  g_mutex_lock (&self->lock);
  // Where nobody is left, nobody would let it go: update() and linger_over() may have been by.
  keep = !self->media && !self->stopped && (self->n_users > 0 || !self->config->on_demand);
  if (keep)
    self->media = g_object_ref (media);
  g_mutex_unlock (&self->lock);
  // Prepared as it is, this counts one more user of it.
  if (keep)
    gst_rtsp_media_prepare (media, NULL);
}

// With the lock held: readers who come from now on get another one.
static GstRTSPMedia *
steal_media (Presentation *self)
{
  self->media_generation++;
  return g_steal_pointer (&self->media);
}

static void
release_media (GstRTSPMedia *media)
{
  if (!media)
    return;
  gst_rtsp_media_unprepare (media);
  g_object_unref (media);
}

static void
retire_media (Presentation *self)
{
  GstRTSPMedia *media;

  g_mutex_lock (&self->lock);
  media = steal_media (self);
  g_mutex_unlock (&self->lock);
  release_media (media);
}

static void
open_media (Presentation *self)
{
  gboolean wanted;

  g_mutex_lock (&self->lock);
  wanted = self->known && !self->media && !self->stopped && !self->config->on_demand;
  g_mutex_unlock (&self->lock);
  if (wanted)
    self->callbacks->open_media (self, self->data);
}

static void
close_readers (Presentation *self, const gchar *reason)
{
  retire_media (self);
  if (!self->stopped)
    self->callbacks->close_readers (self, reason, self->data);
  open_media (self);
}

// ---- branches ----

static void branch_stop (Branch *branch);
static void branch_free (Branch *branch);

static void
drop_next (Presentation *self)
{
  g_clear_handle_id (&self->switch_timeout, g_source_remove);
  g_clear_pointer (&self->next, branch_free);
}

static void
log_up (Presentation *self, Node *node)
{
  while (node_get_input (node))
    node = node_get_input (node);
  for (guint i = 0; i < node_n_inlets (node); i++) {
    NodeInlet inlet = node_get_inlet (node, i);

    if (inlet.up) {
      log_event (
          "mount %s up: %s, %u tracks", self->label, inlet.uri, relay_n_tracks (self->relay));
      return;
    }
  }
}

static void
switched (Presentation *self)
{
  Branch *old = self->current;

  self->current = g_steal_pointer (&self->next);
  g_clear_handle_id (&self->switch_timeout, g_source_remove);
  g_clear_pointer (&self->problem, g_free);
  log_event ("mount %s switched to its new pipeline", self->label);
  log_up (self, self->current->node);
  g_clear_pointer (&old, branch_free);
}

// Readers have to go, and come again.
static void
switch_by_force (Presentation *self)
{
  relay_take (self->relay, self->next->source);
  close_readers (self, "the new pipeline gives other tracks");
  switched (self);
}

static void
on_up (gpointer user)
{
  Branch *branch = user;
  Presentation *self = branch->owner;

  g_clear_pointer (&branch->problem, g_free);
  if (branch == self->next) {
    if (branch->changed)
      switch_by_force (self);
    return;
  }
  log_up (self, branch->node);
  g_mutex_lock (&self->lock);
  self->known = TRUE;
  g_mutex_unlock (&self->lock);
  tell_all (self);
  open_media (self);
}

static gboolean
title_over (gpointer data)
{
  Presentation *self = data;

  self->end = 0;
  close_readers (self, "the title has ended");
  return G_SOURCE_REMOVE;
}

// Nobody begins with it any more, and its upstream is not to begin anew. The last reader to come is
// the interval behind.
static void
end_title (Presentation *self, Branch *branch)
{
  g_mutex_lock (&self->lock);
  self->ended = TRUE;
  g_mutex_unlock (&self->lock);
  branch_stop (branch);
  if (!self->end)
    self->end = g_timeout_add (self->config->interval_ms + TITLE_TAIL_MS, title_over, self);
}

static void
on_down (gpointer user, const gchar *reason, guint retry_ms)
{
  Branch *branch = user;
  Presentation *self = branch->owner;

  g_free (branch->problem);
  branch->problem = g_strdup (reason);
  log_event ("mount %s %s: %s; next try in %.1f s", self->label,
      branch == self->next ? "can't switch yet" : "down", reason, retry_ms / 1000.0);
  if (branch == self->next)
    return;
  if (self->instance && self->known) {
    end_title (self, branch);
    return;
  }
  g_mutex_lock (&self->lock);
  self->failing_until = clock_now () + (gint64) retry_ms * GST_MSECOND;
  g_mutex_unlock (&self->lock);
  tell_all (self);
}

static void
on_connecting (gpointer user)
{
  Branch *branch = user;
  Presentation *self = branch->owner;

  if (branch != self->current)
    return;
  g_mutex_lock (&self->lock);
  self->failing_until = 0;
  g_mutex_unlock (&self->lock);
}

// Of other tracks the relay tells: on_begun().
static const NodeCallbacks node_callbacks = { on_up, on_down, on_connecting, NULL };

static void
on_begun (gpointer owner, RelayTracks tracks)
{
  Branch *branch = owner;
  Presentation *self = branch->owner;

  if (branch == self->current && tracks == RELAY_TRACKS_CHANGED) {
    close_readers (self, "the upstream came back with other tracks");
  } else if (branch == self->next) {
    branch->changed = tracks == RELAY_TRACKS_CHANGED;
    if (branch->changed && node_get_state (branch->node) == NODE_UP)
      switch_by_force (self);
  }
}

static void
on_flows (gpointer owner)
{
  Branch *branch = owner;

  if (branch == branch->owner->next)
    switched (branch->owner);
}

static const RelaySourceCallbacks source_callbacks = { on_begun, on_flows };

static Branch *
branch_new (Presentation *owner, MountConfig *config, GPtrArray *stages)
{
  Branch *branch = g_new0 (Branch, 1);

  branch->owner = owner;
  branch->key = graph_dup_key (config, stages, owner->instance);
  branch->node = graph_get (owner->graph, config, stages, owner->instance);
  branch->source = relay_source_new (owner->relay, &source_callbacks, branch);
  return branch;
}

static void
branch_start (Branch *branch)
{
  if (branch->running)
    return;
  branch->running = TRUE;
  relay_link (node_get_relay (branch->node), branch->source);
  node_use (branch->node, &node_callbacks, branch);
  // It runs already, for others.
  if (node_get_state (branch->node) == NODE_UP)
    on_up (branch);
}

static void
branch_stop (Branch *branch)
{
  if (!branch->running)
    return;
  branch->running = FALSE;
  relay_unlink (node_get_relay (branch->node), branch->source);
  node_unuse (branch->node, branch);
}

static void
branch_free (Branch *branch)
{
  branch_stop (branch);
  relay_source_end (branch->source);
  relay_source_unref (branch->source);
  node_unref (branch->node);
  g_free (branch->key);
  g_free (branch->problem);
  g_free (branch);
}

// ---- another chain ----

static gboolean
switch_over (gpointer data)
{
  Presentation *self = data;

  self->switch_timeout = 0;
  g_free (self->problem);
  self->problem = g_strdup_printf ("the new pipeline gave nothing within %.1f s%s%s",
      self->config->switch_timeout_ms / 1000.0, self->next->problem ? ": " : "",
      self->next->problem ? self->next->problem : "");
  log_event ("mount %s stays as it was: %s", self->label, self->problem);
  drop_next (self);
  return G_SOURCE_REMOVE;
}

// Nobody has seen anything of the old one.
static void
replace (Presentation *self)
{
  drop_next (self);
  branch_free (self->current);
  self->current = branch_new (self, self->config, self->stages);
  g_mutex_lock (&self->lock);
  self->failing_until = 0;
  g_mutex_unlock (&self->lock);
  branch_start (self->current);
}

static void
start_beside (Presentation *self)
{
  drop_next (self);
  self->next = branch_new (self, self->config, self->stages);
  self->switch_timeout = g_timeout_add (self->config->switch_timeout_ms, switch_over, self);
  relay_prefer (self->relay, self->next->source);
  branch_start (self->next);
}

static gboolean update (gpointer data);

static void
configure_media (Presentation *self, const MountConfig *old)
{
  gboolean closes = mount_config_get_effect (old, self->config) == MOUNT_EFFECT_CLOSES;
  GstRTSPMedia *media;

  g_mutex_lock (&self->lock);
  media = self->media ? g_object_ref (self->media) : NULL;
  g_mutex_unlock (&self->lock);
  if (media && closes)
    close_readers (self, "the cache lies elsewhere now, and begins anew");
  else if (media)
    self->callbacks->configure_media (self, media, self->data);
  g_clear_object (&media);
}

void
presentation_configure (Presentation *self, MountConfig *config, GPtrArray *stages)
{
  gchar *key = graph_dup_key (config, stages, self->instance);
  MountConfig *old_config = self->config;
  GPtrArray *old_stages = self->stages;

  g_mutex_lock (&self->lock);
  self->config = mount_config_ref (config);
  g_mutex_unlock (&self->lock);
  self->stages = g_ptr_array_ref (stages);
  configure_media (self, old_config);
  mount_config_unref (old_config);
  g_ptr_array_unref (old_stages);

  g_clear_pointer (&self->problem, g_free);
  if (!self->current || g_str_equal (key, self->current->key))
    drop_next (self);
  else if (presentation_ask (self) != PRESENTATION_KNOWN)
    replace (self);
  else if (!self->next || !g_str_equal (key, self->next->key))
    start_beside (self);
  g_free (key);
  update (self);
}

gboolean
presentation_is_switching (Presentation *self)
{
  return self->next != NULL;
}

gchar *
presentation_dup_problem (Presentation *self)
{
  return g_strdup (self->problem);
}

// ---- users ----

static gboolean
linger_over (gpointer data)
{
  Presentation *self = data;
  GstRTSPMedia *media = NULL;
  gboolean idle;

  self->linger = 0;
  g_mutex_lock (&self->lock);
  // In one step: who comes now either keeps it, or gets new media.
  idle = self->n_users == 0;
  if (idle)
    media = steal_media (self);
  g_mutex_unlock (&self->lock);
  if (!idle)
    return G_SOURCE_REMOVE;
  if (self->current)
    log_event (
        "mount %s down: no readers for %.1f s", self->label, self->config->linger_ms / 1000.0);
  drop_next (self);
  g_clear_pointer (&self->current, branch_free);
  release_media (media);
  self->callbacks->idle (self, self->data);
  return G_SOURCE_REMOVE;
}

// On the main thread after the number of users went to or from none.
static gboolean
update (gpointer data)
{
  Presentation *self = data;
  gboolean wanted, stopped, has_media;

  g_mutex_lock (&self->lock);
  stopped = self->stopped || self->ended;
  wanted = self->n_users > 0 || !self->config->on_demand;
  // Its tracks are known from before: whoever was here and is gone again already has had media.
  has_media = self->media != NULL;
  g_mutex_unlock (&self->lock);

  g_clear_handle_id (&self->linger, g_source_remove);
  if (stopped)
    return G_SOURCE_REMOVE;
  if (wanted) {
    if (!self->current)
      self->current = branch_new (self, self->config, self->stages);
    branch_start (self->current);
    open_media (self);
  } else if (self->current || has_media) {
    self->linger = g_timeout_add (self->config->linger_ms, linger_over, self);
  }
  return G_SOURCE_REMOVE;
}

static void
update_later (Presentation *self)
{
  g_idle_add_full (G_PRIORITY_DEFAULT, update, presentation_ref (self),
      (GDestroyNotify) (void (*) (void)) presentation_unref);
}

void
presentation_use (Presentation *self)
{
  gboolean first;

  g_mutex_lock (&self->lock);
  first = self->n_users++ == 0;
  g_mutex_unlock (&self->lock);
  if (first)
    update_later (self);
}

void
presentation_unuse (Presentation *self)
{
  gboolean last;

  g_mutex_lock (&self->lock);
  last = --self->n_users == 0;
  g_mutex_unlock (&self->lock);
  if (last)
    update_later (self);
}

guint
presentation_n_users (Presentation *self)
{
  guint n;

  g_mutex_lock (&self->lock);
  n = self->n_users;
  g_mutex_unlock (&self->lock);
  return n;
}

// ---- outside ----

const gchar *
presentation_get_path (Presentation *self)
{
  return self->path;
}

guint
presentation_get_instance (Presentation *self)
{
  return self->instance;
}

const gchar *
presentation_get_mount_path (Presentation *self)
{
  return self->mount_path;
}

const gchar *
presentation_get_state_name (Presentation *self)
{
  return node_state_name (self->current ? node_get_state (self->current->node) : NODE_IDLE);
}

const gchar *
presentation_get_query (Presentation *self)
{
  return self->query;
}

const gchar *
presentation_get_label (Presentation *self)
{
  return self->label;
}

Relay *
presentation_get_relay (Presentation *self)
{
  return self->relay;
}

Node *
presentation_get_node (Presentation *self)
{
  return self->current ? self->current->node : NULL;
}

Node *
presentation_get_next_node (Presentation *self)
{
  return self->next ? self->next->node : NULL;
}

void
presentation_start (Presentation *self)
{
  update (self);
}

void
presentation_stop (Presentation *self)
{
  g_mutex_lock (&self->lock);
  self->stopped = TRUE;
  g_mutex_unlock (&self->lock);
  tell_all (self);
  g_clear_handle_id (&self->linger, g_source_remove);
  g_clear_handle_id (&self->end, g_source_remove);
  drop_next (self);
  g_clear_pointer (&self->current, branch_free);
  retire_media (self);
}

Presentation *
presentation_new (Graph *graph, const gchar *path, const gchar *query, MountConfig *config,
    GPtrArray *stages, guint instance, const PresentationCallbacks *callbacks, gpointer data)
{
  Presentation *self = g_new0 (Presentation, 1);

  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->path = g_strdup (path);
  self->mount_path = g_strdup (config->path);
  self->query = g_strdup (query);
  self->label = instance ? g_strdup_printf ("%s#%u", config->path, instance)
                : query  ? g_strdup_printf ("%s?%s", config->path, query)
                         : g_strdup (config->path);
  self->relay = relay_new ();
  relay_expect_sinks (self->relay);
  self->callbacks = callbacks;
  self->data = data;
  self->graph = graph;
  self->instance = instance;
  self->made = clock_now ();
  self->config = mount_config_ref (config);
  self->stages = g_ptr_array_ref (stages);
  return self;
}

Presentation *
presentation_ref (Presentation *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

static gboolean
free_here (gpointer data)
{
  Presentation *self = data;

  presentation_stop (self);
  relay_unref (self->relay);
  mount_config_unref (self->config);
  g_ptr_array_unref (self->stages);
  g_mutex_clear (&self->lock);
  g_free (self->problem);
  g_free (self->path);
  g_free (self->mount_path);
  g_free (self->query);
  g_free (self->label);
  g_free (self);
  return G_SOURCE_REMOVE;
}

void
presentation_unref (Presentation *self)
{
  if (g_atomic_ref_count_dec (&self->refs))
    g_main_context_invoke (NULL, free_here, self);
}
