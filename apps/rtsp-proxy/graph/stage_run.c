// SPDX-License-Identifier: LGPL-2.1-or-later
#include "graph/stage_run.h"

#include "base/clock.h"
#include "base/key_event.h"
#include "base/stage_pipeline.h"

#include <gst/app/gstappsink.h>

static GstFlowReturn
on_sample (GstAppSink *sink, gpointer data)
{
  StageTrack *track = data;
  g_autoptr (GstSample) sample = gst_app_sink_pull_sample (sink);
  GstBufferList *list = sample ? gst_sample_get_buffer_list (sample) : NULL;
  guint n = list ? gst_buffer_list_length (list) : 0;

  if (!sample || g_atomic_int_get (&track->tracks->context->cancelled))
    return GST_FLOW_OK;
  stage_tracks_set_caps (track, gst_sample_get_caps (sample));
  for (guint i = 0; i < n; i++)
    stage_tracks_push (track, gst_buffer_ref (gst_buffer_list_get (list, i)), i + 1 < n);
  if (!list && gst_sample_get_buffer (sample))
    stage_tracks_push (track, gst_buffer_ref (gst_sample_get_buffer (sample)), FALSE);
  return GST_FLOW_OK;
}

static GstPadProbeReturn
on_frame (GstPad *pad, GstPadProbeInfo *info, gpointer tracks)
{
  stage_tracks_flow (tracks);
  return GST_PAD_PROBE_OK;
}

static void
connect_out (StageTracks *self, GstElement *pipeline, guint i, gboolean raw)
{
  g_autofree gchar *name = g_strdup_printf ("out%u", i);
  g_autoptr (GstElement) out = gst_bin_get_by_name (GST_BIN (pipeline), name);
  GstAppSinkCallbacks callbacks = { .new_sample = on_sample };
  g_autoptr (GstPad) pad = NULL;

  if (raw) {
    pad = gst_element_get_static_pad (out, "sink");
    gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, on_frame, self, NULL);
  } else {
    gst_app_sink_set_callbacks (GST_APP_SINK (out), &callbacks, &self->each[i], NULL);
  }
}

// Asks for a keyframe: the stage's pipeline, or the input for a track that the stage does not
// process.
static void
ask_for_key (GstElement *pipeline, guint track)
{
  StageTracks *self = g_object_get_data (G_OBJECT (pipeline), "tracks");
  g_autoptr (GstElement) out = NULL;
  g_autoptr (GstPad) pad = NULL;
  g_autofree gchar *name = NULL;

  if (!stage_tracks_has (self, track)) {
    relay_ask_key (self->from, track, clock_now ());
    return;
  }
  name = g_strdup_printf ("out%u", track);
  out = gst_bin_get_by_name (GST_BIN (pipeline), name);
  pad = gst_element_get_static_pad (out, "sink");
  gst_pad_push_event (pad, key_event_new ());
}

static void
on_element_message (GstBus *bus, GstMessage *message, gpointer tracks)
{
  stage_tracks_count_miss (tracks, message);
}

GstElement *
stage_run_new (
    const StageInput *input, Stage *stage, guint id, const PullContext *context, GError **error)
{
  StageTracks *self = stage_tracks_new (input, stage, id, context);
  gboolean raw = stage_get_file (stage)->gives == STAGE_RAW;
  g_autofree gchar *text = stage_tracks_publish (self, NULL, error),
                   *fades = stage_dup_fades (stage);
  GstElement *pipeline = text ? stage_pipeline_new (text, fades, error) : NULL;
  g_autoptr (GstBus) bus = NULL;

  if (!pipeline) {
    stage_tracks_free (self);
    return NULL;
  }
  g_object_set_data_full (G_OBJECT (pipeline), "tracks", self, stage_tracks_free);
  for (guint i = 0; i < self->n_tracks; i++) {
    if (stage_tracks_has (self, i))
      connect_out (self, pipeline, i, raw);
  }
  bus = gst_element_get_bus (pipeline);
  gst_bus_enable_sync_message_emission (bus);
  g_signal_connect (bus, "sync-message::element", G_CALLBACK (on_element_message), self);
  stage_tracks_link (self);
  pull_set_key_handler (context, pipeline, ask_for_key);
  return pipeline;
}
