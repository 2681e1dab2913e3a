// SPDX-License-Identifier: LGPL-2.1-or-later
#include "mounts/presentation_private.h"

#include "base/clock.h"
#include "base/log.h"

// Time, beyond the interval, that readers of a session have to receive the end of the title.
#define TITLE_TAIL_MS 1000

// ---- branches ----

void
presentation_drop_next (Presentation *self)
{
  g_clear_handle_id (&self->switch_timeout, g_source_remove);
  g_clear_pointer (&self->next, branch_free);
}

static void
log_up (Presentation *self, Branch *branch)
{
  gchar *uri = branch_dup_uri (branch);

  if (uri)
    log_event ("mount %s up: %s, %u tracks", self->label, uri, relay_n_tracks (self->relay));
  g_free (uri);
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
  presentation_close_readers (self, "the new pipeline has different tracks");
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
  presentation_close_readers (self, "the title has ended");
  return G_SOURCE_REMOVE;
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
  if (!self->end)
    self->end = g_timeout_add (self->config->interval_ms + TITLE_TAIL_MS, on_title_end, self);
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
  if (retry_ms > 0)
    log_event_limited (&self->failures, "mount %s down: %s; next try in %.1f s", self->label,
        reason, retry_ms / 1000.0);
  else
    log_event_limited (&self->failures, "mount %s waits for a publisher: %s", self->label, reason);
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
    presentation_close_readers (self, "the upstream came back with different tracks");
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
  return branch_new (self->graph, self->config, self->stages, self->instance, self->relay,
      &branch_callbacks, self);
}

void
presentation_start_branch (Presentation *self)
{
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
  presentation_drop_next (self);
  return G_SOURCE_REMOVE;
}

void
presentation_replace_branch (Presentation *self)
{
  presentation_drop_next (self);
  branch_free (self->current);
  self->current = make_branch (self);
  g_mutex_lock (&self->lock);
  self->failing_until = 0;
  g_mutex_unlock (&self->lock);
  branch_start (self->current);
}

void
presentation_start_beside (Presentation *self)
{
  presentation_drop_next (self);
  self->next = make_branch (self);
  self->switch_timeout = g_timeout_add (self->config->switch_timeout_ms, on_switch_timeout, self);
  relay_prefer (self->relay, self->next->source);
  branch_start (self->next);
}
