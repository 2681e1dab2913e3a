// SPDX-License-Identifier: LGPL-2.1-or-later
#include "frames/segmenter.h"

#include "base/clock.h"
#include "base/element.h"
#include "relay/feed.h"
#include "relay/left_out.h"
#include "relay/relay_caps.h"
#include "relay/synced_sink.h"

#define DEFAULT_RATE 48000
#define SKEW_MAX_US (10 * G_USEC_PER_SEC) // a clock that is further behind is not set
#define AHEAD_MAX_US (G_USEC_PER_SEC / 2) // a reordered frame may come before it is shown
#define START (10 * (gint64) GST_SECOND)  // of the pipeline's time: the relay's may be negative

typedef struct {
  const gchar *encoding, *depay, *parse, *caps;
  WeirMp4Codec codec;
} Kind;

static const Kind kinds[] = {
  { "H264", "rtph264depay", "h264parse", "video/x-h264,stream-format=avc,alignment=au",
      WEIR_MP4_H264 },
  { "H265", "rtph265depay", "h265parse", "video/x-h265,stream-format=hvc1,alignment=au",
      WEIR_MP4_H265 },
  { "VP9", "rtpvp9depay", "vp9parse", "video/x-vp9,alignment=super-frame", WEIR_MP4_VP9 },
  { "AV1", "rtpav1depay", "av1parse", "video/x-av1,stream-format=obu-stream,alignment=tu",
      WEIR_MP4_AV1 },
  { "MPEG4-GENERIC", "rtpmp4gdepay", "aacparse", "audio/mpeg,mpegversion=4,stream-format=raw",
      WEIR_MP4_AAC },
  { "MP4A-LATM", "rtpmp4adepay", "aacparse", "audio/mpeg,mpegversion=4,stream-format=raw",
      WEIR_MP4_AAC },
  { "OPUS", "rtpopusdepay", "opusparse", "audio/x-opus", WEIR_MP4_OPUS },
};

typedef struct {
  Segmenter *pipeline;
  guint number, relay_track; // in the cutter, and in the relay
  WeirMp4Codec codec;
  Feed *feed;
} Track;

struct _Segmenter {
  GstElement *bin;
  Relay *relay;
  const WeirLayerSet *layers; // only while tracks are added
  SyncedSink *synced;
  SegmentCutter *cutter;
  Track tracks[SEGMENT_TRACKS_MAX];
  guint n_tracks;
  guint watch;
  void (*failed) (const gchar *reason, gpointer data);
  gpointer data;
};

// ---- formats ----

static guint
get_uint (const GstStructure *from, const gchar *field, guint preset)
{
  gint value;

  return gst_structure_get_int (from, field, &value) && value > 0 ? (guint) value : preset;
}

static void
make_vp9_config (const GstStructure *caps, guint8 config[WEIR_MP4_VP9_CONFIG])
{
  const gchar *profile = gst_structure_get_string (caps, "profile");
  const gchar *chroma = gst_structure_get_string (caps, "chroma-format");
  guint depth = 8;

  gst_structure_get_uint (caps, "bit-depth-luma", &depth);
  weir_mp4_vp9_config (config, profile ? (guint) g_ascii_strtoull (profile, NULL, 10) : 0, depth,
      g_strcmp0 (chroma, "4:4:4") == 0   ? 3
      : g_strcmp0 (chroma, "4:2:2") == 0 ? 2
                                         : 1,
      get_uint (caps, "width", 0), get_uint (caps, "height", 0));
}

static void
take_caps (Track *self, const GstCaps *caps)
{
  const GstStructure *structure = gst_caps_get_structure (caps, 0);
  const GValue *value = gst_structure_get_value (structure, "codec_data");
  WeirMp4Track format = { .codec = self->codec };
  guint8 made[WEIR_MP4_VP9_CONFIG];
  GstMapInfo map;

  if (weir_mp4_is_video (self->codec)) {
    format.timescale = 90000;
    format.width = (guint16) MIN (get_uint (structure, "width", 0), G_MAXUINT16);
    format.height = (guint16) MIN (get_uint (structure, "height", 0), G_MAXUINT16);
  } else {
    format.timescale = get_uint (structure, "rate", DEFAULT_RATE);
    format.channels = (guint16) MIN (get_uint (structure, "channels", 2), G_MAXUINT16);
  }
  format.config = made;
  format.config_len = self->codec == WEIR_MP4_VP9 ? WEIR_MP4_VP9_CONFIG : WEIR_MP4_OPUS_CONFIG;
  if (self->codec == WEIR_MP4_VP9) {
    make_vp9_config (structure, made);
    segment_cutter_set_format (self->pipeline->cutter, self->number, &format);
  } else if (self->codec == WEIR_MP4_OPUS) {
    format.timescale = DEFAULT_RATE;
    weir_mp4_opus_config (made, format.channels);
    segment_cutter_set_format (self->pipeline->cutter, self->number, &format);
  } else if (value && GST_VALUE_HOLDS_BUFFER (value)
             && gst_buffer_map (gst_value_get_buffer (value), &map, GST_MAP_READ)) {
    format.config = map.data;
    format.config_len = map.size;
    segment_cutter_set_format (self->pipeline->cutter, self->number, &format);
    gst_buffer_unmap (gst_value_get_buffer (value), &map);
  }
}

