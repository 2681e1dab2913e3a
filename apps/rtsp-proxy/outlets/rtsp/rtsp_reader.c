// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/rtsp_reader.h"

#include "outlets/rtsp/rendition_sink.h"
#include "outlets/rtsp/sink_address.h"
#include "outlets/rtsp/title_media.h"
#include "readers/sink_sample.h"
#include "readers/totals.h"
#include "weir-rtsp.h"

typedef struct {
  GWeakRef transport; // GstRTSPStreamTransport, which has the reader's receiver reports
  GstElement *sink;   // the fanoutsink that serves the track; GLib goes through all weak references
                      // to an object when one of them ends
  gchar *host;        // host and port by which the sink knows the reader
  gint port;
  gboolean video;
  guint number;         // in the relay
  RenditionSink *other; // whose window serves it, or is to; NULL: its own sink
} Track;

typedef struct {
  GPtrArray *tracks; // of Track
  GWeakRef client;
  gchar *left_out; // NULL: it gets all tracks
  RtspReaderCloseFunc close;
  Presentation *own; // that is played; NULL: a title
} RtspReader;

// ---- tracks ----

static void
track_free (gpointer data)
{
  Track *track = data;

  g_weak_ref_clear (&track->transport);
  g_clear_pointer (&track->other, rendition_sink_unref);
  gst_object_unref (track->sink);
  g_free (track->host);
  g_free (track);
}

static void
add_track (GPtrArray *tracks, const SinkAddress *address, const gchar *mount)
{
  Track *track = g_new0 (Track, 1);

  g_weak_ref_init (&track->transport, address->transport);
  track->sink = gst_object_ref (address->sink);
  track->host = g_strdup (address->host);
  track->port = address->port;
  track->video = sink_address_is_video (address);
  track->number = gst_rtsp_stream_get_index (address->stream);
  g_ptr_array_add (tracks, track);
  totals_watch_sink (mount, address->sink);
}

// Returns the sink's statistics of the reader (transfer full): an empty structure if the reader has
// left the sink.
static GstStructure *
ask_sink (Track *track)
{
  GstStructure *stats;

  g_signal_emit_by_name (track->sink, "get-stats", track->host, track->port, &stats);
  return stats;
}

static void
sample_kernel (const GstStructure *stats, const gchar **kernel)
{
  const gchar *how = gst_structure_get_string (stats, "kernel");

  if (how && !g_str_equal (how, "off") && (!*kernel || g_str_equal (*kernel, "clones")))
    *kernel = g_intern_string (how);
}

static void
sample_sink (Track *track, ReaderSample *sample)
{
  g_autoptr (GstStructure) stats = ask_sink (track);

  sink_sample_add (stats, sample);
  if (sample->state < READER_STATES - 1) {
    sample_kernel (stats, &sample->kernel);
    if (track->video && !sample->layers.has_layers)
      sink_sample_layers (stats, &sample->layers);
  }
}

static GstStructure *
ask_report (Track *track)
{
  GstRTSPStreamTransport *transport = g_weak_ref_get (&track->transport);
  GstStructure *report = transport ? weir_transport_get_report (transport) : NULL;

  g_clear_object (&transport);
  return report;
}

static void
sample_reports (Track *track, ReaderSample *sample)
{
  g_autoptr (GstStructure) report = ask_report (track);
  gint lost = 0;
  gdouble fraction = 0;

  if (report) {
    gst_structure_get_int (report, "packets-lost", &lost);
    gst_structure_get_double (report, "fraction-lost", &fraction);
    sample->reports += sink_sample_get (report, "reports");
    sample->lost += (guint64) MAX (lost, 0);
    sample->fraction_lost = MAX (sample->fraction_lost, fraction);
  }
}

// ---- all tracks ----

static void
sample (gpointer served, ReaderSample *sample)
{
  RtspReader *self = served;

  for (guint i = 0; i < self->tracks->len; i++) {
    sample_sink (g_ptr_array_index (self->tracks, i), sample);
    sample_reports (g_ptr_array_index (self->tracks, i), sample);
  }
}

