// SPDX-License-Identifier: LGPL-2.1-or-later
#include "graph/insertion.h"

#include <errno.h>
#include <gio/gio.h>

#include "base/beneath.h"
#include "base/clock.h"
#include "base/log.h"
#include "graph/node_private.h"

#define STEP_MS 40
// While the time has not come, so that a clock that was set is seen.
#define PLANNED_STEP_MS 500
// Longest wait for a keyframe of the upstream.
#define WAIT_MAX (30 * GST_SECOND)
// Longest time from that keyframe to the clip's first packet.
#define BEGIN_MAX (2 * GST_SECOND)
// The upstream may come back this long before the end: a clip is rarely as long as some keyframe
// intervals to the millisecond, and who misses one keyframe waits for the next.
#define EARLY (250 * GST_MSECOND)
// A splice is looked for from this time before it is due, as the times of packets vary.
#define CUE_EARLY (150 * GST_MSECOND)
// A cue that is further ahead is a mistake.
#define CUE_AHEAD_MAX (3600 * GST_SECOND)
// Cues are sent several times. One event is not played twice within this time.
#define CUE_AGAIN (60 * GST_SECOND)
// `for` may exceed the clip by this: people and files round.
#define LENGTH_TOLERANCE (100 * GST_MSECOND)

struct _Insertion {
  Node *node;
  gchar *clip;
  InsertionState state;
  const InsertionCallbacks *callbacks; // NULL after over()
  gpointer owner;
  gboolean checked; // the owner knows
  gboolean by_cue;  // a cue has planned it, and may end it
  guint32 event;    // of that cue
  gint64 stop;      // when a cue ends it, ns; 0: none does
  PullConfig config;
  RelaySource *source;
  Upstream *upstream;
  gint64 at;         // Unix time, us
  gint64 length;     // ns
  gint64 state_time; // when the state began, ns
  gint64 taken;      // when the clip was seen to be on air, ns; 0: not yet
  gint64 begun;      // Unix time, us
  gint64 end;        // when its time is over, ns; from PLAYING on
  gboolean asked;    // the upstream was asked for a keyframe, to come back
  gchar *ended;      // why the clip's run has ended, or NULL
  Timer *timer;
};

const gchar *
insertion_state_name (InsertionState state)
{
  static const gchar *const names[] = { "checking", "planned", "waiting", "playing", "returning" };

  return names[state];
}

static void
set_state (Insertion *self, InsertionState state)
{
  self->state = state;
  self->state_time = clock_now ();
}

static const gchar *
get_mount (const Insertion *self)
{
  return self->node->config->path;
}

// ---- the end ----

static void
report_check (Insertion *self, const GError *wrong)
{
  if (self->checked)
    return;
  self->checked = TRUE;
  if (self->callbacks->checked)
    self->callbacks->checked (self->owner, wrong);
}

void
insertion_free (Insertion *self, const gchar *reason)
{
  g_autoptr (GError) wrong = NULL;

  if (!self)
    return;
  g_clear_pointer (&self->timer, timer_remove);
  if (self->node->insertion == self)
    self->node->insertion = NULL;
  if (self->upstream)
    upstream_free (self->upstream);
  relay_source_end (self->source);
  relay_source_unref (self->source);
  if (!self->checked) {
    wrong = g_error_new_literal (G_IO_ERROR, G_IO_ERROR_CANCELLED, reason);
    report_check (self, wrong);
  } else {
    log_event ("mount %s: clip %s: %s", get_mount (self), self->clip, reason);
  }
  self->callbacks->over (self->owner);
  pull_config_clear (&self->config);
  g_free (self->clip);
  g_free (self->ended);
  g_free (self);
}

// Ends the insertion. The node then chooses among its upstreams again.
static void
finish (Insertion *self, const gchar *reason)
{
  g_autoptr (Node) node = node_ref (self->node);

  insertion_free (self, reason);
  if (node->users->len > 0) {
    node_choose (node);
    relay_ask_next (node->relay, clock_now ());
  }
}

