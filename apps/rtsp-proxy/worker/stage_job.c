// SPDX-License-Identifier: LGPL-2.1-or-later

// Runs the pipeline of a stage. Packets of a track come over a socket that the thread of its appsrc
// reads, so a stage that does not keep up leaves them to the proxy.

#include "worker/stage_job.h"

#include <errno.h>
#include <gst/app/gstappsink.h>
#include <gst/app/gstappsrc.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/key_event.h"
#include "base/stage_pipeline.h"
#include "relay/relay.h"
#include "worker/job.h"

// The proxy watches the silence of the stage.
#define NEVER_MS G_MAXINT32
// How soon the thread of an appsrc notices that its run ends.
#define POLL_MS 100
#define FLOWS_INTERVAL (100 * GST_MSECOND)

typedef struct {
  Job *job;
  const PullContext *context;
  guint8 track;
  gboolean gives_raw;
  gint socket;   // of the packets; -1: the track comes from a window of this process
  GstCaps *caps; // of the packets
  // Of the thread of the appsrc:
  GstAppSrc *src;
  GstBufferList *list;
  guint8 *scratch; // of WIRE_MAX bytes
  // Of the thread of the output:
  gboolean is_told; // the proxy knows the caps
  WireMessage *batch;
  gint64 flowed; // when the last WIRE_FLOWS was sent, ns
  GstPad *out;   // the sink pad of the last element
} StageTrack;

typedef struct {
  Job job; // first
  gchar *text;
  gchar *fades; // empty: none
  guint n_tracks;
  StageTrack tracks[RELAY_MAX_TRACKS];
} StageJob;

static void
release (Job *job)
{
  StageJob *self = (StageJob *) job;

  for (guint i = 0; i < self->n_tracks; i++) {
    StageTrack *track = &self->tracks[i];

    if (track->socket >= 0)
      close (track->socket);
    gst_clear_caps (&track->caps);
    gst_clear_object (&track->out);
    g_free (track->scratch);
    g_free (track->batch);
  }
  g_free (self->text);
  g_free (self->fades);
  g_free (self);
}

// ---- input; in the thread of the appsrc ----

// If the element stops meanwhile, gst_app_src_push_buffer_list() of GStreamer 1.22 frees another
// pointer than the list's.
static void
push_list (StageTrack *track)
{
  GstFlowReturn flow;

  g_signal_emit_by_name (track->src, "push-buffer-list", track->list, &flow);
  g_clear_pointer (&track->list, gst_buffer_list_unref);
}

static void
on_packet (gpointer owner, guint index, const WirePacket *packet)
{
  StageTrack *track = owner;
  GstBuffer *buffer = gst_buffer_new_memdup (packet->data, packet->len);

  GST_BUFFER_PTS (buffer) = GST_BUFFER_DTS (buffer) = (GstClockTime) packet->now;
  if (!track->list)
    track->list = gst_buffer_list_new ();
  gst_buffer_list_add (track->list, buffer);
  if (!packet->more)
    push_list (track);
}

// Waits for the next message and passes its packets on. Returns FALSE if no further one will come.
static gboolean
read_packets (StageTrack *track)
{
  static const WireHandler handler = { .packet = on_packet };
  struct pollfd wait = { track->socket, POLLIN, 0 };
  gssize n;

  if (poll (&wait, 1, POLL_MS) <= 0)
    return TRUE;
  n = recv (track->socket, track->scratch, WIRE_MAX, MSG_DONTWAIT);
  if (n < 0)
    return errno == EAGAIN || errno == EINTR;
  return n > 0 && wire_read (track->scratch, (gsize) n, track->track + 1, &handler, track);
}

static void
on_need_data (GstAppSrc *src, guint length, gpointer data)
{
  StageTrack *track = data;

  while (!g_atomic_int_get (&track->context->cancelled)) {
    if (!read_packets (track) || gst_app_src_get_current_level_buffers (src) > 0)
      return;
  }
}

static GstPadProbeReturn
on_upstream_event (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  StageTrack *track = data;

  if (!key_event_is (GST_PAD_PROBE_INFO_EVENT (info)))
    return GST_PAD_PROBE_OK;
  job_tell (track->job, WIRE_ASKED, track->track);
  return GST_PAD_PROBE_DROP;
}

// ---- output ----

static void
tell_caps (StageTrack *track, GstCaps *caps)
{
  g_autofree WireMessage *message = NULL;

  if (track->is_told)
    return;
  track->is_told = TRUE;
  message = g_new (WireMessage, 1);
  wire_begin (message, WIRE_TRACK);
  wire_put (message, track->track, 1);
  wire_put_track (message, caps);
  job_send (track->job, message);
}

static void
begin_batch (StageTrack *track)
{
  wire_begin (track->batch, WIRE_PACKETS);
  wire_put (track->batch, track->track, 1);
}

static void
put_packet (StageTrack *track, GstBuffer *packet, gint64 now)
{
  if (wire_put_packet (track->batch, packet, now, RELAY_NO_BASE))
    return;
  job_send (track->job, track->batch);
  begin_batch (track);
  wire_put_packet (track->batch, packet, now, RELAY_NO_BASE);
}

