// SPDX-License-Identifier: LGPL-2.1-or-later
#include "graph/stage_run.h"

#include "base/clock.h"
#include "base/key_event.h"
#include "relay/relay_link.h"

#include <gst/app/gstappsink.h>

// Raw frames in a window. They are large, and readers need only the newest.
#define RAW_FRAMES 8
// Most packets of a track that are held until all tracks are known; older ones are dropped.
#define HELD_PACKETS 1024
#define NTP_INTERVAL GST_SECOND

typedef struct _StageRun StageRun;

typedef struct {
  StageRun *run;
  guint track;
  guint rate;    // Hz
  guint32 base;  // RTP timestamp at the run's start
  GstCaps *caps; // of the output; NULL until known
  GQueue held;   // of GstBuffer
  gint64 mapped; // time of the last map_ntp() that gave the relay an NTP time, ns
} RunTrack;

struct _StageRun {
  const PullContext *context;
  StageInput input; // call its functions on the main thread only
  Relay *from;
  Relay *clock;      // the nearest relay with sender reports; it has the same time as `from`
  gint64 start;      // in the input's time, ns
  gboolean payloads; // the stage has a payloader
  guint n_tracks;
  guint32 processed; // mask of the tracks that the stage processes
  RunTrack tracks[RELAY_MAX_TRACKS];

  GMutex lock; // protects the fields below, and `caps` and `held` of the tracks
  gboolean beginning, begun;
};

// ---- the end ----

static gboolean
release_input (gpointer data)
{
  StageRun *self = data;

  for (guint i = 0; i < self->n_tracks; i++) {
    if (self->processed & 1u << i)
      self->input.unpublish (self->input.data, i);
  }
  self->input.release (self->input.data);
  g_free (self);
  return G_SOURCE_REMOVE;
}

// Called when the pipeline is freed, from any thread.
static void
run_free (gpointer data)
{
  StageRun *self = data;

  for (guint i = 0; i < self->n_tracks; i++) {
    gst_clear_caps (&self->tracks[i].caps);
    g_queue_clear_full (&self->tracks[i].held, (GDestroyNotify) gst_buffer_unref);
  }
  relay_unref (self->from);
  relay_unref (self->clock);
  g_mutex_clear (&self->lock);
  g_main_context_invoke (NULL, release_input, self);
}

// ---- output ----

static void
begin (StageRun *self)
{
  const PullContext *context = self->context;
  GPtrArray *caps = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);
  RelayTracks tracks;

  for (guint i = 0; i < self->n_tracks; i++)
    g_ptr_array_add (caps, gst_caps_ref (self->tracks[i].caps));
  tracks = relay_source_begin_from (context->source, caps, self->from, self->start);
  context->callbacks->begun (context->owner, tracks);
  g_ptr_array_unref (caps);
}

// Maps the stage's timestamps to the NTP times that the input's sender reports give for the same
// instants.
static void
map_ntp (RunTrack *track, GstBuffer *packet, gint64 now)
{
  StageRun *self = track->run;
  guint8 header[12];
  WeirNtpMap map = { .known = TRUE };
  gint64 time;

  if (now - track->mapped < (gint64) NTP_INTERVAL
      || !relay_get_ntp (self->clock, track->track, &map.ntp, &time)
      || gst_buffer_extract (packet, 0, header, sizeof header) < sizeof header)
    return;
  track->mapped = now;
  map.timestamp = track->base
                  + (guint32) gst_util_uint64_scale (
                        (guint64) ABS (time - self->start), track->rate, GST_SECOND)
                        * (time < self->start ? -1u : 1u);
  map.ssrc = GST_READ_UINT32_BE (header + 8);
  relay_set_ntp_map (self->context->source, track->track, &map);
}

static void
push (RunTrack *track, GstBuffer *packet)
{
  const PullContext *context = track->run->context;
  gint64 now = clock_now ();

  map_ntp (track, packet, now);
  relay_push (context->source, track->track, packet, now, track->base);
  context->callbacks->packet (context->owner, now);
}

