// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/upstream.h"

#include "base/arrivals.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/file_roots.h"
#include "base/file_stamp.h"
#include "base/files_left.h"
#include "base/threads.h"
#include "base/timer.h"
#include "sources/isolated_pull.h"
#include "sources/opening.h"
#include "sources/pull_error.h"

#include <string.h>
#include <unistd.h>

#define WATCH_INTERVAL_MS 250
// After an upstream has sent media for this long, its next back-off starts from the beginning.
#define STABLE_AFTER (3 * GST_SECOND)

// One run. It is reference-counted, because streaming threads use it until its pipeline is in NULL.
// They post events to the main thread, which ignores events of earlier runs.
typedef struct {
  gatomicrefcount refs;
  Upstream *upstream; // main thread only
  PullContext context;
  GstElement *pipeline; // NULL: `light` runs it
  const PullLight *light;
  gpointer client;  // of `light`
  gint64 started;   // ns
  gint begun;       // atomic
  gint have_packet; // atomic
  gint64 length;    // atomic; of a clip that plays once, ns
  Arrivals arrivals;
  Opening opening;
  GMutex lock;
  gchar *reason;  // why it ended; the first reason wins
  gboolean unfit; // each further run of the same file would end so
} Run;

struct _Upstream {
  const PullConfig *config;
  PullMakeFunc make;
  RelaySource *source;
  const UpstreamCallbacks *callbacks;
  gpointer owner;
  gint64 from; // where runs play from, ns
  guint rank;  // of a publisher's layers
  Run *run;
  Timer *watch;
  gint64 watched; // when the watch last ran
  gint64 excused; // silence before this time does not count
  Timer *retry;
  guint n_failures;
  gint64 not_before; // ns; also delays upstream_start()
  gint64 up_since;   // ns; 0 while not up
  FileStamp stamp;   // of the clip when the last run began
  gchar *unfit;      // why no run of that clip has media; NULL: it may have
};

static gint n_closing; // atomic

static void begin_run (Upstream *self);

guint
upstream_n_closing (void)
{
  return (guint) g_atomic_int_get (&n_closing);
}

// ---- a run ----

static Run *
run_ref (Run *run)
{
  g_atomic_ref_count_inc (&run->refs);
  return run;
}

static void
run_unref (gpointer data)
{
  Run *run = data;

  if (!g_atomic_ref_count_dec (&run->refs))
    return;
  relay_source_unref (run->context.source);
  opening_clear (&run->opening);
  g_mutex_clear (&run->lock);
  g_free (run->reason);
  g_free (run);
}

// Not at once, also on the main thread: a run may report an event while it starts.
static void
run_post (Run *run, GSourceFunc func)
{
  g_idle_add_full (G_PRIORITY_DEFAULT, func, run_ref (run), run_unref);
}

static void
set_reason (Run *run, const gchar *reason, gboolean unfit)
{
  g_mutex_lock (&run->lock);
  if (!run->reason) {
    run->reason = g_strdup (reason);
    run->unfit = unfit;
  }
  g_mutex_unlock (&run->lock);
}

static void
close_pipeline (GstElement *pipeline, gpointer data)
{
  opening_wait_for_clean_up (&((Run *) data)->opening);
  gst_element_set_state (pipeline, GST_STATE_NULL);
}

static void
closed_run (gpointer data)
{
  Run *run = data;

  gst_clear_object (&run->pipeline);
  run_unref (run);
  g_atomic_int_add (&n_closing, -1);
}

static void
stop_watching_bus (Run *run)
{
  GstBus *bus = gst_element_get_bus (run->pipeline);

  g_signal_handlers_disconnect_by_data (bus, run);
  gst_bus_remove_signal_watch (bus);
  gst_object_unref (bus);
}

// Ends the run. It is closed on another thread: a TEARDOWN waits for the peer.
static void
end_run (Upstream *self)
{
  Run *run = self->run;

  self->run = NULL;
  self->up_since = 0;
  g_clear_pointer (&self->watch, timer_remove);
  g_atomic_int_set (&run->context.cancelled, 1);
  g_atomic_int_inc (&n_closing);
  if (run->light) {
    run->light->close (run->client, closed_run, run);
    return;
  }
  stop_watching_bus (run);
  gst_element_call_async (run->pipeline, close_pipeline, run, closed_run);
}

