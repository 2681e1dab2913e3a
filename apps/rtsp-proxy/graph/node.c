// SPDX-License-Identifier: LGPL-2.1-or-later
#include "graph/node.h"

#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "graph/stage_run.h"
#include "relay/publisher.h"
#include "relay/relay_link.h"
#include "sources/upstream.h"

#define TICK_MS 100
// A stage that is given media has so long to give some itself.
#define STAGE_TIMEOUT_MS 10000
// Of several upstreams: the next is started when one has been silent for so long; and one that is
// preferred gets its place back when it has been well for so long.
#define PATIENCE (400 * GST_MSECOND)
#define WELL_AFTER (5 * GST_SECOND)

// One of the upstreams of a node, or its stage.
typedef struct {
  Node *node;
  gchar *shown; // the URI without credentials, or the stage
  gboolean is_slate;
  RelaySource *source;
  Upstream *upstream;
  gboolean running, up, changed;
  gint64 up_since; // ns
  gchar *reason;
  guint n_failures;
  LogLimit failures;
} Inlet;

typedef struct {
  const NodeCallbacks *callbacks;
  gpointer user;
} User;

struct _Node {
  guint refs;
  guint id;
  void (*gone) (Node *self, gpointer data);
  gpointer gone_data;
  Node *input;
  Stage *stage;
  MountConfig *config; // whose upstreams they are
  PullConfig own;      // of the slate, or of the stage
  Relay *relay;
  GPtrArray *inlets; // of Inlet
  GPtrArray *users;  // of User
  gboolean up;       // and users were told
  guint tick, kept;
  Publisher *publishers[RELAY_MAX_TRACKS];
};

static guint n_nodes;

// ---- users ----

static gboolean
has_user (Node *self, const User *user)
{
  return g_ptr_array_find (self->users, user, NULL);
}

