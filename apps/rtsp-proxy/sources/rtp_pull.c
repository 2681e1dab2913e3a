// SPDX-License-Identifier: LGPL-2.1-or-later

// Receives RTP over unicast or multicast: one track that a URI describes, or several that an SDP
// file describes. The receive engine relays the packets as they arrive; RTCP gives the mapping to
// NTP time.

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file_roots.h"
#include "rtp/encoding.h"
#include "sources/endpoint.h"
#include "sources/engine_tracks.h"
#include "sources/pull_uri.h"
#include "sources/sdp.h"

typedef struct {
  gatomicrefcount refs;
  const PullContext *context;
  gchar *uri;
  GPtrArray *tracks; // of RtpTrack
  GMutex beginning;  // held while the run begins
  gint begun;        // atomic: 1 once the relay knows the tracks; -1 if the start failed
  GMutex lock;       // of `closed`
  gboolean closed;   // the tracks leave the engine
  GDestroyNotify on_closed;
  gpointer closed_data;
} RtpPull;

typedef struct {
  EngineTrack media; // first
  RtpPull *pull;
  WeirIngestSockets sockets; // until the engine takes them
} RtpTrack;

static void
track_free (gpointer data)
{
  RtpTrack *track = data;

  if (track->sockets.rtp >= 0)
    close (track->sockets.rtp);
  if (track->sockets.rtcp >= 0)
    close (track->sockets.rtcp);
  gst_caps_unref (track->media.caps);
  g_free (track);
}

static void
pull_unref (gpointer data)
{
  RtpPull *self = data;

  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_free (self->uri);
  g_ptr_array_unref (self->tracks);
  g_mutex_clear (&self->beginning);
  g_mutex_clear (&self->lock);
  g_free (self);
}

// ---- callbacks of the engine, from any of its threads ----

static gboolean
is_begun (const RtpPull *self)
{
  return g_atomic_int_get (&self->begun) > 0 && !g_atomic_int_get (&self->context->cancelled);
}

// Begins the source at the first valid packet of any track. Packets of other tracks wait until the
// relay knows the tracks. Returns FALSE if packets are not taken.
static gboolean
ensure_begun (RtpPull *self)
{
  if (g_atomic_int_get (&self->begun) == 0 && !g_atomic_int_get (&self->context->cancelled)) {
    g_mutex_lock (&self->beginning);
    if (self->begun == 0)
      g_atomic_int_set (&self->begun, engine_tracks_begin (self->context, self->tracks));
    g_mutex_unlock (&self->beginning);
  }
  return is_begun (self);
}

static void
on_packet (gpointer data, const WeirIngestPacket *packet)
{
  RtpTrack *track = data;

  if (ensure_begun (track->pull))
    engine_track_push (&track->media, packet, RELAY_NO_BASE);
}

static void
on_report (gpointer data, const WeirNtpMap *map)
{
  RtpTrack *track = data;

  if (ensure_begun (track->pull))
    engine_track_reported (track, map);
}

static gboolean
enter (EngineTrack *track)
{
  return is_begun (((RtpTrack *) track)->pull);
}

static const EngineTrackGate gate = { enter };

static const WeirIngestOps track_ops = { { on_packet, on_report, .dropped = engine_track_dropped,
                                             .repaired = engine_track_repaired },
  engine_track_settled, .overflowed = engine_track_overflowed };

// ---- the start ----

static gboolean
open_sockets (RtpTrack *track, const RtpStream *stream, GError **error)
{
  track->sockets.rtp =
      endpoint_open (&stream->rtp, stream->rtp.port, ENGINE_TRACK_BUFFER, TRUE, error);
  if (track->sockets.rtp < 0 || stream->rtcp_port == stream->rtp.port)
    return track->sockets.rtp >= 0;
  track->sockets.rtcp = endpoint_open (&stream->rtp, stream->rtcp_port, 0, FALSE, error);
  return track->sockets.rtcp >= 0;
}

static gboolean
add_track (RtpPull *self, const RtpStream *stream, GError **error)
{
  RtpTrack *track = g_new0 (RtpTrack, 1);

  track->media.gate = &gate;
  track->media.context = self->context;
  track->media.caps = gst_caps_ref (stream->caps);
  track->pull = self;
  track->sockets = WEIR_INGEST_NO_SOCKETS;
  g_ptr_array_add (self->tracks, track);
  return open_sockets (track, stream, error);
}

static gint
join_engine (RtpTrack *track)
{
  WeirTrackSettings settings = engine_track_settings (track->media.caps);
  WeirIngestSockets sockets = track->sockets;
  gint payload = 0;

  gst_structure_get_int (gst_caps_get_structure (track->media.caps, 0), "payload", &payload);
  settings.payload_types[payload / 64 & 1] = G_GUINT64_CONSTANT (1) << payload % 64;
  settings.rtcp_mux = sockets.rtcp < 0;
  track->sockets = WEIR_INGEST_NO_SOCKETS;
  return engine_track_add (&track->media, &settings, sockets, &track_ops);
}