// ---- the data path ----

// Returns when the frame was taken by the source's clock, or if that is unknown or not set, when it
// arrived; in us since the epoch.
static gint64
find_wall_time (Segmenter *self, gint64 pts)
{
  gint64 arrived = g_get_real_time (), taken;
  RelaySync sync;

  relay_get_sync (self->relay, &sync);
  taken = (pts + sync.clock) / 1000;
  return sync.has_clock && taken - arrived < AHEAD_MAX_US && arrived - taken < SKEW_MAX_US
             ? taken
             : arrived;
}

static GstPadProbeReturn
on_frame (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  Track *self = data;
  GstBuffer *frame;

  if (info->type & GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM) {
    GstEvent *event = GST_PAD_PROBE_INFO_EVENT (info);
    GstCaps *caps;

    if (GST_EVENT_TYPE (event) == GST_EVENT_CAPS) {
      gst_event_parse_caps (event, &caps);
      take_caps (self, caps);
    }
    return GST_PAD_PROBE_OK;
  }
  frame = GST_PAD_PROBE_INFO_BUFFER (info);
  if (GST_BUFFER_PTS_IS_VALID (frame) && gst_buffer_get_size (frame) > 0) {
    gint64 pts = (gint64) GST_BUFFER_PTS (frame) - START;

    segment_cutter_add (self->pipeline->cutter, self->number, gst_buffer_ref (frame), pts,
        !weir_mp4_is_video (self->codec)
            || !GST_BUFFER_FLAG_IS_SET (frame, GST_BUFFER_FLAG_DELTA_UNIT),
        find_wall_time (self->pipeline, pts));
  }
  return GST_PAD_PROBE_OK;
}

// The gap of a feed is for gst-rtsp-server; a parser would make caps of it.
static GstPadProbeReturn
drop_gap (GstPad *pad, GstPadProbeInfo *info, gpointer unused)
{
  return GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (info)) == GST_EVENT_GAP ? GST_PAD_PROBE_DROP
                                                                           : GST_PAD_PROBE_OK;
}

static gboolean
on_message (GstBus *bus, GstMessage *message, gpointer data)
{
  Segmenter *self = data;
  GError *error;

  if (GST_MESSAGE_TYPE (message) != GST_MESSAGE_ERROR)
    return G_SOURCE_CONTINUE;
  gst_message_parse_error (message, &error, NULL);
  self->failed (error->message, self->data);
  g_error_free (error);
  return G_SOURCE_CONTINUE;
}

// ---- construction ----

static const Kind *
find_kind (const GstCaps *caps)
{
  const GstStructure *structure = gst_caps_get_structure (caps, 0);
  const gchar *encoding = gst_structure_get_string (structure, "encoding-name");

  for (guint i = 0; encoding && i < G_N_ELEMENTS (kinds); i++) {
    if (g_ascii_strcasecmp (encoding, kinds[i].encoding) == 0)
      return &kinds[i];
  }
  return NULL;
}

static void
watch_pad (GstElement *element, GstPadProbeType type, GstPadProbeCallback callback, gpointer data)
{
  GstPad *pad = gst_element_get_static_pad (element, "sink");

  gst_pad_add_probe (pad, type, callback, data, NULL);
  gst_object_unref (pad);
}

// H.264 with layers becomes plain H.264, as ordinary decoders know no other: all of its layers are
// taken by a filter, too.
static gboolean
needs_filter (const Segmenter *self, WeirMp4Codec codec)
{
  return self->layers && weir_mp4_is_video (codec)
         && (codec == WEIR_MP4_H264 || !weir_layer_set_equal (*self->layers, WEIR_LAYER_SET_ALL));
}