static gboolean
retry (gpointer data)
{
  Upstream *self = data;

  self->retry = NULL;
  begin_run (self);
  return G_SOURCE_REMOVE;
}

static void
schedule_retry (Upstream *self, const gchar *reason)
{
  guint delay = backoff_ms (++self->n_failures, g_random_double ());

  if (self->config->lack)
    delay = PULL_LACK_MS;
  else if (pull_is_eager (self->config, self->n_failures) && files_are_left (FILES_FOR_UPSTREAM))
    delay = 0;
  self->not_before = clock_now () + (gint64) delay * GST_MSECOND;
  self->retry = timer_add (delay, retry, self);
  self->callbacks->down (self->owner, reason, delay);
}

static void
reset_back_off_if_stable (Upstream *self)
{
  if (self->up_since
      && arrivals_get_last (&self->run->arrivals) - self->up_since >= (gint64) STABLE_AFTER)
    self->n_failures = 0;
}

static void
fail_upstream (Upstream *self, const gchar *reason, gboolean unfit)
{
  gchar *first;

  set_reason (self->run, reason, unfit);
  first = g_strdup (self->run->reason);
  g_free (self->unfit);
  self->unfit = self->run->unfit ? g_strdup (first) : NULL;
  reset_back_off_if_stable (self);
  end_run (self);
  schedule_retry (self, first);
  g_free (first);
}

// ---- events of a run ----

static gboolean
handle_up (gpointer data)
{
  Run *run = data;

  if (!g_atomic_int_get (&run->context.cancelled)) {
    run->upstream->up_since = clock_now ();
    run->upstream->callbacks->up (run->upstream->owner);
  }
  return G_SOURCE_REMOVE;
}

static gboolean
handle_changed (gpointer data)
{
  Run *run = data;

  if (!g_atomic_int_get (&run->context.cancelled))
    run->upstream->callbacks->changed (run->upstream->owner);
  return G_SOURCE_REMOVE;
}

static gboolean
handle_ended (gpointer data)
{
  Run *run = data;

  if (!g_atomic_int_get (&run->context.cancelled))
    fail_upstream (run->upstream, run->reason, run->unfit);
  return G_SOURCE_REMOVE;
}

static void
on_begun (gpointer owner, RelayTracks tracks)
{
  Run *run = owner;

  g_atomic_int_set (&run->begun, 1);
  if (tracks == RELAY_TRACKS_CHANGED)
    run_post (run, handle_changed);
}

static void
on_packet (gpointer owner, gint64 now)
{
  Run *run = owner;

  arrivals_note (&run->arrivals, now);
  if (!g_atomic_int_get (&run->have_packet)
      && g_atomic_int_compare_and_exchange (&run->have_packet, 0, 1))
    run_post (run, handle_up);
}

static void
on_ended (gpointer owner, const gchar *reason)
{
  set_reason (owner, reason, FALSE);
  run_post (owner, handle_ended);
}

static void
on_unfit (gpointer owner, const gchar *reason)
{
  set_reason (owner, reason, TRUE);
  run_post (owner, handle_ended);
}

static void
on_lasts (gpointer owner, gint64 length)
{
  __atomic_store_n (&((Run *) owner)->length, length, __ATOMIC_RELAXED);
}

typedef struct {
  Run *run;
  WeirCue cue;
} Cue;

static gboolean
handle_cue (gpointer data)
{
  const Cue *self = data;
  Upstream *upstream = self->run->upstream;

  if (!g_atomic_int_get (&self->run->context.cancelled) && upstream->callbacks->cued)
    upstream->callbacks->cued (upstream->owner, &self->cue);
  return G_SOURCE_REMOVE;
}

static void
cue_free (gpointer data)
{
  run_unref (((Cue *) data)->run);
  g_free (data);
}

static void
on_cue (gpointer owner, const WeirCue *cue)
{
  Cue *self = g_new (Cue, 1);

  *self = (Cue) { run_ref (owner), *cue };
  g_idle_add_full (G_PRIORITY_DEFAULT, handle_cue, self, cue_free);
}

static const PullCallbacks pull_callbacks = { on_begun, on_packet, on_ended, on_unfit, on_lasts,
  on_cue };