// The run begins only after all tracks are in the engine.
static gboolean
receive (RtpPull *self, GError **error)
{
  gint result = 0;

  g_mutex_lock (&self->beginning);
  for (guint i = 0; result == 0 && i < self->tracks->len; i++)
    result = join_engine (g_ptr_array_index (self->tracks, i));
  if (result < 0)
    g_atomic_int_set (&self->begun, -1);
  g_mutex_unlock (&self->beginning);
  if (result < 0)
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_FAILED,
        "cannot start to receive: %s", g_strerror (-result));
  return result == 0;
}

// Reads the file of sdp:.
static GPtrArray *
read_description (const PullConfig *config, GError **error)
{
  int fd = config->is_limited ? file_roots_open (config->path, O_RDONLY | O_NONBLOCK) : -1;
  gchar *name = config->is_limited ? file_roots_dup_name (fd) : g_strdup (config->path);
  GPtrArray *streams = NULL;

  if (config->is_limited && !g_file_test (name, G_FILE_TEST_IS_REGULAR))
    g_set_error (
        error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND, "no such file: %s", config->path);
  else
    streams = sdp_read (name, config->endpoint.iface, error);
  if (fd >= 0)
    close (fd);
  g_free (name);
  return streams;
}

static GPtrArray *
find_streams (const PullConfig *config, GError **error)
{
  GPtrArray *streams;

  if (config->path)
    return read_description (config, error);
  streams = g_ptr_array_new_with_free_func (rtp_stream_free);
  g_ptr_array_add (streams, rtp_stream_new (&config->endpoint, config->rtp));
  return streams;
}

static void
ask_for_key (gpointer data, guint index, gint64 now)
{
  RtpPull *self = data;

  g_mutex_lock (&self->lock);
  if (!self->closed)
    engine_tracks_ask_key (self->tracks, index);
  g_mutex_unlock (&self->lock);
}

static void
leave_engine (RtpPull *self, UdpStats *drops)
{
  for (guint i = 0; i < self->tracks->len; i++)
    engine_track_remove (g_ptr_array_index (self->tracks, i), drops);
}

static gpointer
pull_start (const PullContext *context, GError **error)
{
  GPtrArray *streams = find_streams (context->config, error);
  gboolean ok = streams != NULL;
  UdpStats unused = { 0 };
  RtpPull *self;

  if (!streams)
    return NULL;
  self = g_new0 (RtpPull, 1);
  g_atomic_ref_count_init (&self->refs);
  self->context = context;
  self->uri = g_strdup (context->config->uri);
  self->tracks = g_ptr_array_new_with_free_func (track_free);
  g_mutex_init (&self->beginning);
  g_mutex_init (&self->lock);
  for (guint i = 0; ok && i < streams->len; i++)
    ok = add_track (self, g_ptr_array_index (streams, i), error);
  g_ptr_array_unref (streams);
  if (ok && receive (self, error)) {
    g_atomic_ref_count_inc (&self->refs);
    relay_source_set_key_handler (context->source, ask_for_key, self, pull_unref);
    return self;
  }
  leave_engine (self, &unused);
  pull_unref (self);
  return NULL;
}

// ---- the end ----

// Not on the main thread: the engine waits for a packet that is being relayed.
static void
end_here (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  RtpPull *self = data;
  UdpStats drops = { 0 };

  leave_engine (self, &drops);
  udp_stats_log (&drops, self->uri);
  self->on_closed (self->closed_data);
  pull_unref (self);
  g_task_return_boolean (task, TRUE);
}

static void
pull_close (gpointer run, GDestroyNotify closed, gpointer data)
{
  RtpPull *self = run;
  GTask *task = g_task_new (NULL, NULL, NULL, NULL);

  g_mutex_lock (&self->lock);
  self->closed = TRUE;
  g_mutex_unlock (&self->lock);
  self->on_closed = closed;
  self->closed_data = data;
  g_task_set_task_data (task, self, NULL);
  g_task_run_in_thread (task, end_here);
  g_object_unref (task);
}

const PullLight rtp_pull_light = { pull_start, pull_close };

// ---- the URI ----

static gchar *
check_number (const gchar *name, const gchar *text, gint least, gint most, gint *number)
{
  guint64 value;

  if (!text)
    return *number >= least ? NULL : g_strdup_printf ("%s is missing", name);
  if (!g_ascii_string_to_unsigned (text, 10, (guint64) least, (guint64) most, &value, NULL))
    return g_strdup_printf ("%s=%s must be a number from %d to %d", name, text, least, most);
  *number = (gint) value;
  return NULL;
}

