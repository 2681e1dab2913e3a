// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/ts/push.h"

#include <gio/gio.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "outlets/ts/mux_input.h"
#include "outlets/ts/ts_reader.h"
#include "outlets/ts/ts_stream.h"
#include "readers/adaptation.h"

// FLV, version 10.1, E.4.1 and E.4.2: a tag's head, and what precedes a frame of AAC. Other sound
// has one byte less there, and no frame of one byte.
#define TAG_HEAD 11
#define TAG_AUDIO 8
#define TAG_AUDIO_HEAD 2

#define WELL (10 * GST_SECOND) // a run that lasted so long begins a new row of failures

struct _Push {
  Mounts *mounts;
  gchar *mount;
  PushUri uri;
  Demand *demand;
  Presentation *presentation; // in use; NULL: not yet
  gint64 again, begun;
  guint n_failures;
  gboolean running, told;
  LogLimit begins, failures;

  // What runs.
  TsStream *stream;
  gchar *name;          // UDP, SRT: in the stream's sink
  GstElement *sink;     // what the API's figures come from
  GstElement *pipeline; // SRT
  GSocket *end;         // SRT: the pipeline's end of the pair
  guint watch;
  MuxInput *flv;    // RTMP
  gchar *ended;     // RTMP: why `flv` has
  TsReader *reader; // NULL: not connected
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
  g_clear_pointer (&self->ended, g_free);
  g_clear_pointer (&self->stream, ts_stream_unref);
}