// Reports whether the run of a clip ends before it has tracks: an error of reading may pass, one of
// what is read does not.
static gboolean
is_unfit (Run *run, const GError *error)
{
  return pull_config_is_clip (run->upstream->config) && !g_atomic_int_get (&run->begun)
         && (!error || error->domain == GST_STREAM_ERROR
             || g_error_matches (error, GST_CORE_ERROR, GST_CORE_ERROR_MISSING_PLUGIN));
}

static void
handle_error (Run *run, GstMessage *message)
{
  GError *error = NULL;
  gchar *debug = NULL, *reason;

  gst_message_parse_error (message, &error, &debug);
  reason = pull_error_dup_reason (message, error, debug);
  fail_upstream (run->upstream, reason, is_unfit (run, error));
  g_free (reason);
  g_error_free (error);
  g_free (debug);
}

static void
handle_eos (Run *run)
{
  const gboolean unfit = is_unfit (run, NULL);

  fail_upstream (run->upstream, unfit ? "the file has no media" : "the upstream ended", unfit);
}

static void
on_message (GstBus *bus, GstMessage *message, gpointer data)
{
  Run *run = data;

  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR)
    handle_error (run, message);
  else if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_EOS)
    handle_eos (run);
}

// ---- the watch ----

static gboolean
watch (gpointer data)
{
  Upstream *self = data;
  Run *run = self->run;
  gint64 now = clock_now ();
  gint64 last = arrivals_get_last (&run->arrivals);
  guint limit_ms = self->config->read_timeout_ms;
  const gchar *problem = "no media for";
  gchar *reason;

  // If this process was suspended or starved, it cannot tell whether the upstream was silent.
  if (now - self->watched > 4 * (gint64) WATCH_INTERVAL_MS * GST_MSECOND
      || (pull_config_awaits (self->config) && !g_atomic_int_get (&run->begun))
      || (self->config->once && g_atomic_int_get (&run->begun)
          && !g_atomic_int_get (&run->have_packet))
      || (self->callbacks->excused && self->callbacks->excused (self->owner)))
    self->excused = now;
  self->watched = now;
  if (!g_atomic_int_get (&run->have_packet)) {
    // The read time-out includes the time to try UDP and to give it up.
    last = run->started;
    if (!g_atomic_int_get (&run->begun)) {
      limit_ms = self->config->connect_timeout_ms;
      problem = self->config->make == stream_pull_new ? "no track came within" : "no answer within";
    } else {
      limit_ms += self->config->connect_timeout_ms;
    }
  }
  if (now - MAX (last, self->excused) < (gint64) limit_ms * GST_MSECOND)
    return G_SOURCE_CONTINUE;

  reason = g_strdup_printf ("%s %.1f s", problem, limit_ms / 1000.0);
  self->watch = NULL;
  fail_upstream (self, reason, FALSE);
  g_free (reason);
  return G_SOURCE_REMOVE;
}

static Run *
run_new (Upstream *self)
{
  Run *run = g_new0 (Run, 1);

  g_atomic_ref_count_init (&run->refs);
  g_mutex_init (&run->lock);
  opening_init (&run->opening);
  run->upstream = self;
  run->started = clock_now ();
  run->context = (PullContext) { relay_source_ref (self->source), self->config, self->owner,
    &pull_callbacks, run, self->from, self->rank };
  return run;
}

static void
watch_bus (Upstream *self, Run *run)
{
  GstBus *bus = gst_element_get_bus (run->pipeline);

  gst_bus_add_signal_watch (bus);
  threads_name_tasks (run->pipeline, self->make == self->config->make ? "pull" : "stage");
  g_signal_connect (bus, "message", G_CALLBACK (on_message), run);
  opening_watch (&run->opening, bus);
  gst_object_unref (bus);
}

// Returns what runs the upstream without a pipeline here, or NULL.
static const PullLight *
find_light (const PullConfig *config)
{
  if (isolated_pull_wants (config))
    return &isolated_pull_light;
  return pull_config_is_light (config) ? config->light : NULL;
}

// Forgets that the clip is unfit if it is another by now. Otherwise it need not be read again.
static void
look_at_clip (Upstream *self)
{
  FileStamp before = self->stamp;

  if (!pull_config_is_clip (self->config))
    return;
  self->stamp = file_stamp_take (self->config->path);
  if (!file_stamp_equal (&before, &self->stamp))
    g_clear_pointer (&self->unfit, g_free);
}

