// SPDX-License-Identifier: LGPL-2.1-or-later
#include "readers/readers.h"

#include "readers/totals.h"
#include "weir-rtsp.h"

typedef struct {
  GWeakRef transport; // GstRTSPStreamTransport: to ask for what the reader reports
  GWeakRef sink;      // the fanoutsink that serves it
  gchar *host;        // how the sink calls it
  gint port;
  gboolean video;
} Track;

struct _Reader {
  gatomicrefcount refs;
  guint64 id;
  gchar *mount, *peer;
  const gchar *transport;
  gint64 since;
  GPtrArray *tracks; // of Track

  GMutex lock; // all below
  gboolean paused, keeps_place;
  gint64 paused_at;
  ReaderSample before; // when it was paused last
};

const gchar *const reader_state_names[READER_STATES + 1] = { "ok", "no-upper-layers", "references",
  "keyframes", "closed", NULL };

static guint64 last_id; // atomic

// ---- tracks ----

static void
track_free (gpointer data)
{
  Track *track = data;

  g_weak_ref_clear (&track->transport);
  g_weak_ref_clear (&track->sink);
  g_free (track->host);
  g_free (track);
}

static gboolean
is_video (GstRTSPStream *stream)
{
  GstCaps *caps = gst_rtsp_stream_get_caps (stream);
  const gchar *media = caps && gst_caps_get_size (caps) > 0
                           ? gst_structure_get_string (gst_caps_get_structure (caps, 0), "media")
                           : NULL;
  gboolean is = !g_strcmp0 (media, "video");

  gst_clear_caps (&caps);
  return is;
}

static void
add_track (Reader *self, GstRTSPStreamTransport *transport)
{
  const GstRTSPTransport *t = gst_rtsp_stream_transport_get_transport (transport);
  GstElement *sink = weir_stream_find_sink (gst_rtsp_stream_transport_get_stream (transport));
  Track *track;

  if (!sink)
    return;
  track = g_new0 (Track, 1);
  g_weak_ref_init (&track->transport, transport);
  g_weak_ref_init (&track->sink, sink);
  track->host = g_strdup (t->destination);
  track->port = t->client_port.min;
  track->video = is_video (gst_rtsp_stream_transport_get_stream (transport));
  g_ptr_array_add (self->tracks, track);
  totals_watch_sink (self->mount, sink);
  gst_object_unref (sink);
}

// The sink's own words; an empty structure where the reader has left.
static GstStructure *
ask_sink (Track *track)
{
  GstElement *sink = g_weak_ref_get (&track->sink);
  GstStructure *stats = NULL;

  if (sink) {
    g_signal_emit_by_name (sink, "get-stats", track->host, track->port, &stats);
    gst_object_unref (sink);
  }
  return stats;
}

static guint64
get_uint64 (const GstStructure *from, const gchar *field)
{
  guint64 value = 0;

  gst_structure_get_uint64 (from, field, &value);
  return value;
}

static guint
find_state (const gchar *name)
{
  for (guint i = 0; name && i < READER_STATES; i++) {
    if (g_str_equal (name, reader_state_names[i]))
      return i;
  }
  return READER_STATES - 1;
}

static gint8
get_layer (const GstStructure *from, const gchar *field)
{
  gint value = -1;

  gst_structure_get_int (from, field, &value);
  return (gint8) value;
}

static void
sample_layers (const GstStructure *stats, ReaderLayers *layers)
{
  layers->has_layers = TRUE;
  layers->wanted = (WeirLayerSet) { .spatial = get_layer (stats, "wanted-spatial"),
    .temporal = get_layer (stats, "wanted-temporal"),
    .quality = get_layer (stats, "wanted-quality") };
  layers->now = (WeirLayerSet) { .spatial = get_layer (stats, "spatial"),
    .temporal = get_layer (stats, "temporal"),
    .quality = get_layer (stats, "quality") };
}