// Sends a packet, or holds it until all tracks are known: all tracks begin together. Takes
// ownership of `packet`.
static void
take_packet (RunTrack *track, GstBuffer *packet)
{
  StageRun *self = track->run;
  gboolean begins = FALSE, all = TRUE, begun;

  g_mutex_lock (&self->lock);
  begun = self->begun;
  if (!begun) {
    g_queue_push_tail (&track->held, packet);
    if (track->held.length > HELD_PACKETS)
      gst_buffer_unref (g_queue_pop_head (&track->held));
    for (guint i = 0; i < self->n_tracks; i++)
      all = all && self->tracks[i].caps;
    begins = all && !self->beginning;
    self->beginning = all;
  }
  g_mutex_unlock (&self->lock);
  if (begun) {
    while (!g_queue_is_empty (&track->held)) // once begun, only this thread uses it
      push (track, g_queue_pop_head (&track->held));
    push (track, packet);
  } else if (begins) {
    begin (self);
    g_mutex_lock (&self->lock);
    self->begun = TRUE;
    g_mutex_unlock (&self->lock);
    while (!g_queue_is_empty (&track->held))
      push (track, g_queue_pop_head (&track->held));
  }
}

static void
set_caps (RunTrack *track, GstSample *sample)
{
  StageRun *self = track->run;
  gint rate = 90000;

  g_mutex_lock (&self->lock);
  if (!track->caps) {
    track->caps = gst_caps_ref (gst_sample_get_caps (sample));
    gst_structure_get_int (gst_caps_get_structure (track->caps, 0), "clock-rate", &rate);
    track->rate = (guint) rate;
    // A stage with a payloader writes the relay's time into the timestamps; other stages keep the
    // input's timestamps.
    track->base = self->payloads ? (guint32) gst_util_uint64_scale (
                                       (guint64) self->start, track->rate, GST_SECOND)
                                 : relay_get_timestamp (self->from, track->track, self->start);
  }
  g_mutex_unlock (&self->lock);
}

static GstFlowReturn
on_sample (GstAppSink *sink, gpointer data)
{
  RunTrack *track = data;
  GstSample *sample = gst_app_sink_pull_sample (sink);
  GstBufferList *list = sample ? gst_sample_get_buffer_list (sample) : NULL;

  if (!sample || g_atomic_int_get (&track->run->context->cancelled)) {
    g_clear_pointer (&sample, gst_sample_unref);
    return GST_FLOW_OK;
  }
  set_caps (track, sample);
  for (guint i = 0; list && i < gst_buffer_list_length (list); i++)
    take_packet (track, gst_buffer_ref (gst_buffer_list_get (list, i)));
  if (!list && gst_sample_get_buffer (sample))
    take_packet (track, gst_buffer_ref (gst_sample_get_buffer (sample)));
  gst_sample_unref (sample);
  return GST_FLOW_OK;
}

static GstPadProbeReturn
on_frame (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  const PullContext *context = ((StageRun *) data)->context;

  if (!g_atomic_int_get (&context->cancelled))
    context->callbacks->packet (context->owner, clock_now ());
  return GST_PAD_PROBE_OK;
}

// ---- the pipeline ----

static gboolean
processes (Stage *stage, GstCaps *caps)
{
  const StageFile *file = stage_get_file (stage);
  const gchar *media = gst_structure_get_string (gst_caps_get_structure (caps, 0), "media");

  return (!g_strcmp0 (media, "video") && file->media & STAGE_VIDEO)
         || (!g_strcmp0 (media, "audio") && file->media & STAGE_AUDIO);
}

static GstCaps *
raw_caps (GstCaps *caps)
{
  return gst_caps_new_simple ("application/x-rtp", "media", G_TYPE_STRING,
      gst_structure_get_string (gst_caps_get_structure (caps, 0), "media"), "encoding-name",
      G_TYPE_STRING, "RAW", "clock-rate", G_TYPE_INT, 90000, NULL);
}

static gboolean
append_track (StageRun *self, GString *text, Stage *stage, guint id, guint i, GError **error)
{
  const StageFile *file = stage_get_file (stage);
  RunTrack *track = &self->tracks[i];
  GstStructure *s = gst_caps_get_structure (track->caps, 0);
  gboolean takes_raw = file->takes == STAGE_RAW;
  gchar *middle = stage_dup_launch (
      stage, takes_raw ? NULL : gst_structure_get_string (s, "encoding-name"), error);
  gchar *in;
  GstCaps *out;

  if (!middle)
    return FALSE;
  in = self->input.publish (self->input.data, i);
  self->processed |= 1u << i;
  g_string_append_printf (text, "intervalcachesrc channel=%s start=%s ! %s ! ", in,
      takes_raw ? "live" : "join-point", middle);
  if (file->gives == STAGE_RAW) {
    g_string_append_printf (
        text, "intervalcache name=out%u channel=stage%u.%u max-buffers=%u ", i, id, i, RAW_FRAMES);
    out = raw_caps (track->caps);
  } else {
    g_string_append_printf (text, "appsink name=out%u sync=false async=false buffer-list=true ", i);
    out = NULL; // known with the first packet
  }
  gst_caps_unref (track->caps);
  track->caps = out;
  g_free (in);
  g_free (middle);
  return TRUE;
}