static void
sample_all_reports (gpointer served, ReaderSample *sample)
{
  RtspReader *self = served;

  for (guint i = 0; i < self->tracks->len; i++)
    sample_reports (g_ptr_array_index (self->tracks, i), sample);
}

static gboolean
set_priority (gpointer served, guint priority)
{
  RtspReader *self = served;
  gboolean all = self->tracks->len > 0;

  for (guint i = 0; i < self->tracks->len; i++) {
    Track *track = g_ptr_array_index (self->tracks, i);
    gboolean set;

    g_signal_emit_by_name (track->sink, "set-priority", track->host, track->port, priority, &set);
    all &= set;
  }
  return all;
}

// ---- the video track ----

static Track *
find_video (RtspReader *self)
{
  for (guint i = 0; i < self->tracks->len; i++) {
    Track *track = g_ptr_array_index (self->tracks, i);

    if (track->video)
      return track;
  }
  return NULL;
}

static GstElement *
dup_video_sink (gpointer served)
{
  Track *track = find_video (served);

  return track ? gst_object_ref (track->sink) : NULL;
}

static gboolean
set_layers (gpointer served, WeirLayerSet layers)
{
  const Track *track = find_video (served);

  return track && sink_set_layers (track->sink, track->host, track->port, layers);
}

static gboolean
restrict_video (gpointer served, guint state)
{
  const Track *track = find_video (served);

  return track && sink_restrict (track->sink, track->host, track->port, state);
}

static guint64 *
ref_report_count (gpointer served)
{
  Track *track = find_video (served);
  GstRTSPStreamTransport *transport = track ? g_weak_ref_get (&track->transport) : NULL;
  guint64 *count = transport ? weir_transport_ref_report_count (transport) : NULL;

  g_clear_object (&transport);
  return count;
}

static gboolean
read_line_of_client (RtspReader *self, gint64 now, WeirEstimateView *view)
{
  GstRTSPClient *client = g_weak_ref_get (&self->client);
  gboolean known = client && weir_client_read_line (client, (guint64) now, view);

  g_clear_object (&client);
  return known;
}

static gboolean
read_estimate (gpointer served, gint64 now, WeirEstimateView *view)
{
  RtspReader *self = served;
  Track *track = find_video (self);
  GstRTSPStreamTransport *transport = track ? g_weak_ref_get (&track->transport) : NULL;
  gboolean known = FALSE;

  if (transport && weir_transport_is_tcp (gst_rtsp_stream_transport_get_transport (transport)))
    known = read_line_of_client (self, now, view);
  else if (transport)
    known = weir_transport_read_line (transport, (guint64) now, view);
  g_clear_object (&transport);
  return known;
}

static void
sample_report (Track *track, ReaderVideo *sample)
{
  g_autoptr (GstStructure) report = ask_report (track);

  if (!report)
    return;
  gst_structure_get_int (report, "packets-lost", &sample->lost);
  gst_structure_get_uint (report, "highest-seq", &sample->highest);
}

static gboolean
sample_video (gpointer served, ReaderVideo *sample)
{
  Track *track = find_video (served);
  g_autoptr (GstStructure) stats = track ? ask_sink (track) : NULL;
  gboolean there = sink_sample_video (stats, sample);

  if (there)
    sample_report (track, sample);
  return there;
}

static void
read_rates (gpointer served, WeirRates *rates)
{
  const Track *track = find_video (served);

  if (track)
    sink_sample_rates (track->sink, rates);
}

// ---- renditions ----

// Takes the reference.
static void
set_other (Track *track, RenditionSink *other)
{
  RenditionSink *before = track->other;

  track->other = other;
  g_clear_pointer (&before, rendition_sink_unref);
}

static gboolean
go (const Track *track, GstElement *sink, guint32 ahead)
{
  gboolean done = FALSE;

  g_signal_emit_by_name (track->sink, "splice", track->host, track->port, sink, ahead, &done);
  return done;
}

