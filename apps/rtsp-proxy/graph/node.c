// SPDX-License-Identifier: LGPL-2.1-or-later
#include "graph/node_private.h"

#include "base/backoff.h"
#include "config/mount_stages.h"
#include "graph/stage_isolated.h"
#include "graph/stage_run.h"
#include "graph/stage_tracks.h"

// Time within which a stage must send media once it receives some, beside its delay, in ms.
#define STAGE_TIMEOUT_MS 10000
static guint n_nodes;

// ---- users ----

static gboolean
has_user (Node *self, const User *user)
{
  return g_ptr_array_find (self->users, user, NULL);
}

// Calls a callback of all users. The callbacks may add and remove users.
#define TELL(self, function, ...)                                                                  \
  G_STMT_START                                                                                     \
  {                                                                                                \
    GPtrArray *users = g_ptr_array_new ();                                                         \
                                                                                                   \
    g_ptr_array_extend (users, (self)->users, NULL, NULL);                                         \
    for (guint u = 0; u < users->len; u++) {                                                       \
      User *each = g_ptr_array_index (users, u);                                                   \
                                                                                                   \
      if (has_user (self, each) && each->callbacks->function)                                      \
        each->callbacks->function (each->user, ##__VA_ARGS__);                                     \
    }                                                                                              \
    g_ptr_array_unref (users);                                                                     \
  }                                                                                                \
  G_STMT_END

void
node_tell_up (Node *self)
{
  if (self->up)
    return;
  self->up = TRUE;
  TELL (self, up);
}

void
node_tell_down (Node *self, const gchar *reason, guint retry_ms)
{
  self->up = FALSE;
  TELL (self, down, reason, retry_ms);
}

void
node_tell_connecting (Node *self)
{
  TELL (self, connecting);
}

void
node_tell_changed (Node *self)
{
  TELL (self, changed);
}

void
node_tell_failed_over (Node *self)
{
  TELL (self, failed_over);
}

void
node_tell_cued (Node *self, const WeirCue *cue)
{
  TELL (self, cued, cue);
}

// ---- a stage's input ----

gboolean
node_is_isolated (const Node *self)
{
  return self->own.light != NULL;
}

// Reports whether the stage takes the raw frames of the node before it.

static gboolean
takes_raw (const Node *self)
{
  return stage_get_file (self->stage)->takes == STAGE_RAW && !stage_get_file (self->stage)->inputs;
}

// Returns the node that makes the raw frames that the stage takes: the nearest one before it that
// gives raw frames of its media. Stages of other media may stand between. NULL if there is none.
static Node *
find_maker (const Node *self)
{
  Node *node = self->input;

  while (node->stage
         && !(stage_get_file (node->stage)->gives == STAGE_RAW
              && stage_get_file (node->stage)->media & stage_get_file (self->stage)->media))
    node = node->input;
  return node->stage ? node : NULL;
}

// Reports whether a track of the node stands for raw frames.
static gboolean
has_raw (Node *self)
{
  gboolean raw = FALSE;

  for (guint i = 0; i < relay_n_tracks (self->relay); i++)
    raw |= stage_tracks_is_raw (self->relay, i);
  return raw;
}

static void
on_input_up (gpointer user)
{
  Node *self = user;

  node_take_first (self);
  inlet_run (node_inlet (self, 0), TRUE);
  if (node_inlet (self, 0)->up)
    node_tell_up (self);
}

// The worker process of the input has ended, or will be another one.
static void
stop_with_input (Node *self)
{
  Node *maker = takes_raw (self) ? find_maker (self) : NULL;

  if (maker && !node_inlet (maker, 0)->up && node_is_isolated (self))
    inlet_run (node_inlet (self, 0), FALSE);
}

static void
on_input_down (gpointer user, const gchar *reason, guint retry_ms)
{
  Node *self = user;

  stop_with_input (self);
  // A stage with several inputs goes on without one.
  if (!self->sides || (!self->is_alone && !node_inlet (self, 0)->up))
    node_tell_down (self, reason, retry_ms);
}

static void
on_input_connecting (gpointer user)
{
  Node *self = user;

  if (!self->up)
    node_tell_connecting (self);
}

// Restarts the stage, because its pipeline was built for the old tracks.
static void
on_input_changed (gpointer user)
{
  Node *self = user;
  Inlet *only = node_inlet (self, 0);

  inlet_run (only, FALSE);
  inlet_run (only, TRUE);
  // Stages that take raw frames follow into the new worker process.
  if (node_is_isolated (self) && has_raw (self))
    node_tell_changed (self);
}

static void
on_input_failed_over (gpointer user)
{
  node_tell_failed_over (user);
}

static void
on_input_cued (gpointer user, const WeirCue *cue)
{
  node_tell_cued (user, cue);
}

static const NodeCallbacks input_callbacks = { on_input_up, on_input_down, on_input_connecting,
  on_input_changed, on_input_failed_over, on_input_cued };

// ---- use ----

static void
start (Node *self)
{
  if (self->input) {
    relay_expect_sinks (self->input->relay, TRUE);
    node_use (self->input, &input_callbacks, self);
    if (node_get_state (self->input) == NODE_UP)
      on_input_up (self);
    else
      node_await_first (self);
  } else if (self->inlets->len == 1) {
    inlet_run (node_inlet (self, 0), TRUE);
  } else {
    node_start_sharing (self);
    node_choose (self);
    self->tick =
        timer_add_tick (node_is_warm (self) ? NODE_WARM_TICK_MS : NODE_TICK_MS, node_tick, self);
  }
}

static gboolean
forget (gpointer data)
{
  Node *self = data;

  self->kept = NULL;
  node_unref (self);
  return G_SOURCE_REMOVE;
}

// Tells a user that has joined a node whose clip is unfit, which would wait for the next attempt.
static void
look_again (Node *self)
{
  for (guint n = 0; node_get_unfit (self) && n < self->inlets->len; n++)
    upstream_look_again (node_inlet (self, n)->upstream);
}

// Keeps the node until its back-off is over, so that a new user cannot skip the back-off.
static void
keep_failures (Node *self)
{
  if (self->kept)
    return;
  node_ref (self);
  self->kept = timer_add (BACKOFF_MAX_MS, forget, self);
}

static void
stop (Node *self)
{
  g_clear_pointer (&self->tick, timer_remove);
  node_stop_sharing (self);
  insertion_free (self->insertion, "the mount's upstream was stopped");
  for (guint n = 0; n < self->inlets->len; n++) {
    inlet_run (node_inlet (self, n), FALSE);
    if (node_inlet (self, n)->reason)
      keep_failures (self);
  }
  if (node_is_warm (self))
    relay_keep_warm (self->relay, NULL);
  self->ready = NULL;
  self->up = FALSE;
  node_stop_sides (self);
  if (self->input)
    node_unuse (self->input, self);
}

void
node_use (Node *self, const NodeCallbacks *callbacks, gpointer user)
{
  User *new = g_new (User, 1);

  *new = (User) { callbacks, user };
  g_ptr_array_add (self->users, new);
  node_ref (self);
  if (self->users->len == 1)
    start (self);
  else if (!self->input)
    look_again (self);
}

void
node_unuse (Node *self, gpointer user)
{
  for (guint u = 0; u < self->users->len; u++) {
    if (((User *) g_ptr_array_index (self->users, u))->user == user) {
      g_ptr_array_remove_index (self->users, u);
      break;
    }
  }
  if (self->users->len == 0)
    stop (self);
  node_unref (self);
}

// ---- properties ----

const gchar *
node_state_name (NodeState state)
{
  static const gchar *const names[] = { "idle", "starting", "waiting", "up", "down" };

  return names[state];
}

Relay *
node_get_relay (Node *self)
{
  return self->relay;
}

NodeState
node_get_state (Node *self)
{
  gboolean waits = FALSE;

  if (self->users->len == 0)
    return NODE_IDLE;
  if (self->up)
    return NODE_UP;
  if (node_waits_for_route (self))
    return NODE_STARTING;
  for (guint n = 0; n < self->inlets->len; n++) {
    const Inlet *i = node_inlet (self, n);

    if (i->running && !i->reason && !i->awaits)
      return NODE_STARTING;
    waits |= i->running && i->awaits;
  }
  if (waits)
    return NODE_WAITING;
  return self->input && !node_inlet (self, 0)->running ? node_get_state (self->input) : NODE_DOWN;
}

const gchar *
node_get_unfit (Node *self)
{
  const gchar *unfit = NULL;

  while (self->input)
    self = self->input;
  for (guint n = 0; n < self->inlets->len; n++) {
    const Inlet *i = node_inlet (self, n);

    unfit = i->from ? node_get_unfit (i->from) : upstream_get_unfit (i->upstream);
    if (!unfit)
      return NULL;
  }
  return unfit;
}

Node *
node_get_input (Node *self)
{
  return self->input;
}

Stage *
node_get_stage (Node *self)
{
  return self->stage;
}

guint
node_get_id (Node *self)
{
  return self->id;
}

gchar *
node_publish (Node *self, guint track)
{
  gchar *channel = stage_tracks_dup_channel (self->id, self->relay, track);

  // A stage that makes raw frames of the track fills the window itself.
  if (self->stage && stage_get_file (self->stage)->gives == STAGE_RAW
      && stage_tracks_is_raw (self->relay, track))
    return channel;
  if (self->publishers[track])
    publisher_ref (self->publishers[track]);
  else
    self->publishers[track] = publisher_new (self->relay, track, channel);
  return channel;
}

void
node_unpublish (Node *self, guint track)
{
  if (self->publishers[track] && publisher_unref (self->publishers[track]))
    self->publishers[track] = NULL;
}

// ---- construction ----

static Node *
node_new (void)
{
  Node *self = g_new0 (Node, 1);

  self->refs = 1;
  self->id = ++n_nodes;
  self->relay = relay_new ();
  self->inlets = g_ptr_array_new_with_free_func (inlet_free);
  self->users = g_ptr_array_new_with_free_func (g_free);
  return self;
}

static Node *
new_for_upstreams (MountConfig *config)
{
  Node *self = node_new ();

  self->config = mount_config_ref (config);
  // Not when they are loaded: the rest of the file may be wrong.
  if (config->stage_set)
    stage_set_allow_paths (config->stage_set);
  return self;
}

Node *
node_new_upstream (MountConfig *config, guint upstream)
{
  const PullConfig *pull = g_ptr_array_index (config->pulls, upstream);
  Node *self = new_for_upstreams (config);

  self->is_source = TRUE;
  node_add_inlet (self, pull, pull->make);
  return self;
}

Node *
node_new_pull (MountConfig *config, const GPtrArray *sources)
{
  Node *self = new_for_upstreams (config);

  for (guint i = 0; i < config->pulls->len; i++) {
    const PullConfig *pull = g_ptr_array_index (config->pulls, i);

    if (sources)
      node_add_source (self, pull, g_ptr_array_index (sources, i));
    else
      node_add_inlet (self, pull, pull->make);
  }
  if (!sources)
    node_add_members (self);
  if (config->slate.path) {
    gchar *uri = g_filename_to_uri (config->slate.path, NULL, NULL);

    self->own = (PullConfig) {
      .make = file_pull_new, .path = g_strdup (config->slate.path), .parser = PULL_PARSES
    };
    self->own.connect_timeout_ms = config->pull.connect_timeout_ms;
    self->own.read_timeout_ms = config->pull.read_timeout_ms;
    self->own.encodes_sound = mount_config_encodes_sound (config);
    self->own.uri = uri;
    self->own.is_limited = config->slate.is_limited;
    node_add_inlet (self, &self->own, file_pull_new)->is_slate = TRUE;
  }
  return self;
}

static gchar *
publish_input (gpointer node, guint track)
{
  return node_publish (node, track);
}

static void
unpublish_input (gpointer node, guint track)
{
  node_unpublish (node, track);
}

static void
release_input (gpointer node)
{
  node_unref (node);
}

// Returns the nearest node at or before `node` that outputs RTP. Nodes that output raw frames have
// no sender reports.
static Node *
find_clock (Node *node)
{
  while (node->stage && stage_get_file (node->stage)->gives == STAGE_RAW)
    node = node->input;
  return node;
}

static StageInput
find_input (Node *self)
{
  Node *maker = takes_raw (self) ? find_maker (self) : NULL;
  Node *node = maker ? maker : self->input;
  StageInput input = { self->input->relay, find_clock (node)->relay, publish_input, unpublish_input,
    node_ref (node), release_input, { 0 } };

  for (guint i = 0; i < node_n_sides (self) && i < STAGE_INPUTS_MAX; i++)
    input.sides[i] = node_get_side (self, i)->id;
  return input;
}

static GstElement *
make_stage (const PullContext *context, GError **error)
{
  Node *self = ((Inlet *) context->data)->node;
  StageInput input = find_input (self);

  return stage_run_new (&input, self->stage, self->id, context, error);
}

static gpointer
start_isolated (const PullContext *context, GError **error)
{
  Node *self = ((Inlet *) context->data)->node;
  StageInput input;
  Worker *where = NULL;

  Node *beside = takes_raw (self) ? find_maker (self) : self->joining;

  if (beside) {
    where = upstream_get_worker (node_inlet (beside, 0)->upstream);
    if (!where) {
      g_set_error (error, GST_CORE_ERROR, GST_CORE_ERROR_STATE_CHANGE, "stage %s does not run",
          stage_get_file (beside->stage)->name);
      return NULL;
    }
  }
  input = find_input (self);
  return stage_isolated_new (&input, self->stage, self->id, where, context, error);
}

static const PullLight isolated_stage = { start_isolated, stage_isolated_close,
  stage_isolated_get_worker };

Node *
node_new_stage (Node *input, Stage *stage, Node *joining)
{
  const gchar *delay = stage_get_value (stage, "delay");
  Node *self = node_new (), *maker;

  self->input = node_ref (input);
  self->stage = stage_ref (stage);
  self->own.connect_timeout_ms = self->own.read_timeout_ms =
      STAGE_TIMEOUT_MS + (delay ? (guint) g_ascii_strtoull (delay, NULL, 10) : 0);
  maker = takes_raw (self) ? find_maker (self) : NULL;
  if (joining ? node_is_isolated (joining)
              : stage_isolated_wants (stage, maker && node_is_isolated (maker)))
    self->own.light = &isolated_stage;
  self->joining = joining && node_is_isolated (joining) ? joining : NULL;
  node_add_inlet (self, &self->own, make_stage);
  return self;
}

Node *
node_ref (Node *self)
{
  self->refs++;
  return self;
}

void
node_set_free_notify (Node *self, void (*notify) (Node *self, gpointer data), gpointer data)
{
  self->notify = notify;
  self->notify_data = data;
}

void
node_unref (Node *self)
{
  if (--self->refs > 0)
    return;
  if (self->notify)
    self->notify (self, self->notify_data);
  g_ptr_array_unref (self->inlets);
  g_ptr_array_unref (self->users);
  relay_unref (self->relay);
  pull_config_clear (&self->own);
  node_free_members (self);
  g_clear_pointer (&self->config, mount_config_unref);
  g_clear_pointer (&self->sides, g_ptr_array_unref);
  g_clear_pointer (&self->input, node_unref);
  g_clear_pointer (&self->stage, stage_unref);
  g_free (self);
}