// Adds the remaining parameters, which describe the format as in a=fmtp.
static gchar *
add_format (GstStructure *s, GHashTable *query)
{
  GHashTableIter iter;
  gpointer name, value;

  g_hash_table_iter_init (&iter, query);
  while (g_hash_table_iter_next (&iter, &name, &value)) {
    if (!*(gchar *) name || strspn (name, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen (name)
        || !g_ascii_isalpha (*(gchar *) name))
      return g_strdup_printf ("\"%s\" is not a valid parameter name", (gchar *) name);
    for (const gchar *c = value; *c; c++) {
      if (!g_ascii_isgraph (*c))
        return g_strdup_printf ("%s contains a character that is not allowed", (gchar *) name);
    }
    gst_structure_set (s, name, G_TYPE_STRING, value, NULL);
  }
  return NULL;
}

static gchar *
check_track (GHashTable *query, GstStructure *s)
{
  gchar *given = pull_uri_take (query, "encoding-name");
  gchar *name = given ? g_ascii_strup (given, -1) : NULL;
  gchar *media = pull_uri_take (query, "media");
  gchar *payload_text = pull_uri_take (query, "payload");
  gchar *rate_text = pull_uri_take (query, "clock-rate");
  gint payload = -1, rate = 0;
  const WeirRtpEncoding *known = name ? weir_rtp_encoding (name) : NULL;
  const gchar *kind = media;
  gchar *wrong = NULL;

  if (known) {
    kind = media ? media : known->media;
    payload = known->payload;
    rate = known->clock_rate;
  }
  if (!name)
    wrong = g_strdup ("encoding-name is missing (rtp://ADDR:PORT?encoding-name=H264&payload=96)");
  else if (!kind || (!g_str_equal (kind, "video") && !g_str_equal (kind, "audio")))
    wrong = g_strdup_printf ("%s needs media=video or media=audio", name);
  if (!wrong)
    wrong = check_number ("payload", payload_text, 0, 127, &payload);
  if (!wrong)
    wrong = check_number ("clock-rate", rate_text, 1, 192000, &rate);
  if (!wrong) {
    gst_structure_set (s, "media", G_TYPE_STRING, kind, "encoding-name", G_TYPE_STRING, name,
        "payload", G_TYPE_INT, payload, "clock-rate", G_TYPE_INT, rate, NULL);
    if (g_str_equal (name, "H264") && !g_hash_table_contains (query, "packetization-mode"))
      gst_structure_set (s, "packetization-mode", G_TYPE_STRING, "1", NULL);
    wrong = add_format (s, query);
  }
  g_free (given);
  g_free (name);
  g_free (media);
  g_free (payload_text);
  g_free (rate_text);
  return wrong;
}

gchar *
rtp_pull_check (const gchar *uri, PullUriFlags flags, PullConfig *config)
{
  GHashTable *query = pull_uri_query (uri);
  GstStructure *s;
  gchar *wrong;

  if (!query)
    return g_strdup ("cannot parse the parameters after the '?'");
  wrong = pull_uri_endpoint (uri, query, 65534, &config->endpoint); // RTCP uses the next port
  s = gst_structure_new_empty ("application/x-rtp");
  if (!wrong)
    wrong = check_track (query, s);
  if (!wrong && !g_strcmp0 (gst_structure_get_string (s, "encoding-name"), "MP2T")) {
    config->make = ts_pull_new; // also reads MPEG-TS in RTP
    config->light = NULL;
    config->parser = PULL_PARSES;
  }
  config->rtp = gst_caps_new_full (s, NULL);
  config->uri = g_strdup (uri);
  g_hash_table_unref (query);
  return wrong;
}

gchar *
sdp_pull_check (const gchar *uri, PullUriFlags flags, PullConfig *config)
{
  gsize len = strcspn (uri, "?");
  gchar *file = g_strdup_printf ("file%.*s", (int) (len - 3), uri + 3);
  GHashTable *query = pull_uri_query (uri);
  GPtrArray *streams;
  GError *error = NULL;
  gchar *wrong = NULL;

  config->uri = g_strdup (uri);
  config->path = g_filename_from_uri (file, NULL, NULL);
  g_free (file);
  if (!query || !config->path || !g_str_has_prefix (uri, "sdp:///")) {
    g_clear_pointer (&query, g_hash_table_unref);
    return g_strdup ("not a URI like sdp:///dir/session.sdp");
  }
  config->endpoint.iface = pull_uri_take (query, "iface");
  wrong = pull_uri_finish (query, "iface");
  g_hash_table_unref (query);
  if (wrong)
    return wrong;
  config->is_limited = flags & PULL_URI_FROM_API;
  wrong = config->is_limited ? file_roots_check (config->path) : NULL;
  if (wrong)
    return wrong;
  streams = read_description (config, &error);
  if (streams) {
    g_ptr_array_unref (streams);
    return NULL;
  }
  config->absent = error->domain == G_FILE_ERROR;
  wrong = g_strdup (error->message);
  g_error_free (error);
  return wrong;
}