static gchar *
make_text (StageRun *self, Stage *stage, guint id, GError **error)
{
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < self->n_tracks; i++) {
    if (processes (stage, self->tracks[i].caps)
        && !append_track (self, text, stage, id, i, error)) {
      g_string_free (text, TRUE);
      return NULL;
    }
  }
  if (!self->processed) {
    g_set_error (error, GST_STREAM_ERROR, GST_STREAM_ERROR_WRONG_TYPE,
        "stage %s: its input has no %s track", stage_get_file (stage)->name,
        stage_media_name (stage_get_file (stage)->media));
    g_string_free (text, TRUE);
    return NULL;
  }
  return g_string_free (text, FALSE);
}

static void
connect_out (StageRun *self, GstElement *pipeline, guint i, gboolean raw)
{
  gchar *name = g_strdup_printf ("out%u", i);
  GstElement *out = gst_bin_get_by_name (GST_BIN (pipeline), name);
  GstAppSinkCallbacks callbacks = { .new_sample = on_sample };
  GstPad *pad;

  g_free (name);
  if (raw) {
    pad = gst_element_get_static_pad (out, "sink");
    gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, on_frame, self, NULL);
    gst_object_unref (pad);
  } else {
    gst_app_sink_set_callbacks (GST_APP_SINK (out), &callbacks, &self->tracks[i], NULL);
  }
  gst_object_unref (out);
}

// Asks for a keyframe: the stage's pipeline, or the input for a track that the stage does not
// process.
static void
ask_for_key (GstElement *pipeline, guint track)
{
  StageRun *self = g_object_get_data (G_OBJECT (pipeline), "run");
  GstElement *out;
  GstPad *pad;
  gchar *name;

  if (!(self->processed & 1u << track)) {
    relay_ask_key (self->from, track, clock_now ());
    return;
  }
  name = g_strdup_printf ("out%u", track);
  out = gst_bin_get_by_name (GST_BIN (pipeline), name);
  pad = gst_element_get_static_pad (out, "sink");
  gst_pad_push_event (pad, key_event_new ());
  gst_object_unref (pad);
  gst_object_unref (out);
  g_free (name);
}

static void
read_tracks (StageRun *self)
{
  for (guint i = 0; i < self->n_tracks; i++) {
    RunTrack *track = &self->tracks[i];

    track->run = self;
    track->track = i;
    track->caps = relay_dup_caps (self->from, i);
  }
}

GstElement *
stage_run_new (
    const StageInput *input, Stage *stage, guint id, const PullContext *context, GError **error)
{
  StageRun *self = g_new0 (StageRun, 1);
  gboolean raw = stage_get_file (stage)->gives == STAGE_RAW;
  GstElement *pipeline = NULL;
  gchar *text;

  self->context = context;
  self->input = *input;
  self->from = relay_ref (input->relay);
  self->clock = relay_ref (input->clock);
  self->start = relay_get_time (self->from);
  self->payloads = stage_get_file (stage)->takes == STAGE_RAW || stage_get_file (stage)->codec;
  self->n_tracks = relay_n_tracks (self->from);
  g_mutex_init (&self->lock);
  read_tracks (self);
  text = make_text (self, stage, id, error);
  if (text)
    pipeline = gst_parse_launch_full (text, NULL, GST_PARSE_FLAG_FATAL_ERRORS, error);
  g_free (text);
  if (!pipeline) {
    run_free (self);
    return NULL;
  }
  g_object_set_data_full (G_OBJECT (pipeline), "run", self, run_free);
  for (guint i = 0; i < self->n_tracks; i++) {
    if (self->processed & 1u << i)
      connect_out (self, pipeline, i, raw);
  }
  relay_unlink (self->from, context->source);
  relay_link_some (self->from, context->source, ~self->processed, self->start);
  pull_set_asker (context, pipeline, ask_for_key);
  if (raw)
    begin (self);
  return pipeline;
}
