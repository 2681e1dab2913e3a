// SPDX-License-Identifier: LGPL-2.1-or-later
// One state machine: whether the chain of stages runs, is replaced, fails or has ended, and what
// its users and its readers are told of it.
#include "mounts/presentation_private.h"

#include "base/clock.h"
#include "base/log.h"
#include "events/events.h"

// Time, beyond the interval, that readers of a session have to receive the end of the title.
#define TITLE_TAIL_MS 1000

MountConfig *
presentation_dup_config (Presentation *self)
{
  MountConfig *config;

  g_mutex_lock (&self->lock);
  config = mount_config_ref (self->config);
  g_mutex_unlock (&self->lock);
  return config;
}

gboolean
presentation_has_cache (Presentation *self)
{
  gboolean has;

  g_mutex_lock (&self->lock);
  has = self->config->cache.time_ms > 0;
  g_mutex_unlock (&self->lock);
  return has;
}

// ---- the state, and callbacks that wait for it ----

// Call with the lock held.
static PresentationState
get_state (Presentation *self)
{
  if (self->stopped || self->ended)
    return PRESENTATION_DOWN;
  if (self->known)
    return presentation_awaits_place (self) ? PRESENTATION_STARTING : PRESENTATION_READY;
  return clock_now () < self->failing_until ? PRESENTATION_DOWN : PRESENTATION_STARTING;
}

gboolean
presentation_is_at_start (Presentation *self)
{
  gboolean at_start;

  g_mutex_lock (&self->lock);
  at_start = self->instance && !self->ended && !self->stopped
             && clock_now () - self->made < (gint64) self->config->interval_ms * GST_MSECOND;
  g_mutex_unlock (&self->lock);
  return at_start;
}

PresentationState
presentation_ask (Presentation *self, GError **error)
{
  PresentationState state;

  g_mutex_lock (&self->lock);
  state = get_state (self);
  if (state == PRESENTATION_DOWN && self->unfit)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED, "%s: %s", self->label, self->unfit);
  else if (state == PRESENTATION_DOWN)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY, NO_MEDIA_PROBLEM, self->label);
  g_mutex_unlock (&self->lock);
  return state;
}

void
presentation_end_waiting (Presentation *self)
{
  if (presentation_ask (self, NULL) != PRESENTATION_STARTING)
    waiting_end (self->waiting);
}

void
presentation_wait (Presentation *self, PresentationDoneFunc done, gpointer data)
{
  gboolean waits;

  g_mutex_lock (&self->lock);
  waits = get_state (self) == PRESENTATION_STARTING;
  if (waits)
    waiting_add (self->waiting, self->config->start_timeout_ms, done, data);
  g_mutex_unlock (&self->lock);
  if (!waits)
    done (data);
}

static void
close_readers (Presentation *self, const gchar *reason)
{
  if (!self->stopped)
    self->callbacks->close_readers (self, reason, self->data);
}

// ---- branches: the chains of stages that feed the relay; main thread only ----

static void
drop_next (Presentation *self)
{
  g_clear_handle_id (&self->switch_timeout, g_source_remove);
  g_clear_pointer (&self->next, branch_free);
}

// Makes the event of a mount that is up or down now, unless it was so before.
static void
tell (Presentation *self, gboolean is_up, const gchar *reason)
{
  if (self->told_up == is_up || !g_str_equal (self->path, self->mount_path))
    return;
  self->told_up = is_up;
  events_add (is_up ? EVENT_UP : EVENT_DOWN, self->mount_path, "reason", reason, NULL);
}

static void
log_up (Presentation *self, Branch *branch)
{
  g_autofree gchar *uri = branch_dup_uri (branch);

  if (self->added)
    log_event ("mount %s has what its stage %s makes", self->label, self->added);
  else if (uri)
    log_event ("mount %s up: %s, %u tracks", self->label, uri, relay_n_tracks (self->relay));
  tell (self, TRUE, NULL);
}

