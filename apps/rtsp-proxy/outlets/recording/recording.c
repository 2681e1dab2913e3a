// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/recording/recording.h"

#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "config/mount_record.h"
#include "frames/segmenter.h"
#include "relay/relay_caps.h"
#include "relay/track_watch.h"

#define WELL (10 * (gint64) GST_SECOND)   // a run that lasted so long begins a new row of failures
#define STOPPED (2 * (gint64) GST_SECOND) // as long as a gap between frames that ends a file
#define NS_PER_MS G_GINT64_CONSTANT (1000000)

struct _Recording {
  Mounts *mounts;
  MountConfig *config;
  RecordingWriter *writer;
  RecordingHook *hook;
  Presentation *presentation; // in use; NULL: not yet
  gboolean told;
  GPtrArray *caps;    // of the relay's tracks; NULL until they are known
  TrackWatch *tracks; // NULL: not yet
  Segmenter *pipeline;
  gint64 begun, again;
  gint64 down_since; // the source; 0: it is up
  gboolean stopped;  // the source, so the file has ended
  guint n_failures;
  gchar *problem; // why there is no pipeline
  GString *left_out;
};

static const gchar *
get_mount (const Recording *self)
{
  return self->config->path;
}

// ---- the pipeline ----

static void
on_failed (const gchar *reason, gpointer data)
{
  Recording *self = data;
  gint64 now = clock_now ();
  guint wait_ms;

  if (now - self->begun > WELL)
    self->n_failures = 0;
  wait_ms = backoff_ms (++self->n_failures, g_random_double ());
  self->again = now + wait_ms * NS_PER_MS;
  g_free (self->problem);
  self->problem = g_strdup (reason);
  log_event ("record %s down: %s; next try in %.1f s", get_mount (self), reason, wait_ms / 1000.0);
}

static void
start_pipeline (Recording *self)
{
  const gint64 part_ns = self->config->record.part_ms * NS_PER_MS;
  // A file may begin where a segment of the cutter does, so these are short.
  const SegmentLengths lengths = { .segment_ns = part_ns, .part_ns = part_ns };
  SegmentOutput *output = recording_writer_get_output (self->writer);

  g_clear_pointer (&self->problem, g_free);
  self->begun = clock_now ();
  g_string_truncate (self->left_out, 0);
  self->pipeline = segmenter_new (presentation_get_relay (self->presentation), self->caps, &output,
      1, &lengths, NULL, get_mount (self), self->left_out, on_failed, self);
  if (!self->pipeline) {
    self->again = G_MAXINT64; // until other tracks come
    self->problem = g_strdup (self->left_out->str);
  }
}

static void
on_tracks (gpointer data, GPtrArray *caps)
{
  Recording *self = data;

  if (self->caps && relay_caps_are_equal (self->caps, caps))
    return;
  g_clear_pointer (&self->pipeline, segmenter_free);
  g_clear_pointer (&self->caps, g_ptr_array_unref);
  self->caps = g_ptr_array_ref (caps);
  self->again = 0;
  start_pipeline (self);
}

// ---- the mount ----

static gboolean
use_presentation (Recording *self)
{
  Demand *demand;
  g_autoptr (GError) error = NULL;

  if (self->presentation)
    return TRUE;
  demand = demand_new (get_mount (self));
  self->presentation = mounts_use_demand (self->mounts, demand, &error);
  demand_free (demand);
  if (!self->presentation && !self->told)
    log_event ("record %s: %s", get_mount (self), error->message);
  self->told = TRUE;
  // The pipeline is made only when the tracks are known, which readers may be before.
  if (self->presentation)
    relay_await_sink (presentation_get_relay (self->presentation), TRUE);
  return self->presentation != NULL;
}

// Ends the file of a source that has stopped: nobody knows when the next frame comes.
static void
watch_source (Recording *self)
{
  const gchar *state = presentation_get_state_name (self->presentation);
  gint64 now = clock_now ();

  if (g_str_equal (state, "up")) {
    self->down_since = 0;
    self->stopped = FALSE;
    return;
  }
  if (self->down_since == 0)
    self->down_since = now;
  if (self->stopped || now - self->down_since < STOPPED)
    return;
  self->stopped = TRUE;
  if (self->pipeline)
    segmenter_interrupt (self->pipeline);
  recording_writer_end_file (self->writer);
}

void
recording_tick (Recording *self)
{
  recording_writer_tick (self->writer);
  if (!use_presentation (self))
    return;
  if (!self->tracks)
    self->tracks = track_watch_new (presentation_get_relay (self->presentation), on_tracks, self);
  if (self->problem && clock_now () >= self->again) {
    g_clear_pointer (&self->pipeline, segmenter_free);
    start_pipeline (self);
  }
  watch_source (self);
}

static void
on_complete (const gchar *path, const RecordingFacts *facts, gpointer hook)
{
  recording_hook_add (hook, path, facts);
}

Recording *
recording_new (Mounts *mounts, MountConfig *config)
{
  RecordingSettings settings = { g_strdup (config->record.folder),
    config->record.segment_ms * NS_PER_MS, (gint64) config->record.keep_s * G_USEC_PER_SEC,
    config->record.limit.bytes };
  Recording *self = g_new0 (Recording, 1);

  self->mounts = mounts;
  self->config = mount_config_ref (config);
  self->left_out = g_string_new (NULL);
  self->hook = recording_hook_new (config->path, config->record.hook);
  self->writer = recording_writer_new (
      config->path, &settings, on_complete, recording_hook_ref (self->hook), recording_hook_unref);
  return self;
}

void
recording_free (gpointer data)
{
  Recording *self = data;

  g_clear_pointer (&self->tracks, track_watch_free);
  g_clear_pointer (&self->pipeline, segmenter_free);
  recording_writer_end (self->writer);
  if (self->presentation)
    relay_await_sink (presentation_get_relay (self->presentation), FALSE);
  g_clear_pointer (&self->presentation, presentation_leave);
  recording_writer_unref (self->writer);
  recording_hook_unref (self->hook);
  mount_config_unref (self->config);
  g_clear_pointer (&self->caps, g_ptr_array_unref);
  g_string_free (self->left_out, TRUE);
  g_free (self->problem);
  g_free (self);
}

gboolean
recording_is_of (const Recording *self, const MountConfig *config)
{
  return schema_equal (mount_record_object.keys, self->config, config);
}

const gchar *
recording_get_state_name (Recording *self)
{
  RecordingCounts counts;

  recording_writer_get_counts (self->writer, &counts);
  return counts.failing || self->problem                            ? "failing"
         : self->pipeline && counts.written.parts && !self->stopped ? "recording"
                                                                    : "waiting";
}

gchar *
recording_dup_problem (Recording *self)
{
  gchar *problem = recording_writer_dup_problem (self->writer);

  return problem ? problem : g_strdup (self->problem);
}

const gchar *
recording_get_left_out (Recording *self)
{
  return self->left_out->len > 0 ? self->left_out->str : NULL;
}

RecordingWriter *
recording_get_writer (Recording *self)
{
  return self->writer;
}

RecordingHook *
recording_get_hook (Recording *self)
{
  return self->hook;
}