// A user may go, or come, while others are told.
#define TELL(self, function, ...)                                                                  \
  G_STMT_START                                                                                     \
  {                                                                                                \
    GPtrArray *users = g_ptr_array_new ();                                                         \
                                                                                                   \
    g_ptr_array_extend (users, (self)->users, NULL, NULL);                                         \
    for (guint u = 0; u < users->len; u++) {                                                       \
      User *one = g_ptr_array_index (users, u);                                                    \
                                                                                                   \
      if (has_user (self, one) && one->callbacks->function)                                        \
        one->callbacks->function (one->user, ##__VA_ARGS__);                                       \
    }                                                                                              \
    g_ptr_array_unref (users);                                                                     \
  }                                                                                                \
  G_STMT_END

static void
tell_up (Node *self)
{
  if (self->up)
    return;
  self->up = TRUE;
  TELL (self, up);
}

static void
tell_down (Node *self, const gchar *reason, guint retry_ms)
{
  self->up = FALSE;
  TELL (self, down, reason, retry_ms);
}

// ---- several upstreams ----

static Inlet *
inlet (Node *self, guint i)
{
  return g_ptr_array_index (self->inlets, i);
}

static gboolean
is_silent (Inlet *i)
{
  return upstream_get_silence (i->upstream) > (gint64) PATIENCE;
}

static gboolean
is_current (Inlet *i)
{
  return relay_is_current (i->node->relay, i->source);
}

static void
run (Inlet *i, gboolean on)
{
  if (i->running == on)
    return;
  i->running = on;
  if (on) {
    upstream_start (i->upstream);
  } else {
    i->up = FALSE;
    upstream_stop (i->upstream);
    if (i->node->input)
      relay_unlink (i->node->input->relay, i->source);
  }
}

// Readers would have to be closed for other tracks: for a clip that is not worth it, and for an
// upstream only if there is nothing else.
static void
take (Inlet *wanted, gboolean have_other)
{
  Relay *relay = wanted->node->relay;

  if (!wanted->changed) {
    relay_prefer (relay, wanted->source);
  } else if (wanted->up && !have_other && !wanted->is_slate) {
    relay_take (relay, wanted->source);
    wanted->changed = FALSE;
    TELL (wanted->node, changed);
  }
}

static gboolean
is_well (Inlet *i)
{
  return i->up && !is_silent (i);
}

// Still without a failure, and not for too long.
static gboolean
is_promising (Inlet *i)
{
  return !i->up && !i->reason && !is_silent (i);
}

// Runs all down to the first that is well or promises to be, and the one that readers see; and has
// the relay take it. One that stands by does so from its start, as it may begin with the only
// keyframe for seconds.
static void
choose (Node *self)
{
  Inlet *wanted = NULL, *current = NULL;
  gboolean current_is_well;

  for (guint n = 0; n < self->inlets->len; n++) {
    if (is_current (inlet (self, n)))
      current = inlet (self, n);
  }
  for (guint n = 0; n < self->inlets->len; n++) {
    Inlet *i = inlet (self, n);

    if (!wanted) {
      run (i, TRUE);
      if (is_well (i) || is_promising (i))
        wanted = i;
    } else if (i != current) {
      run (i, FALSE);
    }
  }
  if (!wanted || wanted == current)
    return;
  current_is_well = current && is_well (current);
  if (!current_is_well)
    take (wanted, FALSE);
  else if (wanted->up && clock_now () - wanted->up_since > (gint64) WELL_AFTER)
    take (wanted, !current->is_slate);
}

static gboolean
tick (gpointer data)
{
  node_ref (data);
  choose (data);
  node_unref (data);
  return G_SOURCE_CONTINUE;
}

// ---- what an upstream reports ----

static void
on_connecting (gpointer owner)
{
  Inlet *self = owner;

  self->changed = FALSE;
  if (!self->node->up)
    TELL (self->node, connecting);
}

static void
on_up (gpointer owner)
{
  Inlet *self = owner;
  Node *node = self->node;

  self->up = TRUE;
  self->up_since = clock_now ();
  g_clear_pointer (&self->reason, g_free);
  node_ref (node);
  choose (node);
  if (!node->input || node_get_state (node->input) == NODE_UP)
    tell_up (node);
  node_unref (node);
}

static void
on_changed (gpointer owner)
{
  Inlet *self = owner;
  Node *node = node_ref (self->node);

  if (is_current (self))
    TELL (node, changed);
  else if (!self->changed) {
    log_event ("upstream %s: its tracks are others than those that readers have", self->shown);
    self->changed = TRUE;
  }
  node_unref (node);
}

static void
on_down (gpointer owner, const gchar *reason, guint retry_ms)
{
  Inlet *self = owner;
  Node *node = self->node;
  gboolean others = FALSE;

  self->up = FALSE;
  self->n_failures++;
  g_free (self->reason);
  self->reason = g_strdup_printf ("%s: %s", self->shown, reason);
  node_ref (node);
  if (node->inlets->len > 1)
    log_event_limited (&self->failures, "upstream %s", self->reason);
  choose (node);
  for (guint n = 0; n < node->inlets->len; n++)
    others |= inlet (node, n)->up || (inlet (node, n)->running && !inlet (node, n)->reason);
  if (!others)
    tell_down (node, self->reason, retry_ms);
  node_unref (node);
}

static gboolean
on_excused (gpointer owner)
{
  Node *input = ((Inlet *) owner)->node->input;

  return input && node_get_silence (input) > (gint64) PATIENCE;
}

static const UpstreamCallbacks upstream_callbacks = { on_connecting, on_up, on_changed, on_down,
  on_excused };

// ---- a stage's input ----

static void
on_input_up (gpointer user)
{
  Node *self = user;

  run (inlet (self, 0), TRUE);
  if (inlet (self, 0)->up)
    tell_up (self);
}

static void
on_input_down (gpointer user, const gchar *reason, guint retry_ms)
{
  tell_down (user, reason, retry_ms);
}

static void
on_input_connecting (gpointer user)
{
  Node *self = user;

  if (!self->up)
    TELL (self, connecting);
}

// The stage was built for other tracks.
static void
on_input_changed (gpointer user)
{
  Inlet *only = inlet (user, 0);

  run (only, FALSE);
  run (only, TRUE);
}

static const NodeCallbacks input_callbacks = { on_input_up, on_input_down, on_input_connecting,
  on_input_changed };

// ---- use ----

static void
start (Node *self)
{
  if (self->input) {
    relay_expect_sinks (self->input->relay);
    node_use (self->input, &input_callbacks, self);
    if (node_get_state (self->input) == NODE_UP)
      on_input_up (self);
  } else if (self->inlets->len == 1) {
    run (inlet (self, 0), TRUE);
  } else {
    choose (self);
    self->tick = g_timeout_add (TICK_MS, tick, self);
  }
}

static gboolean
forget (gpointer data)
{
  Node *self = data;

  self->kept = 0;
  node_unref (self);
  return G_SOURCE_REMOVE;
}

// Its back-off holds for whoever starts it: it is not forgotten before that is over.
static void
keep_failures (Node *self)
{
  if (self->kept)
    return;
  node_ref (self);
  self->kept = g_timeout_add (BACKOFF_MAX_MS, forget, self);
}

static void
stop (Node *self)
{
  g_clear_handle_id (&self->tick, g_source_remove);
  for (guint n = 0; n < self->inlets->len; n++) {
    run (inlet (self, n), FALSE);
    if (inlet (self, n)->reason)
      keep_failures (self);
  }
  self->up = FALSE;
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

// ---- outside ----

const gchar *
node_state_name (NodeState state)
{
  static const gchar *const names[] = { "idle", "starting", "up", "down" };

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
  if (self->users->len == 0)
    return NODE_IDLE;
  if (self->up)
    return NODE_UP;
  for (guint n = 0; n < self->inlets->len; n++) {
    if (inlet (self, n)->running && !inlet (self, n)->reason)
      return NODE_STARTING;
  }
  return self->input && !inlet (self, 0)->running ? node_get_state (self->input) : NODE_DOWN;
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

gint64
node_get_silence (Node *self)
{
  gint64 least = G_MAXINT64;

  for (guint n = 0; n < self->inlets->len; n++) {
    if (inlet (self, n)->up)
      least = MIN (least, upstream_get_silence (inlet (self, n)->upstream));
  }
  return least;
}

guint
node_n_inlets (Node *self)
{
  return self->inlets->len;
}

NodeInlet
node_get_inlet (Node *self, guint n)
{
  Inlet *i = inlet (self, n);

  return (NodeInlet) {
    .uri = i->shown,
    .running = i->running,
    .up = i->up,
    .current = is_current (i),
    .is_slate = i->is_slate,
    .reason = i->reason,
    .n_failures = i->n_failures,
  };
}

gchar *
node_publish (Node *self, guint track)
{
  gchar *channel = g_strdup_printf ("stage%u.%u", self->id, track);

  // A stage that gives raw frames fills the window itself.
  if (self->stage && stage_get_file (self->stage)->gives == STAGE_RAW)
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

// ---- life ----

static void
inlet_free (gpointer data)
{
  Inlet *self = data;

  upstream_free (self->upstream);
  relay_source_end (self->source);
  relay_source_unref (self->source);
  g_free (self->shown);
  g_free (self->reason);
  g_free (self);
}

static Inlet *
add_inlet (Node *self, const PullConfig *config, PullMakeFunc make)
{
  Inlet *new = g_new0 (Inlet, 1);

  new->node = self;
  new->failures = LOG_LIMIT_FAILURES;
  new->shown = config->uri ? log_redact (config->uri)
                           : g_strdup_printf ("stage %s", stage_get_file (self->stage)->name);
  new->source = relay_source_new (self->relay, NULL, NULL);
  new->upstream = upstream_new (config, make, new->source, &upstream_callbacks, new);
  g_ptr_array_add (self->inlets, new);
  return new;
}

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

Node *
node_new_pull (MountConfig *config)
{
  Node *self = node_new ();

  self->config = mount_config_ref (config);
  for (guint i = 0; i < config->pulls->len; i++) {
    const PullConfig *pull = g_ptr_array_index (config->pulls, i);

    add_inlet (self, pull, pull->make);
  }
  if (config->slate) {
    gchar *uri = g_filename_to_uri (config->slate, NULL, NULL);

    self->own = (PullConfig) { .make = file_pull_new, .path = g_strdup (config->slate) };
    self->own.connect_timeout_ms = config->pull.connect_timeout_ms;
    self->own.read_timeout_ms = config->pull.read_timeout_ms;
    self->own.uri = uri;
    add_inlet (self, &self->own, file_pull_new)->is_slate = TRUE;
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

// What gives raw frames has no sender reports: those of what it was made of hold for it.
static Node *
find_clock (Node *node)
{
  while (node->stage && stage_get_file (node->stage)->gives == STAGE_RAW)
    node = node->input;
  return node;
}

static GstElement *
make_stage (const PullContext *context, GError **error)
{
  Node *self = ((Inlet *) context->data)->node;
  StageInput input = { self->input->relay, find_clock (self->input)->relay, publish_input,
    unpublish_input, node_ref (self->input), release_input };

  return stage_run_new (&input, self->stage, self->id, context, error);
}

Node *
node_new_stage (Node *input, Stage *stage)
{
  Node *self = node_new ();

  self->input = node_ref (input);
  self->stage = stage_ref (stage);
  self->own.connect_timeout_ms = self->own.read_timeout_ms = STAGE_TIMEOUT_MS;
  add_inlet (self, &self->own, make_stage);
  return self;
}

Node *
node_ref (Node *self)
{
  self->refs++;
  return self;
}

void
node_set_gone (Node *self, void (*gone) (Node *self, gpointer data), gpointer data)
{
  self->gone = gone;
  self->gone_data = data;
}

void
node_unref (Node *self)
{
  if (--self->refs > 0)
    return;
  if (self->gone)
    self->gone (self, self->gone_data);
  g_ptr_array_unref (self->inlets);
  g_ptr_array_unref (self->users);
  relay_unref (self->relay);
  pull_config_clear (&self->own);
  g_clear_pointer (&self->config, mount_config_unref);
  g_clear_pointer (&self->input, node_unref);
  g_clear_pointer (&self->stage, stage_unref);
  g_free (self);
}