static void
switched (Presentation *self)
{
  Branch *old = self->current;

  self->current = g_steal_pointer (&self->next);
  g_clear_handle_id (&self->switch_timeout, g_source_remove);
  g_clear_pointer (&self->problem, g_free);
  log_event ("mount %s switched to its new pipeline", self->label);
  log_up (self, self->current);
  g_clear_pointer (&old, branch_free);
}

// Switches to the next branch although its tracks differ, and closes the readers.
static void
switch_and_close (Presentation *self)
{
  relay_take (self->relay, self->next->source);
  close_readers (self, "the new pipeline has different tracks");
  switched (self);
}

static void
on_up (Branch *branch, gpointer owner)
{
  Presentation *self = owner;

  if (branch == self->next) {
    if (branch->changed)
      switch_and_close (self);
    return;
  }
  log_up (self, branch);
  presentation_note_up (self);
  g_mutex_lock (&self->lock);
  self->known = TRUE;
  g_clear_pointer (&self->unfit, g_free);
  g_mutex_unlock (&self->lock);
  self->callbacks->changed (self, self->data);
  presentation_end_waiting (self);
}

static gboolean
on_title_end (gpointer data)
{
  Presentation *self = data;

  self->end = 0;
  if (self->player && !tape_player_is_at_end (self->player)) // it has been sought
    return G_SOURCE_REMOVE;
  close_readers (self, "the title has ended");
  return G_SOURCE_REMOVE;
}

void
presentation_close_at_end (Presentation *self, guint after_ms)
{
  if (!self->end)
    self->end = g_timeout_add (after_ms + TITLE_TAIL_MS, on_title_end, self);
}

// Ends a session: it accepts no more readers, and its upstream does not connect again. The last
// reader is at most the interval behind.
static void
end_title (Presentation *self, Branch *branch)
{
  g_mutex_lock (&self->lock);
  self->ended = TRUE;
  g_mutex_unlock (&self->lock);
  branch_stop (branch);
  if (self->tape)
    tape_end (self->tape);
  presentation_close_at_end (self, self->config->interval_ms);
}

static void
on_down (Branch *branch, const gchar *reason, guint retry_ms, gpointer owner)
{
  Presentation *self = owner;

  if (branch == self->next) {
    log_event_limited (&self->failures, "mount %s cannot switch yet: %s; next try in %.1f s",
        self->label, reason, retry_ms / 1000.0);
    return;
  }
  if (self->added)
    log_event_limited (&self->failures,
        "mount %s goes on without what its stage %s makes: %s; next try in %.1f s", self->label,
        self->added, reason, retry_ms / 1000.0);
  else if (retry_ms > 0)
    log_event_limited (&self->failures, "mount %s down: %s; next try in %.1f s", self->label,
        reason, retry_ms / 1000.0);
  else
    log_event_limited (&self->failures, "mount %s waits for a publisher: %s", self->label, reason);
  if (!self->added)
    tell (self, FALSE, reason);
  if (self->instance && self->known) {
    end_title (self, branch);
    return;
  }
  g_mutex_lock (&self->lock);
  self->failing_until = clock_now () + (gint64) retry_ms * GST_MSECOND;
  g_free (self->unfit);
  self->unfit = g_strdup (node_get_unfit (branch->node));
  g_mutex_unlock (&self->lock);
  presentation_end_waiting (self);
}

static void
on_connecting (Branch *branch, gpointer owner)
{
  Presentation *self = owner;

  if (branch != self->current)
    return;
  g_mutex_lock (&self->lock);
  self->failing_until = 0;
  g_mutex_unlock (&self->lock);
}

static void
on_begun (Branch *branch, gpointer owner)
{
  Presentation *self = owner;

  if (branch == self->current && branch->changed)
    close_readers (self, "the upstream came back with different tracks");
  else if (branch == self->next && branch->changed && node_get_state (branch->node) == NODE_UP)
    switch_and_close (self);
}

static void
on_flows (Branch *branch, gpointer owner)
{
  Presentation *self = owner;

  if (branch == self->next)
    switched (self);
}

