// SPDX-License-Identifier: LGPL-2.1-or-later
#include "graph/stage_isolated.h"

#include <errno.h>
#include <gst/app/gstappsink.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/threads.h"
#include "sources/isolated_job.h"
#include "sources/isolated_pull.h"

// How soon the threads that wait for a worker notice that their run ends.
#define POLL_MS 100

typedef struct _StageIsolated StageIsolated;

// A track whose packets go to the worker.
typedef struct {
  StageIsolated *run;
  guint track;
  gint socket; // -1: none
  WireMessage *batch;
} Sender;

struct _StageIsolated {
  IsolatedJob job; // first
  StageTracks *tracks;
  GstElement *reader; // the pipeline that reads the packets for the worker; or NULL
  Sender senders[RELAY_MAX_TRACKS];
  gint stopped; // atomic: nothing is sent any more
  GDestroyNotify closed;
  gpointer data;
};

gboolean
stage_isolated_wants (const Stage *stage, gboolean input)
{
  Isolate mode = isolated_pull_get ();

  if (stage_get_file (stage)->native)
    return FALSE;
  if (stage_get_file (stage)->takes == STAGE_RAW && !stage_get_file (stage)->inputs)
    return input;
  return mode == ISOLATE_YES || (mode == ISOLATE_AUTO && stage_has_foreign_elements (stage));
}

// ---- what the worker says; in the loop's thread ----

static void
on_track (gpointer owner, guint track, GstCaps *caps)
{
  StageIsolated *self = owner;

  if (stage_tracks_has (self->tracks, track))
    stage_tracks_set_caps (&self->tracks->each[track], caps);
}

static void
on_packet (gpointer owner, guint track, const WirePacket *packet)
{
  StageIsolated *self = owner;
  StageTracks *tracks = self->tracks;

  if (!stage_tracks_has (tracks, track) || !tracks->each[track].caps)
    isolated_job_accuse (&self->job, "was killed: it sent a packet of an unknown track");
  else if (!g_atomic_int_get (&tracks->context->cancelled))
    stage_tracks_push (
        &tracks->each[track], gst_buffer_new_memdup (packet->data, packet->len), packet->more);
}

static void
on_flows (gpointer owner, guint track)
{
  stage_tracks_flow (((StageIsolated *) owner)->tracks);
}

static void
on_asked (gpointer owner, guint track)
{
  relay_ask_key (((StageIsolated *) owner)->tracks->from, track, clock_now ());
}

static void
on_ended (gpointer owner, const gchar *reason)
{
  const PullContext *context = ((StageIsolated *) owner)->tracks->context;

  context->callbacks->ended (context->owner, reason);
}

static const WireHandler handler = {
  .packet = on_packet, .ended = on_ended, .track = on_track, .flows = on_flows, .asked = on_asked
};

// ---- packets for the worker; in the threads of the pipeline that reads them ----

// Sends the batch. Waits while the worker does not keep up: the packets stay in the window, and
// leave it when they are old.
static void
send_batch (Sender *sender)
{
  struct pollfd wait = { sender->socket, POLLOUT, 0 };

  while (!g_atomic_int_get (&sender->run->stopped)) {
    gssize sent =
        send (sender->socket, sender->batch->data, sender->batch->len, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (sent >= 0 || (errno != EAGAIN && errno != EINTR))
      break;
    poll (&wait, 1, POLL_MS);
  }
  wire_begin (sender->batch, WIRE_PACKETS);
  wire_put (sender->batch, sender->track, 1);
}

static void
put_packet (Sender *sender, GstBuffer *packet)
{
  gint64 time = (gint64) GST_BUFFER_PTS (packet);

  if (wire_put_packet (sender->batch, packet, time, RELAY_NO_BASE))
    return;
  send_batch (sender);
  wire_put_packet (sender->batch, packet, time, RELAY_NO_BASE);
}

static GstFlowReturn
on_sample (GstAppSink *sink, gpointer data)
{
  Sender *sender = data;
  g_autoptr (GstSample) sample = gst_app_sink_pull_sample (sink);
  GstBufferList *list = sample ? gst_sample_get_buffer_list (sample) : NULL;

  if (!sample)
    return GST_FLOW_OK;
  for (guint i = 0; list && i < gst_buffer_list_length (list); i++)
    put_packet (sender, gst_buffer_list_get (list, i));
  if (!list && gst_sample_get_buffer (sample))
    put_packet (sender, gst_sample_get_buffer (sample));
  send_batch (sender);
  return GST_FLOW_OK;
}

// Drops all messages.
static GstBusSyncReply
on_message (GstBus *bus, GstMessage *message, gpointer data)
{
  StageIsolated *self = data;

  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ELEMENT)
    stage_tracks_count_miss (self->tracks, message);
  gst_message_unref (message);
  return GST_BUS_DROP;
}

// ---- the start ----

static void
release (IsolatedJob *job)
{
  StageIsolated *self = (StageIsolated *) job;

  for (guint i = 0; i < RELAY_MAX_TRACKS; i++) {
    if (self->senders[i].socket >= 0)
      close (self->senders[i].socket);
    g_free (self->senders[i].batch);
  }
  gst_clear_object (&self->reader);
  stage_tracks_free (self->tracks);
  g_free (self);
}