static void
sample_sink (Track *track, ReaderSample *sample)
{
  GstStructure *stats = ask_sink (track);
  gboolean catching_up = FALSE;

  if (!stats || !gst_structure_has_field (stats, "state")) {
    sample->state = READER_STATES - 1;
  } else {
    sample->state = MAX (sample->state, find_state (gst_structure_get_string (stats, "state")));
    sample->lag_ns = MAX (sample->lag_ns, get_uint64 (stats, "lag"));
    sample->delay_ns = MAX (sample->delay_ns, get_uint64 (stats, "delay"));
    sample->packets += get_uint64 (stats, "packets-sent");
    sample->bytes += get_uint64 (stats, "bytes-sent");
    sample->due += get_uint64 (stats, "packets-due");
    sample->dropped += get_uint64 (stats, "dropped");
    gst_structure_get_uint (stats, "priority", &sample->priority);
    gst_structure_get_boolean (stats, "catching-up", &catching_up);
    sample->catching_up |= catching_up;
    if (track->video && !sample->layers.has_layers)
      sample_layers (stats, &sample->layers);
  }
  g_clear_pointer (&stats, gst_structure_free);
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
  GstStructure *report = ask_report (track);
  gint lost = 0;
  gdouble fraction = 0;

  if (report) {
    gst_structure_get_int (report, "packets-lost", &lost);
    gst_structure_get_double (report, "fraction-lost", &fraction);
    sample->reports += get_uint64 (report, "reports");
    sample->lost += (guint64) MAX (lost, 0);
    sample->fraction_lost = MAX (sample->fraction_lost, fraction);
  }
  g_clear_pointer (&report, gst_structure_free);
}

// ---- outside ----

Reader *
reader_new (
    GstRTSPSessionMedia *media, const gchar *mount, const gchar *peer, const gchar *transport)
{
  Reader *self = g_new0 (Reader, 1);
  GPtrArray *transports = gst_rtsp_session_media_get_transports (media);

  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->id = __atomic_add_fetch (&last_id, 1, __ATOMIC_RELAXED);
  self->mount = g_strdup (mount);
  self->peer = g_strdup (peer);
  self->transport = transport;
  self->since = g_get_real_time ();
  self->tracks = g_ptr_array_new_with_free_func (track_free);
  for (guint i = 0; i < transports->len; i++) {
    if (g_ptr_array_index (transports, i))
      add_track (self, g_ptr_array_index (transports, i));
  }
  g_ptr_array_unref (transports);
  return self;
}