static void
on_failed_over (Branch *branch, gpointer owner)
{
  Presentation *self = owner;

  if (branch == self->current)
    self->n_failovers++;
}

static const BranchCallbacks branch_callbacks = { on_up, on_down, on_connecting, on_begun, on_flows,
  on_failed_over };

static Branch *
make_branch (Presentation *self)
{
  Branch *branch = branch_new (self->graph, self->config, self->stages, self->instance, self->relay,
      &branch_callbacks, self);

  if (self->at > 0)
    node_play_from (branch->node, self->at);
  return branch;
}

// Starts the current branch if it does not run.
static void
start_branch (Presentation *self)
{
  if (self->player)
    return;
  if (!self->current)
    self->current = make_branch (self);
  branch_start (self->current);
}

// ---- changing the chain ----

static gboolean
on_switch_timeout (gpointer data)
{
  Presentation *self = data;

  self->switch_timeout = 0;
  g_free (self->problem);
  self->problem = g_strdup_printf ("the new pipeline gave no media within %.1f s%s%s",
      self->config->switch_timeout_ms / 1000.0, self->next->problem ? ": " : "",
      self->next->problem ? self->next->problem : "");
  log_event ("mount %s keeps its old pipeline: %s", self->label, self->problem);
  drop_next (self);
  return G_SOURCE_REMOVE;
}

// Replaces the current branch at once. Call only if no reader has received its media.
static void
replace_branch (Presentation *self)
{
  drop_next (self);
  branch_free (self->current);
  self->current = make_branch (self);
  g_mutex_lock (&self->lock);
  self->failing_until = 0;
  g_mutex_unlock (&self->lock);
  branch_start (self->current);
}

// Says that a change never took effect, because the next one came first.
static void
drop_overtaken (Presentation *self)
{
  if (!self->next)
    return;
  self->problem = g_strdup ("the pipeline of an earlier change was dropped: another change came "
                            "before it had begun");
  log_event ("mount %s: %s", self->label, self->problem);
  drop_next (self);
}

// Starts the next branch, which replaces the current one at a join point.
static void
start_beside (Presentation *self)
{
  drop_overtaken (self);
  self->next = make_branch (self);
  self->switch_timeout = g_timeout_add (self->config->switch_timeout_ms, on_switch_timeout, self);
  relay_prefer (self->relay, self->next->source);
  branch_start (self->next);
}

// ---- configuration ----

static gboolean update (gpointer data);

static gboolean
is_known (Presentation *self)
{
  gboolean known;

  g_mutex_lock (&self->lock);
  known = self->known && !self->stopped;
  g_mutex_unlock (&self->lock);
  return known;
}