static GstFlowReturn
on_sample (GstAppSink *sink, gpointer data)
{
  StageTrack *track = data;
  g_autoptr (GstSample) sample = gst_app_sink_pull_sample (sink);
  GstBufferList *list = sample ? gst_sample_get_buffer_list (sample) : NULL;
  gint64 now = clock_now ();

  if (!sample || g_atomic_int_get (&track->context->cancelled))
    return GST_FLOW_OK;
  tell_caps (track, gst_sample_get_caps (sample));
  begin_batch (track);
  for (guint i = 0; list && i < gst_buffer_list_length (list); i++)
    put_packet (track, gst_buffer_list_get (list, i), now);
  if (!list && gst_sample_get_buffer (sample))
    put_packet (track, gst_sample_get_buffer (sample), now);
  job_send (track->job, track->batch);
  return GST_FLOW_OK;
}

static GstPadProbeReturn
on_frame (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  StageTrack *track = data;
  gint64 now = clock_now ();

  if (now - track->flowed < (gint64) FLOWS_INTERVAL)
    return GST_PAD_PROBE_OK;
  track->flowed = now;
  job_tell (track->job, WIRE_FLOWS, track->track);
  return GST_PAD_PROBE_OK;
}

// ---- the pipeline ----

static GstElement *
find (GstElement *pipeline, const gchar *prefix, guint track)
{
  g_autofree gchar *name = g_strdup_printf ("%s%u", prefix, track);

  return gst_bin_get_by_name (GST_BIN (pipeline), name);
}

static void
connect_in (GstElement *pipeline, StageTrack *track)
{
  g_autoptr (GstElement) in = find (pipeline, "in", track->track);
  GstAppSrcCallbacks callbacks = { .need_data = on_need_data };
  g_autoptr (GstPad) pad = gst_element_get_static_pad (in, "src");

  track->src = GST_APP_SRC (in); // the pipeline keeps it
  track->scratch = g_malloc (WIRE_MAX);
  gst_app_src_set_caps (track->src, track->caps);
  gst_app_src_set_callbacks (track->src, &callbacks, track, NULL);
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_EVENT_UPSTREAM, on_upstream_event, track, NULL);
}

static void
connect_out (GstElement *pipeline, StageTrack *track)
{
  g_autoptr (GstElement) out = find (pipeline, "out", track->track);
  GstAppSinkCallbacks callbacks = { .new_sample = on_sample };

  track->out = gst_element_get_static_pad (out, "sink");
  if (track->gives_raw) {
    gst_pad_add_probe (track->out, GST_PAD_PROBE_TYPE_BUFFER, on_frame, track, NULL);
  } else {
    track->batch = g_new (WireMessage, 1);
    gst_app_sink_set_callbacks (GST_APP_SINK (out), &callbacks, track, NULL);
  }
}

static GstElement *
make_pipeline (const PullContext *context, GError **error)
{
  StageJob *self = context->data;
  GstElement *pipeline = stage_pipeline_new (self->text, self->fades, error);

  for (guint i = 0; pipeline && i < self->n_tracks; i++) {
    StageTrack *track = &self->tracks[i];

    track->context = context;
    if (track->socket >= 0)
      connect_in (pipeline, track);
    connect_out (pipeline, track);
  }
  return pipeline;
}

static void
ask (Job *job, guint index)
{
  StageJob *self = (StageJob *) job;

  for (guint i = 0; i < self->n_tracks; i++) {
    if (self->tracks[i].track == index && self->tracks[i].out)
      gst_pad_push_event (self->tracks[i].out, key_event_new ());
  }
}

// ---- the job ----

// Reads a track. Its packets come over the next of the descriptors, if it has packets.
static void
read_track (StageJob *self, WeirBytes *b, const gint *fds, guint n_fds, guint *used)
{
  StageTrack *track = &self->tracks[self->n_tracks];
  guint8 gives_raw, takes_packets;

  track->job = &self->job;
  track->socket = -1;
  weir_bytes_u8 (b, &track->track);
  weir_bytes_u8 (b, &gives_raw);
  weir_bytes_u8 (b, &takes_packets);
  track->gives_raw = gives_raw;
  if (takes_packets)
    track->caps = wire_read_caps (b);
  if (b->failed || track->track >= RELAY_MAX_TRACKS || (takes_packets && *used == n_fds)) {
    b->failed = TRUE;
    gst_clear_caps (&track->caps);
    return;
  }
  if (takes_packets)
    track->socket = fds[(*used)++];
  self->n_tracks++;
}

// Reads a job. Returns how many of the descriptors it uses.
static guint
read_job (StageJob *self, WeirBytes *b, const gint *fds, guint n_fds)
{
  guint used = 0;
  guint8 type, n;

  weir_bytes_u8 (b, &type);
  self->text = wire_dup_text (b, WIRE_LAUNCH_MAX);
  self->fades = wire_dup_text (b, WIRE_LAUNCH_MAX);
  weir_bytes_u8 (b, &n);
  if (n > RELAY_MAX_TRACKS)
    b->failed = TRUE;
  for (guint i = 0; i < n && !b->failed; i++)
    read_track (self, b, fds, n_fds, &used);
  return used;
}

void
stage_job_start (const guint8 *message, gsize len, const gint *fds, guint n_fds)
{
  StageJob *self = g_new0 (StageJob, 1);
  Job *job = &self->job;
  WeirBytes b = weir_bytes (message, len);

  job->socket = fds[0];
  job->ask = ask;
  job->release = release;
  job->config.connect_timeout_ms = job->config.read_timeout_ms = NEVER_MS;
  for (guint used = 1 + read_job (self, &b, fds + 1, n_fds - 1); used < n_fds; used++)
    close (fds[used]);
  job_init (job);
  job_start (job, make_pipeline, b.failed ? "malformed job" : NULL);
}