// Returns why no run can begin now, or NULL. What an API client has named may have become a link.
static GError *
find_hindrance (Upstream *self)
{
  const PullConfig *config = self->config;
  gchar *wrong = config->is_limited ? file_roots_check (config->path) : NULL;
  GError *error = NULL;

  look_at_clip (self);
  if (!files_are_left (FILES_FOR_UPSTREAM))
    error = g_error_new_literal (GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_OPEN_READ, FILES_PROBLEM);
  else if (wrong)
    error = g_error_new_literal (GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_OPEN_READ, wrong);
  else if (self->unfit)
    error = g_error_new_literal (GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_OPEN_READ, self->unfit);
  g_free (wrong);
  return error;
}

static void
begin_run (Upstream *self)
{
  const PullLight *light = find_light (self->config);
  Run *run = run_new (self);
  GError *error = find_hindrance (self);

  self->callbacks->connecting (self->owner);
  if (error) {
    // The run does not begin, so it does not take its descriptor.
    if (self->config->endpoint.is_open)
      close (self->config->endpoint.fd);
  } else if (light) {
    run->light = light;
    run->client = light->start (&run->context, &error);
  } else {
    run->pipeline = self->make (&run->context, &error);
  }
  if (error) {
    g_atomic_int_set (&run->context.cancelled, 1);
    run_unref (run);
    schedule_retry (self, error->message);
    g_error_free (error);
    return;
  }
  self->run = run;
  self->watched = clock_now ();
  self->watch = timer_add_tick (WATCH_INTERVAL_MS, watch, self);
  if (run->light)
    return;
  gst_object_ref_sink (run->pipeline);
  watch_bus (self, run);
  if (gst_element_set_state (run->pipeline, GST_STATE_PAUSED) == GST_STATE_CHANGE_NO_PREROLL)
    gst_element_set_state (run->pipeline, GST_STATE_PLAYING);
}

// ---- control ----

Upstream *
upstream_new (const PullConfig *config, PullMakeFunc make, RelaySource *source,
    const UpstreamCallbacks *callbacks, gpointer owner)
{
  Upstream *self = g_new0 (Upstream, 1);

  *self = (Upstream) { config, make, relay_source_ref (source), callbacks, owner };
  return self;
}

void
upstream_start (Upstream *self)
{
  gint64 wait = self->not_before - clock_now ();

  if (self->run || self->retry)
    return;
  // Who asks for an unfit clip does not wait for the answer.
  if (wait > 0 && !self->unfit)
    self->retry = timer_add ((guint) (wait / GST_MSECOND) + 1, retry, self);
  else
    begin_run (self);
}

void
upstream_play (Upstream *self, gint64 from, guint rank)
{
  self->from = from;
  self->rank = rank;
}

void
upstream_stop (Upstream *self)
{
  g_clear_pointer (&self->retry, timer_remove);
  if (self->run) {
    reset_back_off_if_stable (self);
    end_run (self);
  }
}

gint64
upstream_get_silence (Upstream *self)
{
  Run *run = self->run;

  if (!run)
    return 0;
  return clock_now () - MAX (arrivals_get_last (&run->arrivals), run->started);
}

gint64
upstream_get_longest_gap (Upstream *self)
{
  return self->run ? arrivals_get_longest_gap (&self->run->arrivals) : 0;
}

gint64
upstream_get_length (Upstream *self)
{
  return self->run ? __atomic_load_n (&self->run->length, __ATOMIC_RELAXED) : 0;
}

const gchar *
upstream_get_unfit (Upstream *self)
{
  return self->unfit;
}

void
upstream_look_again (Upstream *self)
{
  if (!self->retry)
    return;
  g_clear_pointer (&self->retry, timer_remove);
  begin_run (self);
}

Worker *
upstream_get_worker (Upstream *self)
{
  Run *run = self->run;

  return run && run->light && run->light->get_worker ? run->light->get_worker (run->client) : NULL;
}

void
upstream_free (Upstream *self)
{
  upstream_stop (self);
  relay_source_unref (self->source);
  g_free (self->unfit);
  g_free (self);
}
