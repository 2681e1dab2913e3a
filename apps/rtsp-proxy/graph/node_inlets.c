// SPDX-License-Identifier: LGPL-2.1-or-later

// The upstreams of a node in order of preference, or its stage.

#include "base/clock.h"
#include "base/log.h"
#include "graph/node_link.h"
#include "graph/node_private.h"
#include "relay/relay_link.h"

// An upstream that is silent for longer than PATIENCE counts as failed, and the next one starts. A
// preferred upstream takes over again after it has been up for WELL_AFTER.
#define PATIENCE (400 * GST_MSECOND)
#define WELL_AFTER (5 * GST_SECOND)
// With a warm standby, an upstream counts as failed when it is silent for GAPS times as long as it
// was between two packets lately: an upstream with 1 frame a second must not fail each second.
// Until its gaps are known, the limit is FIRST_PATIENCE. The least limit is PATIENCE; it is
// WARM_PATIENCE while the standby has media and could take over. If both are silent, the network or
// this machine may be at fault.
#define GAPS 2
#define WARM_PATIENCE (200 * GST_MSECOND)
#define FIRST_PATIENCE (2 * GST_SECOND)

// ---- several upstreams ----

Inlet *
node_inlet (Node *self, guint i)
{
  return g_ptr_array_index (self->inlets, i);
}

gboolean
node_is_warm (const Node *self)
{
  return self->config && self->config->standby == MOUNT_STANDBY_WARM && !self->is_source;
}

// Reports whether a mount with a warm standby gets no media from the upstream. `least` is the least
// silence for that, in ns.
static gboolean
is_silent_for (Inlet *i, gint64 least)
{
  gint64 gap = upstream_get_longest_gap (i->upstream);

  return upstream_get_silence (i->upstream)
         > (gap ? MAX (GAPS * gap, least) : (gint64) FIRST_PATIENCE);
}

static gboolean
is_silent (Inlet *i)
{
  if (!node_is_warm (i->node) || !i->up)
    return upstream_get_silence (i->upstream) > (gint64) PATIENCE;
  return is_silent_for (i, i->node->ready && inlet_is_current (i) ? WARM_PATIENCE : PATIENCE);
}

gboolean
inlet_is_current (Inlet *i)
{
  return relay_is_current (i->node->relay, i->source);
}

void
inlet_run (Inlet *i, gboolean on)
{
  if (i->running == on)
    return;
  i->running = on;
  if (on) {
    upstream_start (i->upstream);
    if (node_is_shared (i->node))
      upstream_look_again (i->upstream); // another member may be read than the one that failed
  } else {
    i->up = FALSE;
    upstream_stop (i->upstream);
    if (i->node->input)
      relay_unlink (i->node->input->relay, i->source);
  }
}

// Stops the other upstreams, as `current` has new tracks: each compares its tracks when it begins.
static void
stop_others (Inlet *current)
{
  Node *node = current->node;

  for (guint n = 0; n < node->inlets->len; n++) {
    if (node_inlet (node, n) != current)
      inlet_run (node_inlet (node, n), FALSE);
  }
}

// Switches the relay to `wanted`: at its next join point; at its last one if it is warm and the
// current upstream has failed. If its tracks differ, the switch closes the readers. Therefore
// the relay never switches to a slate with other tracks, and to an upstream with other tracks only
// if no other upstream has media.
static void
take (Inlet *wanted, gboolean current_is_well, gboolean have_other)
{
  Relay *relay = wanted->node->relay;

  if (!wanted->changed) {
    if (current_is_well || !relay_fail_over (relay, wanted->source, clock_now ()))
      relay_prefer (relay, wanted->source);
  } else if (wanted->up && !have_other && !wanted->is_slate) {
    relay_take (relay, wanted->source);
    wanted->changed = FALSE;
    stop_others (wanted);
    node_tell_changed (wanted->node);
  }
}

static gboolean
is_well (Inlet *i)
{
  return i->up && !is_silent (i);
}

// Reports whether the upstream is starting: no failure so far, and not silent for too long.
static gboolean
is_promising (Inlet *i)
{
  return !i->up && !i->reason && !is_silent (i);
}

static void
log_current (Node *self, Inlet *current)
{
  Inlet *before = self->logged ? self->logged : node_inlet (self, 0);

  if (current == before)
    return;
  self->logged = current;
  log_event_limited (
      &self->switches, "upstream %s took over from %s", current->shown, before->shown);
  if (before->failed || !is_well (before))
    node_tell_failed_over (self);
  before->failed = FALSE;
}

// Keeps a spare upstream warm while `current` feeds the relay.
static void
keep_warm (Node *self, Inlet *spare)
{
  if (node_is_warm (self))
    relay_keep_warm (self->relay, spare && !spare->changed ? spare->source : NULL);
}