static ReaderSplice
go_to_other (Track *track, Relay *own, gint64 now)
{
  guint32 ahead;

  if (!track->other || !rendition_sink_get_ahead (track->other, own, track->number, &ahead))
    return READER_SPLICE_NEVER;
  if (go (track, rendition_sink_get_element (track->other), ahead))
    return READER_SPLICE_DONE;
  rendition_sink_ask_key (track->other, now);
  return READER_SPLICE_LATER;
}

static ReaderSplice
splice (gpointer served, Presentation *rendition, gint64 now)
{
  RtspReader *self = served;
  Track *track = find_video (self);
  Relay *own = self->own ? presentation_get_relay (self->own) : NULL;

  if (!track || !own)
    return READER_SPLICE_NEVER;
  if (rendition) {
    if (!track->other || !rendition_sink_is_of (track->other, rendition))
      set_other (track, rendition_sink_get (rendition));
    return go_to_other (track, own, now);
  }
  if (go (track, track->sink, 0)) {
    set_other (track, NULL);
    return READER_SPLICE_DONE;
  }
  relay_ask_key (own, track->number, now);
  return READER_SPLICE_LATER;
}

// ---- construction ----

static gchar *
dup_left_out (gpointer served)
{
  return g_strdup (((RtspReader *) served)->left_out);
}

static void
close_reader (gpointer served, const gchar *reason)
{
  RtspReader *self = served;
  GstRTSPClient *client = g_weak_ref_get (&self->client);

  if (client)
    self->close (client, reason);
  g_clear_object (&client);
}

static void
free_served (gpointer served)
{
  RtspReader *self = served;

  g_ptr_array_unref (self->tracks);
  g_weak_ref_clear (&self->client);
  g_clear_pointer (&self->own, presentation_unref);
  g_free (self->left_out);
  g_free (self);
}

static const ReaderOps ops = { .sample = sample,
  .sample_reports = sample_all_reports,
  .set_priority = set_priority,
  .set_layers = set_layers,
  .restrict_video = restrict_video,
  .sample_video = sample_video,
  .ref_report_count = ref_report_count,
  .dup_video_sink = dup_video_sink,
  .read_rates = read_rates,
  .read_estimate = read_estimate,
  .splice = splice,
  .dup_left_out = dup_left_out,
  .close = close_reader,
  .free = free_served };

static const gchar *
transport_name (GstRTSPSessionMedia *media)
{
  guint n = gst_rtsp_media_n_streams (gst_rtsp_session_media_get_media (media));

  for (guint i = 0; i < n; i++) {
    GstRTSPStreamTransport *transport = gst_rtsp_session_media_get_transport (media, i);
    const GstRTSPTransport *t =
        transport ? gst_rtsp_stream_transport_get_transport (transport) : NULL;

    if (t)
      return weir_transport_is_tcp (t) ? "TCP" : "UDP";
  }
  return "nothing";
}

Reader *
rtsp_reader_new (GstRTSPSessionMedia *media, Presentation *own, const gchar *mount,
    const gchar *peer, GstRTSPClient *client, RtspReaderCloseFunc close)
{
  GPtrArray *addresses = sink_addresses_new (media);
  RtspReader *self = g_new0 (RtspReader, 1);

  self->tracks = g_ptr_array_new_with_free_func (track_free);
  for (guint i = 0; i < addresses->len; i++)
    add_track (self->tracks, g_ptr_array_index (addresses, i), mount);
  g_ptr_array_unref (addresses);
  g_weak_ref_init (&self->client, client);
  self->close = close;
  self->own = own ? presentation_ref (own) : NULL;
  if (title_media_is (gst_rtsp_session_media_get_media (media)))
    self->left_out = title_media_dup_left_out (gst_rtsp_session_media_get_media (media));
  return reader_new (&ops, self, mount, peer, transport_name (media));
}

void
rtsp_reader_prepare_layers (GstRTSPSessionMedia *media, WeirLayerSet layers)
{
  g_autoptr (GPtrArray) addresses = sink_addresses_new (media);
  gboolean done = FALSE;

  for (guint i = 0; i < addresses->len && !done; i++) {
    const SinkAddress *address = g_ptr_array_index (addresses, i);

    done = sink_address_is_video (address);
    if (done)
      sink_set_layers (address->sink, address->host, address->port, layers);
  }
}
