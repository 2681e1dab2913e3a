// SPDX-License-Identifier: LGPL-2.1-or-later

// Receives RTP over unicast or multicast: one track that a URI describes, or several that an SDP
// file describes. Packets are relayed as they arrive; RTCP gives the mapping to NTP time.

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "rtp/encoding.h"
#include "rtp/rtcp.h"
#include "rtp/rtcp_write.h"
#include "rtp/rtp.h"
#include "sources/pull_uri.h"
#include "sources/sdp.h"
#include "sources/udp_input.h"

typedef struct {
  const PullContext *context;
  gchar *uri;        // a copy that outlives the context
  GPtrArray *tracks; // of Track
  GMutex lock;       // of the fields that both RTP and RTCP use
  gboolean begun;
  guint32 ssrc; // the sender SSRC of keyframe requests
} RtpPull;

typedef struct {
  RtpPull *pull;
  guint index;
  GstCaps *caps;
  gint payload;
  UdpInput *rtp;
  UdpInput *rtcp; // NULL: RTCP arrives with the media
  gboolean takes_pli;
  // With the pull's lock:
  WeirNtpMap report; // the latest report; not known once a packet of its SSRC has followed
  gboolean flows;
  guint32 ssrc; // of its latest packet
} Track;

static void
track_free (gpointer data)
{
  Track *track = data;

  g_clear_pointer (&track->rtp, udp_input_free);
  g_clear_pointer (&track->rtcp, udp_input_free);
  gst_caps_unref (track->caps);
  g_free (track);
}

static void
pull_free (gpointer data)
{
  RtpPull *self = data;
  UdpStats stats = { 0 };

  for (guint i = 0; i < self->tracks->len; i++) {
    Track *track = g_ptr_array_index (self->tracks, i);

    if (track->rtp)
      udp_input_add_stats (track->rtp, &stats);
    if (track->rtcp)
      udp_input_add_stats (track->rtcp, &stats);
  }
  udp_stats_log (&stats, self->uri);
  g_free (self->uri);
  g_ptr_array_unref (self->tracks);
  g_mutex_clear (&self->lock);
  g_free (self);
}

// ---- packets ----

// Begins the source at the first packet of any track. Packets of other tracks wait until the relay
// knows the tracks.
static void
ensure_begun (RtpPull *self)
{
  const PullContext *context = self->context;
  GPtrArray *caps;

  g_mutex_lock (&self->lock);
  if (!self->begun) {
    caps = g_ptr_array_new ();
    for (guint i = 0; i < self->tracks->len; i++)
      g_ptr_array_add (caps, ((Track *) g_ptr_array_index (self->tracks, i))->caps);
    context->callbacks->begun (context->owner, relay_source_begin (context->source, caps));
    g_ptr_array_unref (caps);
    self->begun = TRUE;
  }
  g_mutex_unlock (&self->lock);
}

typedef enum {
  INVALID,
  MEDIA,
  RTCP,
} Kind;

// Classifies a datagram. Fills `rtp` for media, `map` for a sender report; without one, `map` stays
// unknown.
static Kind
classify (Track *track, GstBuffer *datagram, WeirRtp *rtp, WeirNtpMap *map)
{
  Kind kind = INVALID;
  GstMapInfo info;
  int result;

  *map = (WeirNtpMap) { 0 };
  if (!gst_buffer_map (datagram, &info, GST_MAP_READ))
    return INVALID;
  if (weir_rtp_is_rtcp (info.data, info.size)) {
    result = weir_rtcp_find_sr (info.data, info.size, map);
    kind = result == 0 || result == -ENOENT ? RTCP : INVALID;
  } else if (weir_rtp_parse (info.data, info.size, rtp) == 0 && rtp->pt == track->payload) {
    kind = MEDIA;
  }
  gst_buffer_unmap (datagram, &info);
  return kind;
}

static void
keep_report (Track *track, const WeirNtpMap *map)
{
  g_mutex_lock (&track->pull->lock);
  if (map->known)
    track->report = *map;
  g_mutex_unlock (&track->pull->lock);
}

static void
take_media (Track *track, GstBuffer *packet, guint32 ssrc, gint64 now)
{
  const PullContext *context = track->pull->context;
  WeirNtpMap map = { 0 };

  ensure_begun (track->pull);
  relay_push (context->source, track->index, packet, now, RELAY_NO_BASE);
  // A report can arrive before the first packet of its sender, when the relay does not know the
  // sender yet.
  g_mutex_lock (&track->pull->lock);
  track->flows = TRUE;
  track->ssrc = ssrc;
  if (track->report.known && track->report.ssrc == ssrc) {
    map = track->report;
    track->report.known = false;
  }
  g_mutex_unlock (&track->pull->lock);
  if (map.known)
    relay_set_ntp_map (context->source, track->index, &map);
  context->callbacks->packet (context->owner, now);
}

static GstPadProbeReturn
on_rtp (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  Track *track = data;
  GstBuffer *datagram = GST_PAD_PROBE_INFO_BUFFER (info);
  gint64 now = clock_now ();
  guint32 overflow;
  WeirNtpMap map;
  WeirRtp rtp;

  if (g_atomic_int_get (&track->pull->context->cancelled)
      || !udp_input_admits (track->rtp, datagram, now))
    return GST_PAD_PROBE_DROP;
  overflow = udp_input_take_overflow (track->rtp, now);
  if (overflow > 0)
    relay_count_overflow (track->pull->context->source, overflow);
  switch (classify (track, datagram, &rtp, &map)) {
    case MEDIA:
      udp_input_accept (track->rtp, datagram, now);
      info->data = NULL;
      take_media (track, datagram, rtp.ssrc, now);
      return GST_PAD_PROBE_HANDLED;
    case RTCP:
      keep_report (track, &map);
      break;
    default:
      udp_input_refuse (track->rtp);
      break;
  }
  return GST_PAD_PROBE_DROP;
}