static void
connect_sender (StageIsolated *self, guint track)
{
  Sender *sender = &self->senders[track];
  GstAppSinkCallbacks callbacks = { .new_sample = on_sample };
  g_autofree gchar *name = g_strdup_printf ("in%u", track);
  g_autoptr (GstElement) sink = gst_bin_get_by_name (GST_BIN (self->reader), name);

  sender->batch = g_new (WireMessage, 1);
  wire_begin (sender->batch, WIRE_PACKETS);
  wire_put (sender->batch, track, 1);
  gst_app_sink_set_callbacks (GST_APP_SINK (sink), &callbacks, sender, NULL);
}

static gboolean
make_reader (StageIsolated *self, const gchar *text, GError **error)
{
  g_autoptr (GstBus) bus = NULL;

  self->reader = gst_parse_launch_full (text, NULL, GST_PARSE_FLAG_FATAL_ERRORS, error);
  if (!self->reader)
    return FALSE;
  gst_object_ref_sink (self->reader);
  threads_name_tasks (self->reader, "stage");
  bus = gst_element_get_bus (self->reader);
  gst_bus_set_sync_handler (bus, on_message, self, NULL);
  return TRUE;
}

// Makes the sockets of the tracks. Returns the number of the worker's ends in `theirs`, or -1.
static gint
open_senders (StageIsolated *self, gint *theirs)
{
  gint n = 0;

  for (guint i = 0; i < self->tracks->n_tracks; i++) {
    gint pair[2];

    if (!stage_tracks_has (self->tracks, i))
      continue;
    if (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
      while (n > 0)
        close (theirs[--n]);
      return -1;
    }
    self->senders[i].socket = pair[0];
    theirs[n++] = pair[1];
    connect_sender (self, i);
  }
  return n;
}

static void
put_stage (StageIsolated *self, WireMessage *message, const gchar *text)
{
  StageTracks *tracks = self->tracks;
  g_autofree gchar *fades = stage_dup_fades (tracks->stage);

  wire_begin (message, WIRE_STAGE);
  wire_put_text (message, text);
  wire_put_text (message, fades ? fades : "");
  wire_put (message, (guint64) __builtin_popcount (tracks->processed), 1);
  for (guint i = 0; i < tracks->n_tracks; i++) {
    if (!stage_tracks_has (tracks, i))
      continue;
    wire_put (message, i, 1);
    wire_put (message, stage_get_file (tracks->stage)->gives == STAGE_RAW, 1);
    wire_put (message, self->reader != NULL, 1);
    if (self->reader)
      wire_put_track (message, tracks->each[i].in);
  }
  if (strlen (text) > WIRE_LAUNCH_MAX)
    message->failed = TRUE;
}

static gboolean
start_job (StageIsolated *self, Worker *where, const gchar *text, GError **error)
{
  gint theirs[RELAY_MAX_TRACKS], n = self->reader ? open_senders (self, theirs) : 0;
  g_autofree WireMessage *message = NULL;
  gboolean ok;

  if (n < 0) {
    g_set_error (
        error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_OPEN_READ_WRITE, "%s", g_strerror (errno));
    return FALSE;
  }
  message = g_new (WireMessage, 1);
  put_stage (self, message, text);
  self->job.n_tracks = self->tracks->n_tracks;
  stage_tracks_link (self->tracks);
  ok = isolated_job_start (&self->job, SANDBOX_STAGE, where, message, theirs, (guint) n, error);
  for (gint i = 0; i < n; i++)
    close (theirs[i]);
  return ok;
}

static void
ask_for_key (gpointer data, guint track, gint64 now)
{
  StageIsolated *self = data;

  if (stage_tracks_has (self->tracks, track))
    isolated_job_tell (&self->job, WIRE_ASK, (guint8) track);
  else
    relay_ask_key (self->tracks->from, track, now);
}

gpointer
stage_isolated_new (const StageInput *input, Stage *stage, guint id, Worker *where,
    const PullContext *context, GError **error)
{
  StageIsolated *self = g_new0 (StageIsolated, 1);
  g_autoptr (GString) reader = g_string_new (NULL);
  g_autofree gchar *text = NULL;
  gboolean ok;

  for (guint i = 0; i < RELAY_MAX_TRACKS; i++)
    self->senders[i] = (Sender) { self, i, -1, NULL };
  self->job.handler = &handler;
  self->job.release = release;
  self->tracks = stage_tracks_new (input, stage, id, context);
  text = stage_tracks_publish (self->tracks, reader, error);
  ok = text && (!reader->len || make_reader (self, reader->str, error))
       && start_job (self, where, text, error);
  if (!ok) {
    release (&self->job);
    return NULL;
  }
  relay_source_set_key_handler (
      context->source, ask_for_key, isolated_job_ref (&self->job), isolated_job_unref);
  if (self->reader)
    gst_element_set_state (self->reader, GST_STATE_PLAYING);
  return self;
}

// ---- the end ----

static void
stop_reader (GstElement *reader, gpointer data)
{
  gst_element_set_state (reader, GST_STATE_NULL);
}

static void
close_job (gpointer data)
{
  StageIsolated *self = data;

  isolated_job_close (&self->job, self->closed, self->data);
}

void
stage_isolated_close (gpointer run, GDestroyNotify closed, gpointer data)
{
  StageIsolated *self = run;

  g_atomic_int_set (&self->stopped, 1);
  relay_source_set_key_handler (self->tracks->context->source, NULL, NULL, NULL);
  self->closed = closed;
  self->data = data;
  if (self->reader)
    gst_element_call_async (self->reader, stop_reader, self, close_job);
  else
    close_job (self);
}

Worker *
stage_isolated_get_worker (gpointer run)
{
  return isolated_job_get_worker (&((StageIsolated *) run)->job);
}