Reader *
reader_ref (Reader *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
reader_unref (Reader *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_ptr_array_unref (self->tracks);
  g_mutex_clear (&self->lock);
  g_free (self->mount);
  g_free (self->peer);
  g_free (self);
}

guint64
reader_get_id (const Reader *self)
{
  return self->id;
}

const gchar *
reader_get_mount (const Reader *self)
{
  return self->mount;
}

const gchar *
reader_get_peer (const Reader *self)
{
  return self->peer;
}

const gchar *
reader_get_transport (const Reader *self)
{
  return self->transport;
}

gint64
reader_get_since (const Reader *self)
{
  return self->since;
}

// While it is paused the sinks know nothing of it, and then they begin to count anew.
void
reader_sample (Reader *self, ReaderSample *sample)
{
  ReaderSample before;
  gint64 behind_us;

  *sample = (ReaderSample) { 0 };
  g_mutex_lock (&self->lock);
  before = self->before;
  before.paused = self->paused;
  behind_us = self->keeps_place ? g_get_monotonic_time () - self->paused_at : 0;
  g_mutex_unlock (&self->lock);
  if (before.paused) {
    *sample = before;
    sample->delay_ns += (guint64) behind_us * 1000;
    return;
  }
  for (guint i = 0; i < self->tracks->len; i++) {
    sample_sink (g_ptr_array_index (self->tracks, i), sample);
    sample_reports (g_ptr_array_index (self->tracks, i), sample);
  }
  sample->packets += before.packets;
  sample->bytes += before.bytes;
  sample->due += before.due;
  sample->dropped += before.dropped;
}

void
reader_pause (Reader *self, gboolean keeps_place)
{
  ReaderSample now;

  reader_sample (self, &now);
  if (now.paused)
    return;
  now.lag_ns = 0;
  now.catching_up = FALSE;
  g_mutex_lock (&self->lock);
  self->before = now;
  self->paused = TRUE;
  self->keeps_place = keeps_place;
  self->paused_at = g_get_monotonic_time ();
  g_mutex_unlock (&self->lock);
}

void
reader_resume (Reader *self)
{
  g_mutex_lock (&self->lock);
  self->paused = FALSE;
  g_mutex_unlock (&self->lock);
}

void
reader_sample_reports (Reader *self, ReaderSample *sample)
{
  *sample = (ReaderSample) { 0 };
  for (guint i = 0; i < self->tracks->len; i++)
    sample_reports (g_ptr_array_index (self->tracks, i), sample);
}

gboolean
reader_set_priority (Reader *self, guint priority)
{
  gboolean all = self->tracks->len > 0;

  for (guint i = 0; i < self->tracks->len; i++) {
    Track *track = g_ptr_array_index (self->tracks, i);
    GstElement *sink = g_weak_ref_get (&track->sink);
    gboolean set = FALSE;

    if (sink) {
      g_signal_emit_by_name (sink, "set-priority", track->host, track->port, priority, &set);
      gst_object_unref (sink);
    }
    all &= set;
  }
  return all;
}

// ---- its video ----

static Track *
find_video (Reader *self)
{
  for (guint i = 0; i < self->tracks->len; i++) {
    Track *track = g_ptr_array_index (self->tracks, i);

    if (track->video)
      return track;
  }
  return NULL;
}

static gboolean
set_layers (GstElement *sink, const gchar *host, gint port, WeirLayerSet layers)
{
  gboolean set = FALSE;

  g_signal_emit_by_name (sink, "set-layers", host, port, (gint) layers.spatial,
      (gint) layers.quality, (gint) layers.temporal, &set);
  return set;
}

static gboolean
prepare_track (GstRTSPStreamTransport *transport, WeirLayerSet layers)
{
  const GstRTSPTransport *t = gst_rtsp_stream_transport_get_transport (transport);
  GstRTSPStream *stream = gst_rtsp_stream_transport_get_stream (transport);
  GstElement *sink = is_video (stream) ? weir_stream_find_sink (stream) : NULL;

  if (!sink)
    return FALSE;
  set_layers (sink, t->destination, t->client_port.min, layers);
  gst_object_unref (sink);
  return TRUE;
}

void
reader_prepare_layers (GstRTSPSessionMedia *media, WeirLayerSet layers)
{
  GPtrArray *transports = gst_rtsp_session_media_get_transports (media);
  gboolean done = FALSE;

  for (guint i = 0; i < transports->len && !done; i++) {
    if (g_ptr_array_index (transports, i))
      done = prepare_track (g_ptr_array_index (transports, i), layers);
  }
  g_ptr_array_unref (transports);
}

gboolean
reader_set_layers (Reader *self, WeirLayerSet layers)
{
  GstElement *sink = reader_dup_video_sink (self);
  const Track *track = find_video (self);
  gboolean set = sink && set_layers (sink, track->host, track->port, layers);

  gst_clear_object (&sink);
  return set;
}

gboolean
reader_is_tcp (const Reader *self)
{
  return g_str_equal (self->transport, "TCP");
}

guint64
reader_count_reports (Reader *self)
{
  Track *track = find_video (self);
  GstStructure *report = track ? ask_report (track) : NULL;
  guint64 n = report ? get_uint64 (report, "reports") : 0;

  g_clear_pointer (&report, gst_structure_free);
  return n;
}

static void
sample_report (Track *track, ReaderVideo *sample)
{
  GstStructure *report = ask_report (track);

  if (!report)
    return;
  sample->reports = get_uint64 (report, "reports");
  gst_structure_get_int (report, "packets-lost", &sample->lost);
  gst_structure_get_uint (report, "highest-seq", &sample->highest);
  gst_structure_free (report);
}

gboolean
reader_sample_video (Reader *self, ReaderVideo *sample)
{
  Track *track = find_video (self);
  GstStructure *stats = track ? ask_sink (track) : NULL;
  gboolean there = stats && gst_structure_has_field (stats, "state");

  *sample = (ReaderVideo) { 0 };
  if (there) {
    gst_structure_get_boolean (stats, "catching-up", &sample->catching_up);
    sample->thinned = find_state (gst_structure_get_string (stats, "state")) > 0;
    sample->lag_ns = get_uint64 (stats, "lag");
    sample->packets = get_uint64 (stats, "packets-sent");
    sample->bytes = get_uint64 (stats, "bytes-sent");
    sample_report (track, sample);
  }
  g_clear_pointer (&stats, gst_structure_free);
  return there;
}

GstElement *
reader_dup_video_sink (Reader *self)
{
  Track *track = find_video (self);

  return track ? g_weak_ref_get (&track->sink) : NULL;
}

static void
add_rate (WeirRates *rates, const GstStructure *layer)
{
  WeirLayerRate *rate = &rates->layers[rates->n++];

  rate->spatial = (guint8) get_layer (layer, "spatial");
  rate->quality = (guint8) get_layer (layer, "quality");
  rate->temporal = (guint8) get_layer (layer, "temporal");
  rate->bitrate = (gdouble) get_uint64 (layer, "bitrate");
}

void
reader_read_rates (GstElement *sink, WeirRates *rates)
{
  GstStructure *stats = NULL;
  const GValue *layers;

  *rates = (WeirRates) { 0 };
  g_object_get (sink, "fanout-stats", &stats, NULL);
  layers = stats ? gst_structure_get_value (stats, "layers") : NULL;
  for (guint i = 0; layers && i < gst_value_array_get_size (layers) && i < WEIR_RATES_LAYERS; i++)
    add_rate (rates, gst_value_get_structure (gst_value_array_get_value (layers, i)));
  g_clear_pointer (&stats, gst_structure_free);
}