static void
fail (Push *self, const gchar *reason)
{
  gint64 now = clock_now ();
  guint wait_ms;

  if (now - self->begun > (gint64) WELL)
    self->n_failures = 0;
  wait_ms = backoff_ms (++self->n_failures, g_random_double ());
  self->again = now + (gint64) wait_ms * GST_MSECOND;
  log_event_limited (&self->failures, "push %s to %s down: %s; next try in %.1f s", self->mount,
      self->uri.shown, reason, wait_ms / 1000.0);
  stop (self); // the reason may be of what it frees
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
  log_event_limited (&self->begins, "push %s to %s begins", self->mount, self->uri.shown);
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
  g_autoptr (GError) error = NULL;

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
  g_autofree gchar *text = NULL;

  self->name = ts_stream_add_pair (self->stream, &self->end, error);
  if (!self->name)
    return FALSE;
  text = g_strdup_printf ("fdsrc fd=%d ! tsparse alignment=7 ! srtsink name=server sync=false "
                          "async=false auto-reconnect=false",
      g_socket_get_fd (self->end));
  self->pipeline = gst_parse_launch_full (text, NULL, GST_PARSE_FLAG_FATAL_ERRORS, error);
  if (self->pipeline) {
    gst_object_ref_sink (self->pipeline);
    sink = gst_bin_get_by_name (GST_BIN (self->pipeline), "server");
    g_object_set (sink, "uri", self->uri.uri, NULL); // sets the mode, too
    gst_util_set_object_arg (G_OBJECT (sink), "mode", "caller");
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

// A gap of a track, which lets flvmux go on with the others, becomes a tag without a frame. Some
// servers close the connection for it.
static GstPadProbeReturn
drop_empty (GstPad *pad, GstPadProbeInfo *info, gpointer unused)
{
  guint8 head[TAG_HEAD];
  GstBuffer *tag = GST_PAD_PROBE_INFO_BUFFER (info);

  return gst_buffer_extract (tag, 0, head, TAG_HEAD) == TAG_HEAD && head[0] == TAG_AUDIO
                 && GST_READ_UINT24_BE (head + 1) <= TAG_AUDIO_HEAD
             ? GST_PAD_PROBE_DROP
             : GST_PAD_PROBE_OK;
}

static gboolean
on_made (gpointer owner, GstElement *pipeline, GPtrArray *filters, gboolean has_video)
{
  Push *self = owner;
  g_autoptr (GstPad) pad = NULL;

  self->sink = gst_bin_get_by_name (GST_BIN (pipeline), "server");
  g_object_set (self->sink, "location", self->uri.uri, NULL);
  pad = gst_element_get_static_pad (self->sink, "sink");
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, drop_empty, NULL, NULL);
  return TRUE;
}

static gboolean
fail_later (gpointer data)
{
  Push *self = data;

  self->watch = 0;
  fail (self, self->ended);
  return G_SOURCE_REMOVE;
}

static void
on_ended (gpointer owner, const gchar *reason)
{
  Push *self = owner;

  if (self->watch)
    return;
  self->ended = g_strdup (reason);
  self->watch = g_idle_add (fail_later, self); // the input is the caller
}

static void
start_rtmp (Push *self)
{
  static const MuxInputCallbacks callbacks = { on_made, on_ended };
  g_autoptr (MountConfig) config = presentation_dup_config (self->presentation);
  g_autofree gchar *label = g_strdup_printf ("push %s", self->mount);

  self->flv = mux_input_new (&carriage_flv, presentation_get_relay (self->presentation),
      adaptation_limit (config, self->demand->layers), label,
      "rtmp2sink name=server sync=false async=false", &callbacks, self);
}

// ---- the start of a run ----

static gboolean
use_presentation (Push *self)
{
  g_autoptr (GError) error = NULL;

  if (self->presentation)
    return TRUE;
  self->presentation = mounts_use_demand (self->mounts, self->demand, &error);
  if (!self->presentation && !self->told)
    log_event ("push %s to %s: %s", self->mount, self->uri.shown, error->message);
  self->told = TRUE;
  return self->presentation != NULL;
}

static void
start (Push *self)
{
  gboolean is_rtmp = self->uri.kind == PUSH_RTMP;
  gchar *problem = mux_input_dup_problem (
      is_rtmp ? &carriage_flv : &carriage_ts, presentation_get_relay (self->presentation));
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
  self->stream = ts_stream_get (self->presentation, self->demand->layers, &error);
  ok = self->stream
       && (self->uri.kind == PUSH_UDP ? start_udp (self, &error) : start_srt (self, &error));
  if (!ok) {
    fail (self, error->message);
    g_error_free (error);
  }
}

// ---- the connection ----

// Returns how many bytes an rtmp2sink or an srtsink has sent since its server took the connection.
static guint64
count_sent (GstElement *server, const gchar *field)
{
  g_autoptr (GstStructure) stats = NULL;
  guint64 sent = 0;

  g_object_get (server, "stats", &stats, NULL);
  if (stats)
    gst_structure_get_uint64 (stats, field, &sent);
  return sent;
}

static gboolean
is_connected (Push *self)
{
  g_autoptr (GstElement) server = NULL;

  if (self->uri.kind == PUSH_UDP)
    return TRUE;
  if (self->uri.kind == PUSH_RTMP)
    return self->sink && count_sent (self->sink, "out-bytes-total") > 0;
  server = gst_bin_get_by_name (GST_BIN (self->pipeline), "server");
  return count_sent (server, "bytes-sent-total") > 0;
}

static void
show_connected (Push *self)
{
  g_autofree gchar *left_out = NULL;

  if (self->uri.kind == PUSH_RTMP) {
    show (self, "RTMP", NULL, 0, mux_input_get_left_out (self->flv));
    return;
  }
  left_out = ts_stream_dup_left_out (self->stream);
  if (self->uri.kind == PUSH_UDP)
    show (self, "UDP-TS", self->uri.host, self->uri.port, left_out);
  else
    show (self, "SRT", self->name, 0, left_out);
}

void
push_tick (Push *self)
{
  if (!self->running && clock_now () >= self->again && use_presentation (self)
      && presentation_ask (self->presentation, NULL) == PRESENTATION_READY)
    start (self);
  if (self->running && !self->reader && is_connected (self))
    show_connected (self);
}

Push *
push_new (Mounts *mounts, const gchar *mount, const PushUri *uri)
{
  Push *self = g_new0 (Push, 1);

  self->mounts = mounts;
  self->mount = g_strdup (mount);
  self->uri = *uri;
  self->begins = self->failures = LOG_LIMIT_FAILURES;
  self->demand = demand_new (mount);
  return self;
}

void
push_free (gpointer data)
{
  Push *self = data;

  stop (self);
  g_clear_pointer (&self->presentation, presentation_leave);
  demand_free (self->demand);
  push_uri_clear (&self->uri);
  g_free (self->mount);
  g_free (self);
}
