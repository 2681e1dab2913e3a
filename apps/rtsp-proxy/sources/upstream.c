// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/upstream.h"

#include "base/backoff.h"
#include "base/clock.h"
#include "base/threads.h"
#include "base/tick.h"

#include <string.h>

#define WATCH_INTERVAL_MS 250
// An upstream that was well for this long has its failures forgiven.
#define WELL_AFTER (10 * GST_SECOND)
// rtspsrc needs a few milliseconds for it; it may hang.
#define CLEAN_UP_LIMIT G_TIME_SPAN_SECOND

// Whether rtspsrc, which tells of an error first and cleans up after it, is still at that: to stop
// it then is a use after free within it. Its progress tells.
typedef struct {
  GMutex lock;
  GCond ended;
  gboolean opens, failed;
} Opening;

// One life. Streaming threads reach it until its pipeline is in NULL, so it is counted; what they
// find is handed to the main thread, which ignores what comes from a life that is not the current.
typedef struct {
  gatomicrefcount refs;
  Upstream *upstream; // main thread only
  PullContext context;
  GstElement *pipeline;
  gint64 started;     // ns
  gint begun;         // atomic
  gint have_packet;   // atomic
  gint64 last_packet; // ns; atomic
  Opening opening;
  GMutex lock;
  gchar *reason; // why it ended; the first reason counts
} Life;

struct _Upstream {
  const PullConfig *config;
  PullMakeFunc make;
  RelaySource *source;
  const UpstreamCallbacks *callbacks;
  gpointer owner;
  Life *life;
  guint watch;
  gint64 watched; // when the watch last ran
  gint64 excused; // until then no silence counts
  guint retry;
  guint n_failures;
  gint64 not_before; // ns; the back-off holds for whoever starts it
  gint64 up_since;   // ns; 0 while not up
};

static gint n_closing; // atomic

static void connect_life (Upstream *self);

guint
upstream_n_closing (void)
{
  return (guint) g_atomic_int_get (&n_closing);
}

// ---- opening ----

static void
opening_init (Opening *self)
{
  g_mutex_init (&self->lock);
  g_cond_init (&self->ended);
}

// In the thread that posts them, which is the one that opens.
static void
on_progress (GstBus *bus, GstMessage *message, gpointer data)
{
  Opening *self = data;
  GstProgressType type;
  gchar *code;

  gst_message_parse_progress (message, &type, &code, NULL);
  g_mutex_lock (&self->lock);
  if (type == GST_PROGRESS_TYPE_START || type == GST_PROGRESS_TYPE_CONTINUE)
    self->opens |= g_str_equal (code, "open") || g_str_equal (code, "connect");
  else if (g_str_equal (code, "open"))
    self->opens = FALSE;
  g_cond_signal (&self->ended);
  g_mutex_unlock (&self->lock);
  g_free (code);
}

static void
on_error (GstBus *bus, GstMessage *message, gpointer data)
{
  Opening *self = data;

  g_mutex_lock (&self->lock);
  self->failed = TRUE;
  g_mutex_unlock (&self->lock);
}

// The bus must have synchronous messages. It goes on until the pipeline is gone.
static void
opening_watch (Opening *self, GstBus *bus)
{
  g_signal_connect (bus, "sync-message::progress", G_CALLBACK (on_progress), self);
  g_signal_connect (bus, "sync-message::error", G_CALLBACK (on_error), self);
}

static void
opening_wait_for_clean_up (Opening *self)
{
  gint64 until = g_get_monotonic_time () + CLEAN_UP_LIMIT;

  g_mutex_lock (&self->lock);
  while (self->opens && self->failed && g_cond_wait_until (&self->ended, &self->lock, until))
    ;
  g_mutex_unlock (&self->lock);
}

static void
opening_clear (Opening *self)
{
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->ended);
}

// ---- a life ----

static Life *
life_ref (Life *life)
{
  g_atomic_ref_count_inc (&life->refs);
  return life;
}

static void
life_unref (gpointer data)
{
  Life *life = data;

  if (!g_atomic_ref_count_dec (&life->refs))
    return;
  relay_source_unref (life->context.source);
  opening_clear (&life->opening);
  g_mutex_clear (&life->lock);
  g_free (life->reason);
  g_free (life);
}

static void
life_post (Life *life, GSourceFunc func)
{
  g_main_context_invoke_full (NULL, G_PRIORITY_DEFAULT, func, life_ref (life), life_unref);
}