// Reports whether the upstream may be the warm standby of `current`, which `wanted` is.
static gboolean
may_be_spare (Inlet *i, Inlet *wanted, Inlet *current)
{
  return node_is_warm (i->node) && !i->is_slate && wanted == current && is_well (current);
}

// Finds the warm standby that could take over, and returns the inlet that feeds the relay, or NULL.
// A silent inlet has to be well for a while again.
static Inlet *
find_current (Node *self)
{
  Inlet *current = NULL;

  self->ready = NULL;
  for (guint n = 0; n < self->inlets->len; n++) {
    Inlet *i = node_inlet (self, n);

    if (inlet_is_current (i))
      current = i;
    if (i->up && is_silent (i))
      i->up_since = clock_now ();
    if (i->up && relay_is_warm (self->relay, i->source) && !is_silent_for (i, WARM_PATIENCE))
      self->ready = i;
  }
  return current;
}

// Replaces an inlet that has failed, or NULL. It has to be well for a while before it returns, even
// if it was silent for a moment only.
static void
replace (Inlet *failed, Inlet *wanted)
{
  if (failed) {
    failed->failed = TRUE;
    failed->up_since = clock_now ();
  }
  take (wanted, FALSE, FALSE);
  wanted->node->ready = NULL;
}

void
node_choose (Node *self)
{
  Inlet *wanted = NULL, *spare = NULL, *current = find_current (self);
  gboolean current_is_well;

  if (current) {
    log_current (self, current);
    inlet_tell_feed (current);
  }
  for (guint n = 0; n < self->inlets->len; n++) {
    Inlet *i = node_inlet (self, n), **role = wanted ? &spare : &wanted;

    if (!inlet_is_allowed (i)) {
      if (i != current || !i->up)
        inlet_run (i, FALSE);
    } else if (!*role && (!wanted || may_be_spare (i, wanted, current))) {
      inlet_run (i, TRUE);
      if (is_well (i) || is_promising (i))
        *role = i;
    } else if (i != current) {
      inlet_run (i, FALSE);
    }
  }
  if (insertion_is_on_air (self->insertion))
    return; // the upstreams run, and one takes over when the clip ends
  if (wanted && wanted == current)
    current->failed = FALSE;
  if (!wanted || wanted == current) {
    keep_warm (self, spare);
    return;
  }
  current_is_well = current && is_well (current);
  if (!current_is_well)
    replace (current, wanted);
  else if (wanted->up && !inlet_is_allowed (current))
    take (wanted, TRUE, FALSE);
  else if (wanted->up && clock_now () - wanted->up_since > (gint64) WELL_AFTER)
    take (wanted, TRUE, !current->is_slate);
  else
    keep_warm (self, wanted);
  if (inlet_is_current (wanted))
    log_current (self, wanted);
}

void
node_come_back (Node *self)
{
  for (guint n = 0; n < self->inlets->len; n++) {
    Inlet *i = node_inlet (self, n);

    if (!is_well (i) || i->changed)
      continue;
    relay_prefer (self->relay, i->source);
    return;
  }
}

gboolean
node_tick (gpointer data)
{
  node_ref (data);
  node_choose (data);
  node_unref (data);
  return G_SOURCE_CONTINUE;
}

// ---- callbacks from an upstream ----

static void
on_connecting (gpointer owner)
{
  Inlet *self = owner;

  self->changed = FALSE;
  inlet_aim (self);
  node_start_sides (self->node);
  if (!self->node->up)
    node_tell_connecting (self->node);
}

static void
on_up (gpointer owner)
{
  Inlet *self = owner;
  g_autoptr (Node) node = node_ref (self->node);

  self->up = TRUE;
  self->up_since = clock_now ();
  g_clear_pointer (&self->reason, g_free);
  node_choose (node);
  if (!node->input || node->sides || node_get_state (node->input) == NODE_UP)
    node_tell_up (node);
}

static void
on_changed (gpointer owner)
{
  Inlet *self = owner;
  g_autoptr (Node) node = node_ref (self->node);

  if (inlet_is_current (self)) {
    stop_others (self);
    node_tell_changed (node);
  } else if (!self->changed) {
    log_event ("upstream %s: its tracks differ from the readers' tracks", self->shown);
    self->changed = TRUE;
  }
}

static void
on_down (gpointer owner, const gchar *reason, guint retry_ms)
{
  Inlet *self = owner;
  g_autoptr (Node) node = node_ref (self->node);
  gboolean others = FALSE;

  self->up = FALSE;
  self->n_failures++;
  g_free (self->reason);
  // The node with the source stages says what it reads, unless a stage has failed.
  self->reason = self->from && g_str_has_prefix (reason, self->shown)
                     ? g_strdup (reason)
                     : g_strdup_printf ("%s: %s", self->shown, reason);
  self->failed_us = g_get_real_time ();
  inlet_tell_failure (self, reason);
  if (node->inlets->len > 1)
    log_event_limited (&self->failures, "upstream %s", self->reason);
  node_choose (node);
  for (guint n = 0; n < node->inlets->len; n++)
    others |= node_inlet (node, n)->up
              || (node_inlet (node, n)->running && !node_inlet (node, n)->reason);
  if (!others)
    node_tell_down (node, self->reason, retry_ms);
}