static void
set_layers (GstElement *filter, WeirLayerSet layers)
{
  g_object_set (filter, "max-spatial", (gint) layers.spatial, "max-quality", (gint) layers.quality,
      "max-temporal", (gint) layers.temporal, NULL);
  gst_util_set_object_arg (G_OBJECT (filter), "output-mode", "avc");
}

// Makes the elements of the names, of which NULL is the last.
static gboolean
make_all (const gchar *const *names, GstElement **made, GError **error)
{
  for (guint i = 0; names[i]; i++) {
    made[i] = element_make (names[i], error);
    if (!made[i]) {
      while (i-- > 0)
        gst_object_unref (made[i]);
      return FALSE;
    }
  }
  return TRUE;
}

static gboolean
add_track (Segmenter *self, Track *track, const Kind *kind, GstCaps *caps, GError **error)
{
  const gchar *const names[] = { kind->depay, kind->parse, "capsfilter", "fakesink",
    needs_filter (self, kind->codec) ? "svclayerfilter" : NULL, NULL };
  GstElement *made[G_N_ELEMENTS (names)] = { NULL };
  GstElement *depay, *parse, *wants, *sink, *layers, *first;
  GstCaps *wanted;

  if (!make_all (names, made, error))
    return FALSE;
  depay = made[0], parse = made[1], wants = made[2], sink = made[3], layers = made[4];
  first = layers ? layers : depay;
  track->feed = feed_new (caps, TRUE);
  // Players that do not begin anew where the picture changes its size, such as FFmpeg, find the new
  // parameter sets before each keyframe.
  if (kind->codec == WEIR_MP4_H264 || kind->codec == WEIR_MP4_H265)
    g_object_set (parse, "config-interval", -1, NULL);
  wanted = gst_caps_from_string (kind->caps);
  g_object_set (wants, "caps", wanted, NULL);
  gst_caps_unref (wanted);
  g_object_set (sink, "sync", FALSE, "async", FALSE, "enable-last-sample", FALSE, NULL);
  gst_bin_add_many (
      GST_BIN (self->bin), (GstElement *) track->feed, depay, parse, wants, sink, layers, NULL);
  gst_element_link_many (depay, parse, wants, sink, NULL);
  if (layers) {
    set_layers (layers, *self->layers);
    gst_element_link (layers, depay);
  }
  gst_element_link ((GstElement *) track->feed, first);
  watch_pad (first, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, drop_gap, NULL);
  watch_pad (
      sink, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM | GST_PAD_PROBE_TYPE_BUFFER, on_frame, track);
  return TRUE;
}

static guint
count_video (const Segmenter *self)
{
  guint n = 0;

  for (guint i = 0; i < self->n_tracks; i++)
    n += weir_mp4_is_video (self->tracks[i].codec) ? 1 : 0;
  return n;
}

// Returns why the track cannot be carried (transfer full), or NULL. With `apart`, only one track is
// video.
static gchar *
try_track (
    Segmenter *self, GstCaps *caps, guint relay_track, const SegmentOutputOps *to, gboolean apart)
{
  const Kind *kind = find_kind (caps);
  Track *track = &self->tracks[self->n_tracks];
  GError *error = NULL;
  gchar *text;

  if (!kind)
    return g_strdup_printf ("%s cannot carry %s", to->noun, left_out_codec (caps));
  if (self->n_tracks == SEGMENT_TRACKS_MAX)
    return g_strdup_printf ("%s carries %u tracks at most", to->noun, SEGMENT_TRACKS_MAX);
  if (apart && weir_mp4_is_video (kind->codec) && count_video (self) > 0)
    return g_strdup_printf ("%s carries one track of video", to->noun);
  *track = (Track) { self, self->n_tracks, relay_track, kind->codec, NULL };
  if (add_track (self, track, kind, caps, &error)) {
    self->n_tracks++;
    return NULL;
  }
  text = g_strdup (error->message);
  g_error_free (error);
  return text;
}

// ---- the relay's side ----

// The sink of the relay, which may outlive the pipeline. By the relay's tracks; NULL: left out.
typedef struct {
  Feed *feeds[RELAY_MAX_TRACKS];
} Feeds;

static void
on_push (gpointer data, const RelayPacket *packet)
{
  RelayPacket later = *packet;

  later.time += START;
  feed_push (((Feeds *) data)->feeds[packet->track], &later);
}

static gboolean
is_open (gpointer data)
{
  Feeds *self = data;
  gboolean all = TRUE;

  for (guint i = 0; i < RELAY_MAX_TRACKS; i++)
    all &= !self->feeds[i] || feed_is_open (self->feeds[i]);
  return all;
}