static void
set_reason (Life *life, const gchar *reason)
{
  g_mutex_lock (&life->lock);
  if (!life->reason)
    life->reason = g_strdup (reason);
  g_mutex_unlock (&life->lock);
}

static void
close_pipeline (GstElement *pipeline, gpointer data)
{
  opening_wait_for_clean_up (&((Life *) data)->opening);
  gst_element_set_state (pipeline, GST_STATE_NULL);
}

static void
closed_pipeline (gpointer data)
{
  Life *life = data;

  gst_object_unref (life->pipeline);
  life_unref (life);
  g_atomic_int_add (&n_closing, -1);
}

// A TEARDOWN waits for the peer: not on the main thread.
static void
end_life (Upstream *self)
{
  Life *life = self->life;
  GstBus *bus;

  self->life = NULL;
  self->up_since = 0;
  g_clear_handle_id (&self->watch, g_source_remove);
  g_atomic_int_set (&life->context.cancelled, 1);
  bus = gst_element_get_bus (life->pipeline);
  g_signal_handlers_disconnect_by_data (bus, life);
  gst_bus_remove_signal_watch (bus);
  gst_object_unref (bus);
  g_atomic_int_inc (&n_closing);
  gst_element_call_async (life->pipeline, close_pipeline, life, closed_pipeline);
}

static gboolean
retry (gpointer data)
{
  Upstream *self = data;

  self->retry = 0;
  connect_life (self);
  return G_SOURCE_REMOVE;
}

static void
schedule_retry (Upstream *self, const gchar *reason)
{
  guint delay = backoff_ms (++self->n_failures, g_random_double ());

  self->not_before = clock_now () + (gint64) delay * GST_MSECOND;
  self->retry = g_timeout_add (delay, retry, self);
  self->callbacks->down (self->owner, reason, delay);
}

static void
forgive (Upstream *self)
{
  if (self->up_since && clock_now () - self->up_since >= (gint64) WELL_AFTER)
    self->n_failures = 0;
}

static void
fail (Upstream *self, const gchar *reason)
{
  gchar *first;

  set_reason (self->life, reason);
  first = g_strdup (self->life->reason);
  forgive (self);
  end_life (self);
  schedule_retry (self, first);
  g_free (first);
}

// ---- what the streaming threads report ----

static gboolean
handle_up (gpointer data)
{
  Life *life = data;

  if (!g_atomic_int_get (&life->context.cancelled)) {
    life->upstream->up_since = clock_now ();
    life->upstream->callbacks->up (life->upstream->owner);
  }
  return G_SOURCE_REMOVE;
}

static gboolean
handle_changed (gpointer data)
{
  Life *life = data;

  if (!g_atomic_int_get (&life->context.cancelled))
    life->upstream->callbacks->changed (life->upstream->owner);
  return G_SOURCE_REMOVE;
}

static gboolean
handle_ended (gpointer data)
{
  Life *life = data;

  if (!g_atomic_int_get (&life->context.cancelled))
    fail (life->upstream, life->reason);
  return G_SOURCE_REMOVE;
}

static void
on_begun (gpointer owner, RelayTracks tracks)
{
  Life *life = owner;

  g_atomic_int_set (&life->begun, 1);
  if (tracks == RELAY_TRACKS_CHANGED)
    life_post (life, handle_changed);
}

static void
on_packet (gpointer owner, gint64 now)
{
  Life *life = owner;

  __atomic_store_n (&life->last_packet, now, __ATOMIC_RELAXED);
  if (!g_atomic_int_get (&life->have_packet)
      && g_atomic_int_compare_and_exchange (&life->have_packet, 0, 1))
    life_post (life, handle_up);
}

static void
on_ended (gpointer owner, const gchar *reason)
{
  set_reason (owner, reason);
  life_post (owner, handle_ended);
}

static const PullCallbacks pull_callbacks = { on_begun, on_packet, on_ended };

// GStreamer says what failed in one text, and why in the last line of another.
static gchar *
error_reason (GstMessage *message)
{
  GError *error = NULL;
  gchar *debug = NULL, *reason;
  const gchar *why;

  gst_message_parse_error (message, &error, &debug);
  why = debug ? strrchr (debug, '\n') : NULL;
  reason = why ? g_strdup_printf ("%s (%s)", error->message, why + 1) : g_strdup (error->message);
  g_error_free (error);
  g_free (debug);
  return reason;
}