// The node that an inlet reads watches its own upstream. A stage may be as silent as its input.
static gboolean
on_excused (gpointer owner)
{
  const Inlet *self = owner;
  Node *input = self->node->input;

  if (self->from)
    return TRUE;
  return input && node_get_silence (input) > (gint64) PATIENCE;
}

static void
on_cued (gpointer owner, const WeirCue *cue)
{
  Inlet *self = owner;

  node_tell_cued (self->node, cue);
  if (inlet_is_current (self) || insertion_is_on_air (self->node->insertion))
    insertion_take_cue (self->node, cue);
}

static const UpstreamCallbacks upstream_callbacks = { on_connecting, on_up, on_changed, on_down,
  on_excused, on_cued };

// ---- properties ----

gint64
node_get_silence (Node *self)
{
  if (insertion_is_on_air (self->insertion))
    return insertion_get_silence (self->insertion);
  for (guint n = 0; n < self->inlets->len; n++) {
    Inlet *i = node_inlet (self, n);

    if (i->up && inlet_is_current (i))
      return upstream_get_silence (i->upstream);
  }
  return G_MAXINT64;
}

gboolean
node_has_standby (Node *self, gboolean *wanted)
{
  *wanted = node_is_warm (self);
  return self->ready != NULL;
}

Node *
node_get_source (Node *self, guint i)
{
  return node_inlet (self, i)->from;
}

guint
node_n_inlets (Node *self)
{
  return self->inlets->len;
}

NodeInlet
node_get_inlet (Node *self, guint n)
{
  Inlet *i = node_inlet (self, n);
  Worker *worker = upstream_get_worker (i->upstream);

  return (NodeInlet) {
    .uri = i->shown,
    .running = i->running,
    .up = i->up,
    .current = inlet_is_current (i),
    .is_slate = i->is_slate,
    .awaits = i->awaits,
    .reason = i->reason,
    .failed_us = i->failed_us,
    .n_failures = i->n_failures,
    .worker = worker ? worker_get_pid (worker) : 0,
  };
}

const gchar *
node_inlet_state_name (const NodeInlet *inlet)
{
  if (!inlet->running)
    return "idle";
  if (inlet->up)
    return inlet->current ? "up" : "standing by";
  return inlet->awaits ? "waiting" : inlet->reason ? "down" : "starting";
}

// ---- construction ----

void
inlet_free (gpointer data)
{
  Inlet *self = data;

  upstream_free (self->upstream);
  relay_source_end (self->source);
  relay_source_unref (self->source);
  g_clear_pointer (&self->from, node_unref);
  g_free (self->link);
  g_free (self->shown);
  g_free (self->reason);
  g_free (self);
}

// Adds an inlet that `config` and `make` run. Takes ownership of `shown`.
static Inlet *
add_inlet (Node *self, gchar *shown, const PullConfig *config, PullMakeFunc make)
{
  Inlet *new = g_new0 (Inlet, 1);

  new->node = self;
  new->failures = LOG_LIMIT_FAILURES;
  new->awaits = pull_config_awaits (config);
  new->shown = shown;
  new->source = relay_source_new (self->relay, NULL, NULL);
  new->upstream = upstream_new (config, make, new->source, &upstream_callbacks, new);
  g_ptr_array_add (self->inlets, new);
  return new;
}

Inlet *
node_add_inlet (Node *self, const PullConfig *config, PullMakeFunc make)
{
  return add_inlet (self,
      config->uri ? log_redact (config->uri)
                  : g_strdup_printf ("stage %s", stage_get_file (self->stage)->name),
      config, make);
}

Inlet *
node_add_source (Node *self, const PullConfig *config, Node *from)
{
  PullConfig *link = g_new0 (PullConfig, 1);
  Inlet *new;

  link->light = pull_config_awaits (config) ? &node_link_awaiting : &node_link;
  link->connect_timeout_ms = config->connect_timeout_ms;
  link->read_timeout_ms = config->read_timeout_ms;
  new = add_inlet (self, log_redact (config->uri), link, NULL);
  new->from = node_ref (from);
  new->link = link;
  return new;
}

static void
play (Node *self, gint64 from, guint rank)
{
  for (guint n = 0; n < self->inlets->len; n++)
    upstream_play (node_inlet (self, n)->upstream, from, rank);
}

void
node_play_from (Node *self, gint64 from)
{
  play (self, from, 0);
}

void
node_take_rank (Node *self, guint rank)
{
  play (self, 0, rank);
}
