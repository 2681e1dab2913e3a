// SPDX-License-Identifier: LGPL-2.1-or-later
#include "readers.h"

#include "metrics.h"
#include "weir-rtsp.h"

typedef struct {
  GWeakRef transport; // GstRTSPStreamTransport: to ask for what the reader reports
  GWeakRef sink;      // the fanoutsink that serves it
  gchar *host;        // how the sink calls it
  gint port;
} Track;

struct _Reader {
  gatomicrefcount refs;
  guint64 id;
  gchar *mount, *peer;
  const gchar *transport;
  gint64 since;
  GPtrArray *tracks; // of Track
};

const gchar *const reader_state_names[READER_STATES + 1] = { "ok", "no-upper-layers", "references",
  "keyframes", "closed", NULL };

static guint64 last_id; // atomic

// ---- the sink of a stream ----

static gboolean
sends_from (GObject *sink, const gchar *property, GSocket *socket)
{
  GSocket *used = NULL;
  gboolean same;

  if (!socket)
    return FALSE;
  g_object_get (sink, property, &used, NULL);
  same = used == socket;
  g_clear_object (&used);
  return same;
}

// A stream has a sink for RTP and one for RTCP, which differ in their sockets.
static gint
compare_sink (gconstpointer item, gconstpointer stream)
{
  GObject *sink = g_value_get_object (item);
  GSocket *v4, *v6;
  gboolean same;

  if (!g_object_class_find_property (G_OBJECT_GET_CLASS (sink), "fanout-stats"))
    return 1;
  v4 = gst_rtsp_stream_get_rtp_socket ((gpointer) stream, G_SOCKET_FAMILY_IPV4);
  v6 = gst_rtsp_stream_get_rtp_socket ((gpointer) stream, G_SOCKET_FAMILY_IPV6);
  same = sends_from (sink, "socket", v4) || sends_from (sink, "socket-v6", v6);
  g_clear_object (&v4);
  g_clear_object (&v6);
  return !same;
}

static GstElement *
find_sink (GstRTSPStream *stream)
{
  GstBin *bin = gst_rtsp_stream_get_joined_bin (stream);
  GstIterator *sinks = bin ? gst_bin_iterate_sinks (bin) : NULL;
  GstElement *found = NULL;
  GValue item = G_VALUE_INIT;

  if (sinks && gst_iterator_find_custom (sinks, compare_sink, &item, stream)) {
    found = g_value_dup_object (&item);
    g_value_unset (&item);
  }
  g_clear_pointer (&sinks, gst_iterator_free);
  g_clear_object (&bin);
  return found;
}

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

static void
add_track (Reader *self, GstRTSPStreamTransport *transport)
{
  const GstRTSPTransport *t = gst_rtsp_stream_transport_get_transport (transport);
  GstElement *sink = find_sink (gst_rtsp_stream_transport_get_stream (transport));
  Track *track;

  if (!sink)
    return;
  track = g_new0 (Track, 1);
  g_weak_ref_init (&track->transport, transport);
  g_weak_ref_init (&track->sink, sink);
  track->host = g_strdup (t->destination);
  track->port = t->client_port.min;
  g_ptr_array_add (self->tracks, track);
  metrics_watch_sink (self->mount, sink);
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
    sample->packets += get_uint64 (stats, "packets-sent");
    sample->bytes += get_uint64 (stats, "bytes-sent");
    sample->due += get_uint64 (stats, "packets-due");
    sample->dropped += get_uint64 (stats, "dropped");
    gst_structure_get_uint (stats, "class", &sample->class);
    gst_structure_get_boolean (stats, "catching-up", &catching_up);
    sample->catching_up |= catching_up;
  }
  g_clear_pointer (&stats, gst_structure_free);
}

static void
sample_reports (Track *track, ReaderSample *sample)
{
  GstRTSPStreamTransport *transport = g_weak_ref_get (&track->transport);
  GstStructure *report = transport ? weir_transport_get_report (transport) : NULL;
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
  g_clear_object (&transport);
}

// ---- outside ----

Reader *
reader_new (
    GstRTSPSessionMedia *media, const gchar *mount, const gchar *peer, const gchar *transport)
{
  Reader *self = g_new0 (Reader, 1);
  GPtrArray *transports = gst_rtsp_session_media_get_transports (media);

  g_atomic_ref_count_init (&self->refs);
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

void
reader_sample (Reader *self, ReaderSample *sample)
{
  *sample = (ReaderSample) { 0 };
  for (guint i = 0; i < self->tracks->len; i++) {
    sample_sink (g_ptr_array_index (self->tracks, i), sample);
    sample_reports (g_ptr_array_index (self->tracks, i), sample);
  }
}

void
reader_sample_reports (Reader *self, ReaderSample *sample)
{
  *sample = (ReaderSample) { 0 };
  for (guint i = 0; i < self->tracks->len; i++)
    sample_reports (g_ptr_array_index (self->tracks, i), sample);
}

gboolean
reader_set_class (Reader *self, guint class)
{
  gboolean all = self->tracks->len > 0;

  for (guint i = 0; i < self->tracks->len; i++) {
    Track *track = g_ptr_array_index (self->tracks, i);
    GstElement *sink = g_weak_ref_get (&track->sink);
    gboolean set = FALSE;

    if (sink) {
      g_signal_emit_by_name (sink, "set-class", track->host, track->port, class, &set);
      gst_object_unref (sink);
    }
    all &= set;
  }
  return all;
}