static gboolean
refuse (Insertion *self, GError *wrong)
{
  report_check (self, wrong);
  finish (self, wrong->message);
  g_error_free (wrong);
  return G_SOURCE_REMOVE;
}

// ---- the check ----

static void
append_tracks (GString *text, GPtrArray *caps)
{
  for (guint i = 0; i < caps->len; i++) {
    const GstStructure *s = gst_caps_get_structure (g_ptr_array_index (caps, i), 0);
    const gchar *name = gst_structure_get_string (s, "encoding-name");
    const gchar *channels = gst_structure_get_string (s, "encoding-params");
    gint rate = 0;

    g_string_append_printf (text, "%s%s",
        i == 0              ? ""
        : i + 1 < caps->len ? ", "
                            : " and ",
        name ? name : "an unknown one");
    if (!g_strcmp0 (gst_structure_get_string (s, "media"), "audio")
        && gst_structure_get_int (s, "clock-rate", &rate))
      g_string_append_printf (text, "/%d%s%s", rate, channels ? "/" : "", channels ? channels : "");
  }
}

// Says which tracks the clip has, and which it should have.
static GError *
other_tracks (Insertion *self)
{
  g_autoptr (GPtrArray) own = relay_source_dup_caps (self->source);
  g_autoptr (GPtrArray) wanted = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);
  g_autoptr (GString) text = g_string_new ("the clip's tracks are ");

  for (guint i = 0; i < relay_n_tracks (self->node->relay); i++)
    g_ptr_array_add (wanted, relay_dup_caps (self->node->relay, i));
  append_tracks (text, own);
  g_string_append (text, ", those of the mount's upstream ");
  append_tracks (text, wanted);
  g_string_append (text, "; encode the clip with the codecs, sample rate, channels and profile of "
                         "the upstream");
  return g_error_new_literal (G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED, text->str);
}

// Returns why the clip cannot be inserted as planned, or NULL.
static GError *
find_mistake (Insertion *self, RelayTracks tracks)
{
  gint64 length = upstream_get_length (self->upstream);

  if (tracks != RELAY_TRACKS_SAME)
    return other_tracks (self);
  if (length <= 0)
    return g_error_new_literal (
        G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED, "the clip does not say how long it is");
  if (self->length > length + (gint64) LENGTH_TOLERANCE && !self->by_cue)
    return g_error_new (G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
        "`for` is %.3f s, but the clip lasts %.3f s", (gdouble) self->length / GST_SECOND,
        (gdouble) length / GST_SECOND);
  if (self->length == 0 || self->length > length)
    self->length = length;
  return NULL;
}

static gboolean step (gpointer data);

static void
step_after (Insertion *self, guint delay_ms)
{
  g_clear_pointer (&self->timer, timer_remove);
  self->timer = timer_add (delay_ms, step, self);
}

static void
on_begun (gpointer owner, RelayTracks tracks)
{
  Insertion *self = owner;
  GError *wrong;

  if (self->state != INSERTION_CHECKING)
    return;
  wrong = find_mistake (self, tracks);
  if (wrong) {
    refuse (self, wrong);
    return;
  }
  set_state (self, INSERTION_PLANNED);
  report_check (self, NULL);
  step_after (self, 0);
}

// ---- on the way ----

static gint64
get_now_unix (void)
{
  return g_get_real_time ();
}

// Its time has come.
static gboolean
begin_waiting (Insertion *self)
{
  if (!relay_insert (self->node->relay, self->source, clock_now ()))
    return refuse (self, other_tracks (self));
  set_state (self, INSERTION_WAITING);
  return G_SOURCE_CONTINUE;
}

static void
on_flows (gpointer owner)
{
  Insertion *self = owner;

  if (self->state != INSERTION_WAITING)
    return;
  self->begun = get_now_unix ();
  set_state (self, INSERTION_PLAYING);
  self->end = self->state_time + self->length;
  if (self->stop)
    self->end = MIN (self->end, self->stop);
  log_event ("mount %s: clip %s is inserted for %.1f s", get_mount (self), self->clip,
      (gdouble) self->length / GST_SECOND);
}