static void
on_ended (gpointer data)
{
  Feeds *self = data;

  for (guint i = 0; i < RELAY_MAX_TRACKS; i++) {
    if (self->feeds[i])
      feed_set_relay (self->feeds[i], NULL, 0);
    gst_clear_object (&self->feeds[i]);
  }
  g_free (self);
}

// A recording has the first picture of a publisher, while readers take what comes.
static const RelaySink functions = { .push = on_push, .ended = on_ended, .is_open = is_open };
static const RelaySink of_files = {
  .push = on_push, .ended = on_ended, .is_open = is_open, .from_start = TRUE
};

static void
take_packets (Segmenter *self, const gchar *label, gboolean makes_files)
{
  Feeds *feeds = g_new0 (Feeds, 1);
  guint32 tracks = 0;

  for (guint i = 0; i < self->n_tracks; i++) {
    const Track *track = &self->tracks[i];

    tracks |= 1u << track->relay_track;
    feeds->feeds[track->relay_track] = gst_object_ref (track->feed);
    feed_set_relay (track->feed, self->relay, track->relay_track);
  }
  self->synced =
      synced_sink_add (self->relay, label, makes_files ? &of_files : &functions, feeds, tracks);
}

static void
start (Segmenter *self, const gchar *label, gboolean makes_files)
{
  GstBus *bus = gst_element_get_bus (self->bin);

  self->watch = gst_bus_add_watch (bus, on_message, self);
  gst_object_unref (bus);
  gst_element_set_state (self->bin, GST_STATE_PLAYING);
  take_packets (self, label, makes_files);
  for (guint i = 0; i < self->n_tracks; i++) {
    const Track *track = &self->tracks[i];

    if (weir_mp4_is_video (track->codec))
      relay_ask_key (self->relay, track->relay_track, clock_now ());
  }
}

// Makes the cutter. With `apart`, tracks of sound that are several have an output each.
static SegmentCutter *
make_cutter (const Segmenter *self, GPtrArray *caps, SegmentOutput *const *outputs, gboolean apart,
    const SegmentLengths *lengths, const gchar *label)
{
  guint n_video = count_video (self), n = MIN (n_video, 1);
  SegmentCutterTrack tracks[SEGMENT_TRACKS_MAX];

  apart &= self->n_tracks > n_video + 1;
  for (guint i = 0; i < self->n_tracks; i++) {
    const Track *track = &self->tracks[i];

    tracks[i] =
        (SegmentCutterTrack) { track->codec, apart && !weir_mp4_is_video (track->codec) ? n++ : 0,
          relay_caps_get_language (g_ptr_array_index (caps, track->relay_track)) };
  }
  return segment_cutter_new (outputs, apart ? n : 1, lengths, label, tracks, self->n_tracks);
}

Segmenter *
segmenter_new (Relay *relay, GPtrArray *caps, SegmentOutput *const *outputs, guint n_outputs,
    const SegmentLengths *lengths, const WeirLayerSet *layers, const gchar *label,
    GString *left_out, void (*failed) (const gchar *reason, gpointer data), gpointer data)
{
  Segmenter *self = g_new0 (Segmenter, 1);
  const SegmentOutputOps *to = outputs[0]->ops;
  gchar *log_label;

  self->bin = gst_pipeline_new (NULL);
  self->relay = relay_ref (relay);
  self->layers = layers;
  self->failed = failed;
  self->data = data;
  for (guint i = 0; i < caps->len; i++) {
    gchar *problem = try_track (self, g_ptr_array_index (caps, i), i, to, n_outputs > 1);

    if (problem) {
      left_out_add (left_out, i, "%s", problem);
      g_free (problem);
    }
  }
  log_label = g_strdup_printf ("%s %s", to->name, label);
  left_out_log (log_label, left_out->str);
  if (self->n_tracks > 0) {
    self->cutter = make_cutter (self, caps, outputs, n_outputs > 1, lengths, label);
    start (self, log_label, to->makes_files);
  } else {
    g_clear_pointer (&self, segmenter_free);
  }
  g_free (log_label);
  return self;
}

void
segmenter_interrupt (Segmenter *self)
{
  segment_cutter_interrupt (self->cutter);
}

void
segmenter_free (Segmenter *self)
{
  g_clear_pointer (&self->synced, synced_sink_remove);
  if (self->watch)
    g_source_remove (self->watch);
  gst_element_set_state (self->bin, GST_STATE_NULL);
  gst_object_unref (self->bin);
  relay_unref (self->relay);
  g_clear_pointer (&self->cutter, segment_cutter_free);
  g_free (self);
}
