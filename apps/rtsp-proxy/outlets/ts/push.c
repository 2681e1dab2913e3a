// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/ts/push.h"

#include <gio/gio.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "content/live_content.h"
#include "outlets/ts/mux_input.h"
#include "outlets/ts/ts_reader.h"
#include "outlets/ts/ts_stream.h"

#define WELL (10 * GST_SECOND) // a run that lasted so long begins a new row of failures

struct _Push {
  Mounts *mounts;
  gchar *mount;
  PushUri uri;
  Demand *demand;
  Content *content; // in use; NULL: not yet
  gint64 again, begun;
  guint n_failures;
  gboolean running, told;

  // What runs.
  TsStream *stream;
  gchar *name;          // UDP, SRT: in the stream's sink
  GstElement *sink;     // what the API's figures come from
  GstElement *pipeline; // SRT
  GSocket *end;         // SRT: the pipeline's end of the pair
  guint watch;
  MuxInput *flv; // RTMP
  TsReader *reader;
};

// ---- the end of a run ----

static void
stop_slowly (GstElement *pipeline, gpointer unused)
{
  gst_element_set_state (pipeline, GST_STATE_NULL);
}

static void
stop (Push *self)
{
  self->running = FALSE;
  g_clear_pointer (&self->reader, ts_reader_end);
  g_clear_handle_id (&self->watch, g_source_remove);
  g_clear_pointer (&self->flv, mux_input_free);
  if (self->uri.kind == PUSH_UDP && self->sink)
    ts_stream_remove_target (self->stream, self->sink);
  else if (self->name)
    ts_stream_remove_socket (self->stream, self->name);
  // The end of a connection may take its time.
  if (self->pipeline)
    gst_element_call_async (
        self->pipeline, stop_slowly, g_steal_pointer (&self->end), (GDestroyNotify) g_object_unref);
  gst_clear_object (&self->pipeline);
  g_clear_object (&self->end);
  gst_clear_object (&self->sink);
  g_clear_pointer (&self->name, g_free);
  g_clear_pointer (&self->stream, ts_stream_unref);
}

static void
fail (Push *self, const gchar *reason)
{
  gint64 now = clock_now ();
  guint wait_ms;

  stop (self);
  if (now - self->begun > (gint64) WELL)
    self->n_failures = 0;
  wait_ms = backoff_ms (++self->n_failures, g_random_double ());
  self->again = now + (gint64) wait_ms * GST_MSECOND;
  log_event ("push %s to %s down: %s; next try in %.1f s", self->mount, self->uri.shown, reason,
      wait_ms / 1000.0);
}

static void
close_push (gpointer owner, const gchar *reason)
{
  log_event ("push %s: %s: it is configured, so it stays", (const gchar *) owner, reason);
}

static void
show (Push *self, const gchar *transport, const gchar *host, guint port, const gchar *left_out)
{
  self->reader = ts_reader_new (self->sink, host, (gint) port, self->mount, self->uri.shown,
      transport, left_out, close_push, self->mount);
  log_event ("push %s to %s begins", self->mount, self->uri.shown);
}

// ---- UDP ----

static gboolean
start_udp (Push *self, GError **error)
{
  const TsTarget target = { self->uri.host, self->uri.port, self->uri.ttl, self->uri.iface };

  self->sink = ts_stream_add_target (self->stream, &target, error);
  return self->sink != NULL;
}

// ---- SRT ----

static gboolean
on_message (GstBus *bus, GstMessage *message, gpointer data)
{
  Push *self = data;
  GError *error = NULL;

  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_EOS) {
    self->watch = 0;
    fail (self, "the transport stream has ended");
    return G_SOURCE_REMOVE;
  }
  if (GST_MESSAGE_TYPE (message) != GST_MESSAGE_ERROR)
    return G_SOURCE_CONTINUE;
  gst_message_parse_error (message, &error, NULL);
  self->watch = 0;
  fail (self, error->message);
  g_error_free (error);
  return G_SOURCE_REMOVE;
}

// Connecting may take its time.
static void
start_slowly (GstElement *pipeline, gpointer unused)
{
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
}