static void
on_message (GstBus *bus, GstMessage *message, gpointer data)
{
  Life *life = data;
  gchar *reason;

  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR) {
    reason = error_reason (message);
    fail (life->upstream, reason);
    g_free (reason);
  } else if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_EOS) {
    fail (life->upstream, "the upstream ended");
  }
}

// ---- the watch ----

static gboolean
watch (gpointer data)
{
  Upstream *self = data;
  Life *life = self->life;
  gint64 now = clock_now ();
  gint64 last = __atomic_load_n (&life->last_packet, __ATOMIC_RELAXED);
  guint limit_ms = self->config->read_timeout_ms;
  const gchar *what = "no media for";
  gchar *reason;

  // Who did not run, for being suspended or starved, can't say that nothing came.
  if (now - self->watched > 4 * (gint64) WATCH_INTERVAL_MS * GST_MSECOND
      || (self->callbacks->excused && self->callbacks->excused (self->owner)))
    self->excused = now;
  self->watched = now;
  if (!g_atomic_int_get (&life->have_packet)) {
    // Time for UDP to be tried and found dead is part of the read time-out.
    last = life->started;
    if (!g_atomic_int_get (&life->begun)) {
      limit_ms = self->config->connect_timeout_ms;
      what = "no answer within";
    } else {
      limit_ms += self->config->connect_timeout_ms;
    }
  }
  if (now - MAX (last, self->excused) < (gint64) limit_ms * GST_MSECOND)
    return G_SOURCE_CONTINUE;

  reason = g_strdup_printf ("%s %.1f s", what, limit_ms / 1000.0);
  self->watch = 0;
  fail (self, reason);
  g_free (reason);
  return G_SOURCE_REMOVE;
}

static void
connect_life (Upstream *self)
{
  Life *life = g_new0 (Life, 1);
  GError *error = NULL;
  GstBus *bus;

  self->callbacks->connecting (self->owner);
  g_atomic_ref_count_init (&life->refs);
  g_mutex_init (&life->lock);
  opening_init (&life->opening);
  life->upstream = self;
  life->started = clock_now ();
  life->context.source = relay_source_ref (self->source);
  life->context.config = self->config;
  life->context.callbacks = &pull_callbacks;
  life->context.owner = life;
  life->context.data = self->owner;
  life->pipeline = self->make (&life->context, &error);
  if (!life->pipeline) {
    life_unref (life);
    schedule_retry (self, error->message);
    g_error_free (error);
    return;
  }
  gst_object_ref_sink (life->pipeline);
  self->life = life;

  bus = gst_element_get_bus (life->pipeline);
  gst_bus_add_signal_watch (bus);
  threads_name_tasks (life->pipeline, self->make == self->config->make ? "pull" : "stage");
  g_signal_connect (bus, "message", G_CALLBACK (on_message), life);
  opening_watch (&life->opening, bus);
  gst_object_unref (bus);

  self->watched = clock_now ();
  self->watch = tick_add (WATCH_INTERVAL_MS, watch, self);
  if (gst_element_set_state (life->pipeline, GST_STATE_PAUSED) == GST_STATE_CHANGE_NO_PREROLL)
    gst_element_set_state (life->pipeline, GST_STATE_PLAYING);
}

// ---- outside ----

Upstream *
upstream_new (const PullConfig *config, PullMakeFunc make, RelaySource *source,
    const UpstreamCallbacks *callbacks, gpointer owner)
{
  Upstream *self = g_new0 (Upstream, 1);

  *self = (Upstream) { .config = config,
    .make = make,
    .source = relay_source_ref (source),
    .callbacks = callbacks,
    .owner = owner };
  return self;
}

void
upstream_start (Upstream *self)
{
  gint64 wait = self->not_before - clock_now ();

  if (self->life || self->retry)
    return;
  if (wait > 0)
    self->retry = g_timeout_add ((guint) (wait / GST_MSECOND) + 1, retry, self);
  else
    connect_life (self);
}

void
upstream_stop (Upstream *self)
{
  g_clear_handle_id (&self->retry, g_source_remove);
  if (self->life) {
    forgive (self);
    end_life (self);
  }
}

gint64
upstream_get_silence (Upstream *self)
{
  Life *life = self->life;

  if (!life)
    return 0;
  return clock_now () - MAX (__atomic_load_n (&life->last_packet, __ATOMIC_RELAXED), life->started);
}

void
upstream_free (Upstream *self)
{
  upstream_stop (self);
  relay_source_unref (self->source);
  g_free (self);
}