// Lets an upstream take over at its next keyframe.
static void
come_back (Insertion *self)
{
  gint64 now = clock_now ();

  node_come_back (self->node);
  if (!self->asked && now >= self->end) {
    self->asked = TRUE;
    relay_ask_next (self->node->relay, now);
  }
}

// Reports whether an upstream has taken over.
static gboolean
is_back (Insertion *self)
{
  for (guint i = 0; i < self->node->inlets->len; i++) {
    if (inlet_is_current (node_inlet (self->node, i)))
      return TRUE;
  }
  return FALSE;
}

// Ends an insertion that does not begin.
static gboolean
waits_too_long (Insertion *self, gint64 now)
{
  const gchar *why = NULL;

  if (!self->taken && insertion_is_on_air (self))
    self->taken = now;
  if (self->taken && now - self->taken > (gint64) BEGIN_MAX)
    why = "it was not inserted: nothing came of it for 2 s";
  else if (!self->taken && now - self->state_time > (gint64) WAIT_MAX)
    why = "it was not inserted: the upstream sent no keyframe for 30 s";
  if (why)
    finish (self, why);
  return why != NULL;
}

static gboolean
step (gpointer data)
{
  Insertion *self = data;
  gint64 left, now = clock_now ();

  self->timer = NULL; // it ends with this call, or is another one
  if (self->ended && insertion_is_on_air (self)) {
    finish (self, "it has ended");
    return G_SOURCE_REMOVE;
  }
  if (self->ended)
    return refuse (self, g_error_new (G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                             "the clip cannot be played: %s", self->ended));
  switch (self->state) {
    case INSERTION_CHECKING:
      break;
    case INSERTION_PLANNED:
      left = self->at - get_now_unix ();
      if (left > 0) {
        step_after (self, (guint) CLAMP (left / 1000, 1, PLANNED_STEP_MS));
        return G_SOURCE_REMOVE;
      }
      if (!begin_waiting (self))
        return G_SOURCE_REMOVE;
      break;
    case INSERTION_WAITING:
      if (waits_too_long (self, now))
        return G_SOURCE_REMOVE;
      break;
    case INSERTION_PLAYING:
      if (now >= self->end - (gint64) EARLY)
        set_state (self, INSERTION_RETURNING);
      break;
    case INSERTION_RETURNING:
      come_back (self);
      if (is_back (self)) {
        finish (self, "it has ended");
        return G_SOURCE_REMOVE;
      }
      break;
  }
  step_after (self, STEP_MS);
  return G_SOURCE_REMOVE;
}

static const RelaySourceCallbacks source_callbacks = { on_begun, on_flows };

// ---- the clip's run ----

static void
ignore (gpointer owner)
{
}

// The run has ended, which frees nothing: the upstream calls this function.
static void
on_down (gpointer owner, const gchar *reason, guint retry_ms)
{
  Insertion *self = owner;

  if (self->ended)
    return;
  self->ended = g_strdup (reason);
  step_after (self, 0);
}

static const UpstreamCallbacks upstream_callbacks = { ignore, ignore, ignore, on_down };

// ---- construction ----

Insertion *
insertion_find (Node *node)
{
  return node->insertion;
}

InsertionFacts
insertion_get_facts (Insertion *self)
{
  return (InsertionFacts) { self->clip, self->state, self->at, self->begun, self->length,
    self->by_cue, self->event };
}

void
insertion_end (Insertion *self)
{
  if (!insertion_is_on_air (self)) {
    finish (self, "it was withdrawn");
    return;
  }
  self->end = MIN (self->end, clock_now ());
  set_state (self, INSERTION_RETURNING);
  step_after (self, 0);
}

gboolean
insertion_is_on_air (const Insertion *self)
{
  // From the moment on at which the relay has changed over, which this thread hears of later.
  return self
         && (self->state >= INSERTION_PLAYING
             || relay_is_current (self->node->relay, self->source));
}

gint64
insertion_get_silence (Insertion *self)
{
  return upstream_get_silence (self->upstream);
}