void
presentation_configure (Presentation *self, MountConfig *config, GPtrArray *stages)
{
  g_autofree gchar *key = graph_dup_key (config, stages, self->instance);
  MountConfig *old_config = self->config;
  GPtrArray *old_stages = self->stages;

  g_mutex_lock (&self->lock);
  self->config = mount_config_ref (config);
  self->stages = g_ptr_array_ref (stages);
  g_mutex_unlock (&self->lock);
  self->callbacks->changed (self, self->data);
  mount_config_unref (old_config);
  g_ptr_array_unref (old_stages);

  g_clear_pointer (&self->problem, g_free);
  if (!self->current || g_str_equal (key, self->current->key))
    drop_overtaken (self);
  else if (!is_known (self))
    replace_branch (self);
  else if (!self->next || !g_str_equal (key, self->next->key))
    start_beside (self);
  update (self);
  presentation_configure_derived (self);
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

// Nobody else can join what plays from the middle of a title.
static guint
get_linger (Presentation *self)
{
  return self->player || self->at > 0 ? 0 : self->config->linger_ms;
}

static gboolean
on_linger_timeout (gpointer data)
{
  Presentation *self = data;
  gboolean idle;

  self->linger = 0;
  g_mutex_lock (&self->lock);
  idle = self->n_users == 0;
  g_mutex_unlock (&self->lock);
  if (!idle)
    return G_SOURCE_REMOVE;
  if (self->current && !self->ended)
    log_event ("mount %s down: no readers for %.1f s", self->label, get_linger (self) / 1000.0);
  tell (self, FALSE, "no readers");
  drop_next (self);
  g_clear_pointer (&self->current, branch_free);
  self->callbacks->changed (self, self->data);
  self->callbacks->idle (self, self->data);
  return G_SOURCE_REMOVE;
}

// Starts the chain if there are users, else the linger time. Runs on the main thread when the first
// user has joined, the last one has left, or the configuration has changed.
static gboolean
update (gpointer data)
{
  Presentation *self = data;
  gboolean wanted, stopped, ended;

  g_mutex_lock (&self->lock);
  stopped = self->stopped;
  ended = self->ended;
  wanted = self->n_users > 0
           || (!self->ended && !self->config->on_demand && !self->player && self->at == 0);
  g_mutex_unlock (&self->lock);

  g_clear_handle_id (&self->linger, g_source_remove);
  if (stopped)
    return G_SOURCE_REMOVE;
  if (wanted && ended)
    return G_SOURCE_REMOVE; // its readers leave soon
  if (wanted)
    start_branch (self);
  else
    self->linger = g_timeout_add (get_linger (self), on_linger_timeout, self);
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

void
presentation_leave (Presentation *self)
{
  presentation_unuse (self);
  presentation_unref (self);
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

// ---- properties ----

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

guint64
presentation_get_failovers (Presentation *self)
{
  return self->n_failovers;
}

Node *
presentation_get_next_node (Presentation *self)
{
  return self->next ? self->next->node : NULL;
}

void
presentation_start (Presentation *self)
{
  if (!self->config->on_demand)
    update (self);
}

void
presentation_stop (Presentation *self)
{
  g_mutex_lock (&self->lock);
  self->stopped = TRUE;
  g_mutex_unlock (&self->lock);
  presentation_stop_derived (self);
  waiting_end (self->waiting);
  g_clear_handle_id (&self->linger, g_source_remove);
  g_clear_handle_id (&self->end, g_source_remove);
  presentation_stop_title (self);
  tell (self, FALSE, "the mount has ended");
  drop_next (self);
  g_clear_pointer (&self->current, branch_free);
  if (g_atomic_int_compare_and_exchange (&self->is_choice, TRUE, FALSE))
    choices_leave (self->choices);
}

void
presentation_set_choices (Presentation *self, Choices *choices, gboolean counted)
{
  choices_unref (self->choices);
  self->choices = choices_ref (choices);
  g_atomic_int_set (&self->is_choice, counted);
}

gboolean
presentation_take_choice (Presentation *self, GError **error)
{
  g_autoptr (MountConfig) config = presentation_dup_config (self);

  return choices_take (self->choices, config->max_presentations, error);
}

void
presentation_leave_choice (Presentation *self)
{
  choices_leave (self->choices);
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
  self->failures = LOG_LIMIT_FAILURES;
  self->choices = choices_new ();
  self->relay = relay_new ();
  relay_expect_sinks (self->relay, TRUE);
  self->callbacks = callbacks;
  self->data = data;
  self->graph = graph;
  self->instance = instance;
  self->waiting = waiting_new ();
  self->made = clock_now ();
  self->config = mount_config_ref (config);
  self->stages = g_ptr_array_ref (stages);
  self->derived = g_ptr_array_new ();
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
  g_clear_pointer (&self->tape, tape_unref);
  g_clear_pointer (&self->player, tape_player_unref);
  waiting_free (self->waiting);
  choices_unref (self->choices);
  relay_unref (self->relay);
  mount_config_unref (self->config);
  g_ptr_array_unref (self->stages);
  g_mutex_clear (&self->lock);
  g_ptr_array_unref (self->derived);
  g_free (self->added);
  g_free (self->problem);
  g_free (self->unfit);
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