static GstPadProbeReturn
on_rtcp (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  Track *track = data;
  GstBuffer *datagram = GST_PAD_PROBE_INFO_BUFFER (info);
  WeirNtpMap map;
  WeirRtp rtp;

  if (!udp_input_is_from_sender (track->rtp, datagram))
    return GST_PAD_PROBE_DROP;
  if (classify (track, datagram, &rtp, &map) == RTCP) {
    udp_input_accept (track->rtcp, datagram, clock_now ());
    keep_report (track, &map);
  } else {
    udp_input_refuse (track->rtcp);
  }
  return GST_PAD_PROBE_DROP;
}

// ---- keyframes ----

// Sends a PLI to the address that RTCP comes from.
static void
ask_for_key (GstElement *pipeline, guint index)
{
  RtpPull *self = g_object_get_data (G_OBJECT (pipeline), "pull");
  Track *track = index < self->tracks->len ? g_ptr_array_index (self->tracks, index) : NULL;
  guint8 packet[64];
  gboolean flows;
  guint32 ssrc;
  gsize size;

  if (!track || !track->takes_pli)
    return;
  g_mutex_lock (&self->lock);
  flows = track->flows;
  ssrc = track->ssrc;
  g_mutex_unlock (&self->lock);
  if (!flows)
    return;
  size = weir_rtcp_write_rr (packet, sizeof packet, self->ssrc, NULL, "rtsp-proxy");
  size += weir_rtcp_write_pli (packet + size, sizeof packet - size, self->ssrc, ssrc);
  udp_input_answer (track->rtcp ? track->rtcp : track->rtp, packet, size);
}

// ---- building ----

static UdpInput *
add_input (GstBin *bin, const PullEndpoint *endpoint, GstPadProbeCallback probe, Track *track,
    GError **error)
{
  UdpInput *input = udp_input_new (endpoint, error);
  GstElement *source = input ? udp_input_add_source (input, bin, error) : NULL;
  GstElement *sink;
  GstPad *pad;

  if (!source) {
    g_clear_pointer (&input, udp_input_free);
    return NULL;
  }
  sink = gst_element_factory_make ("fakesink", NULL); // part of GStreamer's core; gets no packet
  g_object_set (sink, "async", FALSE, "sync", FALSE, NULL);
  gst_bin_add (bin, sink);
  gst_element_link (source, sink);
  pad = gst_element_get_static_pad (source, "src");
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, probe, track, NULL);
  gst_object_unref (pad);
  return input;
}

static gboolean
add_track (RtpPull *self, GstBin *bin, const RtpStream *stream, GError **error)
{
  PullEndpoint rtcp = stream->rtp;
  Track *track = g_new0 (Track, 1);

  track->pull = self;
  track->index = self->tracks->len;
  track->caps = gst_caps_ref (stream->caps);
  gst_structure_get_int (gst_caps_get_structure (stream->caps, 0), "payload", &track->payload);
  gst_structure_get_boolean (
      gst_caps_get_structure (stream->caps, 0), "rtcp-fb-nack-pli", &track->takes_pli);
  g_ptr_array_add (self->tracks, track);
  track->rtp = add_input (bin, &stream->rtp, on_rtp, track, error);
  if (!track->rtp || stream->rtcp_port == stream->rtp.port)
    return track->rtp != NULL;
  rtcp.port = stream->rtcp_port;
  track->rtcp = add_input (bin, &rtcp, on_rtcp, track, error);
  return track->rtcp != NULL;
}

static GPtrArray *
find_streams (const PullConfig *config, GError **error)
{
  GPtrArray *streams;

  if (config->path)
    return sdp_read (config->path, config->endpoint.iface, error);
  streams = g_ptr_array_new_with_free_func (rtp_stream_free);
  g_ptr_array_add (streams, rtp_stream_new (&config->endpoint, config->rtp));
  return streams;
}

GstElement *
rtp_pull_new (const PullContext *context, GError **error)
{
  GPtrArray *streams = find_streams (context->config, error);
  gboolean ok = streams != NULL;
  GstElement *pipeline;
  RtpPull *self;

  if (!streams)
    return NULL;
  self = g_new0 (RtpPull, 1);
  self->context = context;
  self->uri = g_strdup (context->config->uri);
  self->ssrc = g_random_int ();
  self->tracks = g_ptr_array_new_with_free_func (track_free);
  g_mutex_init (&self->lock);
  pipeline = gst_pipeline_new (NULL);
  g_object_set_data_full (G_OBJECT (pipeline), "pull", self, pull_free);
  for (guint i = 0; ok && i < streams->len; i++)
    ok = add_track (self, GST_BIN (pipeline), g_ptr_array_index (streams, i), error);
  g_ptr_array_unref (streams);
  if (ok) {
    pull_set_asker (context, pipeline, ask_for_key);
    return pipeline;
  }
  gst_object_unref (gst_object_ref_sink (pipeline));
  return NULL;
}

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
  if (!wrong && !g_strcmp0 (gst_structure_get_string (s, "encoding-name"), "MP2T"))
    config->make = ts_pull_new; // also reads MPEG-TS in RTP
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
  streams = sdp_read (config->path, config->endpoint.iface, &error);
  if (streams) {
    g_ptr_array_unref (streams);
    return NULL;
  }
  wrong = g_strdup (error->message);
  g_error_free (error);
  return wrong;
}