// Opens the clip. Returns NULL, or what is wrong.
static GError *
open_clip (Insertion *self, const InsertionPlan *plan)
{
  gint fd = beneath_open (plan->folder, plan->clip), why = errno;
  gchar *path;

  if (fd < 0 && (why == ENOENT || why == ENOTDIR))
    return g_error_new (G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "there is no clip %s in the folder %s",
        plan->clip, plan->folder);
  if (fd < 0 && why == EXDEV)
    return g_error_new (G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
        "%s is outside the folder %s of the mount's clips", plan->clip, plan->folder);
  if (fd < 0)
    return g_error_new (G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT, "cannot open %s: %s", plan->clip,
        g_strerror (why));
  path = g_build_filename (plan->folder, plan->clip, NULL);
  self->config = (PullConfig) { .make = file_pull_new,
    .path = path,
    .uri = g_filename_to_uri (path, NULL, NULL),
    .parser = PULL_PARSES,
    .once = TRUE,
    .endpoint = { .is_open = TRUE, .fd = fd },
    .connect_timeout_ms = self->node->config->pull.connect_timeout_ms,
    .read_timeout_ms = self->node->config->pull.read_timeout_ms };
  return NULL;
}

// `cue` is NULL for an insertion that an API client has planned.
static void
plan_clip (Node *node, const InsertionPlan *plan, const WeirCue *cue,
    const InsertionCallbacks *callbacks, gpointer owner)
{
  Insertion *self = g_new0 (Insertion, 1);
  GError *wrong;

  self->by_cue = cue != NULL;
  self->event = cue ? cue->event : 0;
  self->node = node;
  self->clip = g_strdup (plan->clip);
  self->callbacks = callbacks;
  self->owner = owner;
  self->at = plan->at;
  self->length = plan->length;
  self->source = relay_source_new_clip (node->relay, &source_callbacks, self);
  node->insertion = self;
  set_state (self, INSERTION_CHECKING);
  wrong = open_clip (self, plan);
  if (wrong) {
    refuse (self, wrong);
    return;
  }
  self->upstream =
      upstream_new (&self->config, file_pull_new, self->source, &upstream_callbacks, self);
  upstream_start (self->upstream);
}

void
insertion_new (
    Node *node, const InsertionPlan *plan, const InsertionCallbacks *callbacks, gpointer owner)
{
  plan_clip (node, plan, NULL, callbacks, owner);
}

// ---- cues ----

// A cue came for an insertion that another one has planned.
static void
take_later_cue (Insertion *self, const WeirCue *cue)
{
  gint64 stop = clock_now () + cue->delay;

  if (cue->cancel && cue->event != self->event)
    return;
  if (cue->cancel) {
    insertion_end (self);
  } else if (!cue->out) {
    self->stop = stop;
    if (self->state == INSERTION_PLAYING)
      self->end = MIN (self->end, stop);
  }
}

static const InsertionCallbacks cue_callbacks = { NULL, ignore };

static void
plan_for_cue (Node *node, const WeirCue *cue)
{
  const gint64 delay = MAX (cue->delay - (gint64) CUE_EARLY, 0);
  const InsertionPlan plan = { node->config->insert.folder, node->config->insert.on_cue,
    get_now_unix () + delay / 1000, cue->duration };

  node->cued = cue->event;
  node->cued_at = clock_now ();
  log_event ("mount %s: cue %u begins clip %s in %.1f s", node->config->path, cue->event,
      node->config->insert.on_cue, (gdouble) cue->delay / GST_SECOND);
  plan_clip (node, &plan, cue, &cue_callbacks, NULL);
}

void
insertion_take_cue (Node *node, const WeirCue *cue)
{
  gboolean again = node->cued_at && node->cued == cue->event
                   && clock_now () - node->cued_at < (gint64) CUE_AGAIN;

  if (cue->delay > (gint64) CUE_AHEAD_MAX || !node->config || node->is_source
      || !node->config->insert.on_cue)
    return;
  if (node->insertion && node->insertion->by_cue)
    take_later_cue (node->insertion, cue);
  else if (!node->insertion && cue->out && !cue->cancel && !again && node->up)
    plan_for_cue (node, cue);
}
