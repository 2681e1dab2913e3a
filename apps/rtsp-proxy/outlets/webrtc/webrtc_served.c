// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/webrtc_served.h"

#include "readers/sink_sample.h"
#include "readers/totals.h"

typedef struct {
  WebrtcStream *stream;
  GPtrArray *places;
  WebrtcFeedback *feedback;
  gchar *left_out;
  const WebrtcServedOwner *functions;
  gpointer owner;
} Served;

static void
sample_reports (gpointer served, ReaderSample *sample)
{
  webrtc_feedback_sample (((Served *) served)->feedback, sample);
}

static void
sample (gpointer served, ReaderSample *sample)
{
  Served *self = served;

  for (guint i = 0; i < self->places->len; i++) {
    WebrtcPlace *place = g_ptr_array_index (self->places, i);
    GstStructure *stats = webrtc_place_dup_stats (place);

    sink_sample_add (stats, sample);
    if (place->is_video && sample->state < READER_STATES - 1)
      sink_sample_layers (stats, &sample->layers);
    g_clear_pointer (&stats, gst_structure_free);
  }
  sample_reports (served, sample);
}

static gboolean
set_priority (gpointer served, guint priority)
{
  Served *self = served;
  gboolean all = TRUE;

  for (guint i = 0; i < self->places->len; i++) {
    WebrtcPlace *place = g_ptr_array_index (self->places, i);
    gboolean set = FALSE;

    g_signal_emit_by_name (
        place->sink, "set-priority", place->token, g_atomic_int_get (&place->port), priority, &set);
    all &= set;
  }
  return all;
}

// ---- the video track ----

static WebrtcPlace *
find_video (gpointer served)
{
  Served *self = served;

  for (guint i = 0; i < self->places->len; i++) {
    WebrtcPlace *place = g_ptr_array_index (self->places, i);

    if (place->is_video)
      return place;
  }
  return NULL;
}

static gboolean
set_layers (gpointer served, WeirLayerSet layers)
{
  WebrtcPlace *place = find_video (served);

  return place && webrtc_place_set_layers (place, layers);
}

static gboolean
restrict_video (gpointer served, guint state)
{
  WebrtcPlace *place = find_video (served);

  return place && webrtc_place_restrict (place, state);
}

static gboolean
sample_video (gpointer served, ReaderVideo *sample)
{
  WebrtcPlace *place = find_video (served);
  GstStructure *stats = place ? webrtc_place_dup_stats (place) : NULL;
  gboolean there = sink_sample_video (stats, sample);

  if (there)
    webrtc_feedback_sample_video (((Served *) served)->feedback, sample);
  g_clear_pointer (&stats, gst_structure_free);
  return there;
}

static guint64 *
ref_report_count (gpointer served)
{
  return find_video (served) ? webrtc_feedback_ref_count (((Served *) served)->feedback) : NULL;
}

static GstElement *
dup_video_sink (gpointer served)
{
  WebrtcPlace *place = find_video (served);

  return place ? gst_object_ref (place->sink) : NULL;
}

static void
read_rates (gpointer served, WeirRates *rates)
{
  WebrtcPlace *place = find_video (served);

  if (place)
    sink_sample_rates (place->sink, rates);
}

static gboolean
read_estimate (gpointer served, gint64 now, WeirEstimateView *view)
{
  return webrtc_feedback_read_estimate (((Served *) served)->feedback, now, view);
}

static gboolean
probe (gpointer served, guint64 bits, guint duration)
{
  WebrtcPlace *place = find_video (served);

  return place && webrtc_place_probe (place, bits, duration);
}

static ReaderSplice
splice (gpointer served, Presentation *rendition, gint64 now)
{
  WebrtcPlace *place = find_video (served);

  return place ? webrtc_place_splice (place, ((Served *) served)->stream, rendition, now)
               : READER_SPLICE_NEVER;
}

// ---- the life of a reader ----

static gchar *
dup_left_out (gpointer served)
{
  return g_strdup (((Served *) served)->left_out);
}

static void
close_reader (gpointer served, const gchar *reason)
{
  Served *self = served;

  self->functions->close (self->owner, reason);
}

static void
free_served (gpointer served)
{
  Served *self = served;

  self->functions->unref (self->owner);
  webrtc_feedback_unref (self->feedback);
  webrtc_stream_unref (self->stream);
  g_ptr_array_unref (self->places);
  g_free (self->left_out);
  g_free (self);
}

Reader *
webrtc_served_new (WebrtcStream *stream, GPtrArray *places, WebrtcFeedback *feedback,
    const gchar *mount, const gchar *peer, const gchar *left_out,
    const WebrtcServedOwner *functions, gpointer owner)
{
  static const ReaderOps ops = { .sample = sample,
    .sample_reports = sample_reports,
    .set_priority = set_priority,
    .set_layers = set_layers,
    .restrict_video = restrict_video,
    .sample_video = sample_video,
    .ref_report_count = ref_report_count,
    .dup_video_sink = dup_video_sink,
    .read_rates = read_rates,
    .read_estimate = read_estimate,
    .probe = probe,
    .splice = splice,
    .dup_left_out = dup_left_out,
    .close = close_reader,
    .free = free_served };
  Served *self = g_new0 (Served, 1);
  Reader *reader;

  self->stream = webrtc_stream_ref (stream);
  self->places = g_ptr_array_ref (places);
  self->feedback = webrtc_feedback_ref (feedback);
  self->left_out = g_strdup (left_out);
  self->functions = functions;
  self->owner = functions->ref (owner);
  for (guint i = 0; i < places->len; i++)
    totals_watch_sink (mount, ((WebrtcPlace *) g_ptr_array_index (places, i))->sink);
  reader = reader_new (&ops, self, mount, peer, "WebRTC");
  readers_add (reader);
  return reader;
}

void
webrtc_served_end (Reader *reader)
{
  ReaderSample last = { 0 };

  reader_sample_reports (reader, &last);
  readers_remove (reader);
  totals_reader_left (reader_get_mount (reader), last.lost, last.reports);
  reader_unref (reader);
}