static gboolean
start_srt (Push *self, GError **error)
{
  GstElement *sink;
  GstBus *bus;
  gchar *text;

  self->name = ts_stream_add_pair (self->stream, &self->end, error);
  if (!self->name)
    return FALSE;
  text = g_strdup_printf ("fdsrc fd=%d ! tsparse alignment=7 ! srtsink name=server sync=false "
                          "async=false mode=caller auto-reconnect=false",
      g_socket_get_fd (self->end));
  self->pipeline = gst_parse_launch_full (text, NULL, GST_PARSE_FLAG_FATAL_ERRORS, error);
  g_free (text);
  if (self->pipeline) {
    gst_object_ref_sink (self->pipeline);
    sink = gst_bin_get_by_name (GST_BIN (self->pipeline), "server");
    g_object_set (sink, "uri", self->uri.uri, NULL);
    gst_object_unref (sink);
    bus = gst_element_get_bus (self->pipeline);
    self->watch = gst_bus_add_watch (bus, on_message, self);
    gst_object_unref (bus);
    self->sink = gst_object_ref (ts_stream_get_sink (self->stream));
    gst_element_call_async (self->pipeline, start_slowly, NULL, NULL);
  }
  return self->pipeline != NULL;
}

// ---- RTMP ----

static gboolean
on_made (gpointer owner, GstElement *pipeline, gboolean has_video)
{
  Push *self = owner;

  self->sink = gst_bin_get_by_name (GST_BIN (pipeline), "server");
  g_object_set (self->sink, "location", self->uri.uri, NULL);
  show (self, "RTMP", NULL, 0, mux_input_get_left_out (self->flv));
  return TRUE;
}

static gboolean
fail_later (gpointer data)
{
  Push *self = data;

  self->watch = 0;
  fail (self, "the connection to the server has failed");
  return G_SOURCE_REMOVE;
}

static void
on_ended (gpointer owner, const gchar *reason)
{
  Push *self = owner;

  log_event ("push %s to %s: %s", self->mount, self->uri.shown, reason);
  if (!self->watch) // the input is the caller
    self->watch = g_idle_add (fail_later, self);
}

static void
start_rtmp (Push *self)
{
  static const MuxInputCallbacks callbacks = { on_made, on_ended };

  self->flv =
      mux_input_new (&carriage_flv, presentation_get_relay (live_content_get (self->content)),
          self->mount, "rtmp2sink name=server sync=false async=false", &callbacks, self);
}

// ---- the start of a run ----

static gboolean
use_content (Push *self)
{
  Resolved resolved;
  GError *error = NULL;

  if (self->content)
    return TRUE;
  if (mounts_resolve (self->mounts, self->demand, &resolved, &error)) {
    if (!resolved.title)
      self->content = mounts_use (self->mounts, &resolved, &error);
    resolved_clear (&resolved);
  }
  if (!self->content && !self->told)
    log_event ("push %s to %s: %s", self->mount, self->uri.shown,
        error ? error->message : "a folder of titles cannot be pushed");
  self->told = TRUE;
  g_clear_error (&error);
  return self->content != NULL;
}

static void
start (Push *self)
{
  gboolean is_rtmp = self->uri.kind == PUSH_RTMP;
  gchar *left_out, *problem = mux_input_dup_problem (is_rtmp ? &carriage_flv : &carriage_ts,
                       presentation_get_relay (live_content_get (self->content)));
  GError *error = NULL;
  gboolean ok;

  self->running = TRUE;
  self->begun = clock_now ();
  if (problem) {
    fail (self, problem);
    g_free (problem);
    return;
  }
  if (is_rtmp) {
    start_rtmp (self);
    return;
  }
  self->stream = ts_stream_get (live_content_get (self->content), &error);
  ok = self->stream
       && (self->uri.kind == PUSH_UDP ? start_udp (self, &error) : start_srt (self, &error));
  if (ok) {
    left_out = ts_stream_dup_left_out (self->stream);
    if (self->uri.kind == PUSH_UDP)
      show (self, "UDP-TS", self->uri.host, self->uri.port, left_out);
    else
      show (self, "SRT", self->name, 0, left_out);
    g_free (left_out);
  } else {
    fail (self, error->message);
    g_error_free (error);
  }
}

void
push_tick (Push *self)
{
  if (self->running || clock_now () < self->again || !use_content (self))
    return;
  if (content_ask (self->content, NULL) == CONTENT_READY)
    start (self);
}

Push *
push_new (Mounts *mounts, const gchar *mount, const PushUri *uri)
{
  Push *self = g_new0 (Push, 1);

  self->mounts = mounts;
  self->mount = g_strdup (mount);
  self->uri = *uri;
  self->demand = demand_new (mount);
  return self;
}

void
push_free (gpointer data)
{
  Push *self = data;

  stop (self);
  g_clear_pointer (&self->content, content_unref);
  demand_free (self->demand);
  push_uri_clear (&self->uri);
  g_free (self->mount);
  g_free (self);
}
