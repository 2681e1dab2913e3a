// SPDX-License-Identifier: LGPL-2.1-or-later
#include "frames/segmenter.h"

#include "frames/frame_taker.h"
#include "relay/left_out.h"
#include "relay/relay_caps.h"

#define DEFAULT_RATE 48000
#define SKEW_MAX_US (10 * G_USEC_PER_SEC) // a clock that is further behind is not set
#define AHEAD_MAX_US (G_USEC_PER_SEC / 2) // a reordered frame may come before it is shown

static const struct {
  const gchar *encoding;
  WeirMp4Codec codec;
} codecs[] = {
  { "H264", WEIR_MP4_H264 },
  { "H265", WEIR_MP4_H265 },
  { "VP9", WEIR_MP4_VP9 },
  { "AV1", WEIR_MP4_AV1 },
  { "MPEG4-GENERIC", WEIR_MP4_AAC },
  { "MP4A-LATM", WEIR_MP4_AAC },
  { "OPUS", WEIR_MP4_OPUS },
};

// May outlive the segmenter, until its last frame has passed.
typedef struct {
  Segmenter *segmenter; // the main thread's
  Relay *relay;
  SegmentCutter *cutter;
  guint number, relay_track; // in the cutter, and in the relay
  WeirMp4Codec codec;
  FrameTaker *taker;
} Track;

struct _Segmenter {
  SegmentCutter *cutter;
  Track *tracks[SEGMENT_TRACKS_MAX];
  guint n_tracks;
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
on_format (gpointer data, const GstCaps *caps)
{
  Track *self = data;
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
    segment_cutter_set_format (self->cutter, self->number, &format);
  } else if (self->codec == WEIR_MP4_OPUS) {
    format.timescale = DEFAULT_RATE;
    weir_mp4_opus_config (made, format.channels);
    segment_cutter_set_format (self->cutter, self->number, &format);
  } else if (value && GST_VALUE_HOLDS_BUFFER (value)
             && gst_buffer_map (gst_value_get_buffer (value), &map, GST_MAP_READ)) {
    format.config = map.data;
    format.config_len = map.size;
    segment_cutter_set_format (self->cutter, self->number, &format);
    gst_buffer_unmap (gst_value_get_buffer (value), &map);
  }
}

// ---- frames ----

// Returns when the frame was taken by the source's clock, or if that is unknown or not set, when it
// arrived; in us since the epoch.
static gint64
find_wall_time (Relay *relay, gint64 pts)
{
  gint64 arrived = g_get_real_time (), taken;
  RelaySync sync;

  relay_get_sync (relay, &sync);
  taken = (pts + sync.clock) / 1000;
  return sync.has_clock && taken - arrived < AHEAD_MAX_US && arrived - taken < SKEW_MAX_US
             ? taken
             : arrived;
}

static void
on_frame (gpointer data, const Frame *frame)
{
  Track *self = data;

  segment_cutter_add (self->cutter, self->number, gst_buffer_ref (frame->data), frame->pts,
      !weir_mp4_is_video (self->codec) || frame->key, find_wall_time (self->relay, frame->pts));
}

static void
track_free (gpointer data)
{
  Track *self = data;

  g_clear_pointer (&self->cutter, segment_cutter_unref);
  relay_unref (self->relay);
  g_free (self);
}

static void
on_failed (gpointer data, const gchar *reason)
{
  Track *self = data;

  self->segmenter->failed (reason, self->segmenter->data);
}

static const FrameTakerFunctions functions = {
  .format = on_format, .frame = on_frame, .ended = track_free, .failed = on_failed
};

// ---- construction ----

static gboolean
find_codec (const GstCaps *caps, WeirMp4Codec *codec)
{
  const FrameKind *kind = frame_kind_find (caps);

  for (guint i = 0; kind && i < G_N_ELEMENTS (codecs); i++) {
    if (g_str_equal (kind->encoding, codecs[i].encoding)) {
      *codec = codecs[i].codec;
      return TRUE;
    }
  }
  return FALSE;
}

static guint
count_video (const Segmenter *self)
{
  guint n = 0;

  for (guint i = 0; i < self->n_tracks; i++)
    n += weir_mp4_is_video (self->tracks[i]->codec) ? 1 : 0;
  return n;
}

// Returns why the track cannot be carried (transfer full), or NULL. With `apart`, only one track is
// video.
static gchar *
try_track (Segmenter *self, Relay *relay, GstCaps *caps, guint relay_track,
    const SegmentOutputOps *to, const WeirLayerSet *layers, gboolean apart)
{
  // A recording has the first picture of a publisher, while readers take what comes.
  const FrameWish wish = { layers ? *layers : WEIR_LAYER_SET_ALL, layers != NULL,
    to->makes_files ? FRAMES_FROM_START : FRAMES_FROM_HELD };
  GError *error = NULL;
  WeirMp4Codec codec;
  FrameTaker *taker;
  Track *track;
  gchar *text;

  if (!find_codec (caps, &codec))
    return g_strdup_printf ("%s cannot carry %s", to->noun, left_out_codec (caps));
  if (self->n_tracks == SEGMENT_TRACKS_MAX)
    return g_strdup_printf ("%s carries %u tracks at most", to->noun, SEGMENT_TRACKS_MAX);
  if (apart && weir_mp4_is_video (codec) && count_video (self) > 0)
    return g_strdup_printf ("%s carries one track of video", to->noun);
  taker = frame_taker_new (relay, relay_track, caps, &wish, &error);
  if (!taker) {
    text = g_strdup (error->message);
    g_error_free (error);
    return text;
  }
  track = g_new0 (Track, 1);
  *track = (Track) { self, relay_ref (relay), NULL, self->n_tracks, relay_track, codec, taker };
  self->tracks[self->n_tracks++] = track;
  return NULL;
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
    const Track *track = self->tracks[i];

    tracks[i] =
        (SegmentCutterTrack) { track->codec, apart && !weir_mp4_is_video (track->codec) ? n++ : 0,
          relay_caps_get_language (g_ptr_array_index (caps, track->relay_track)) };
  }
  return segment_cutter_new (outputs, apart ? n : 1, lengths, label, tracks, self->n_tracks);
}

static void
start (Segmenter *self, const gchar *label)
{
  g_autofree gchar *log_label = g_strdup_printf ("mount %s", label);

  for (guint i = 0; i < self->n_tracks; i++) {
    self->tracks[i]->cutter = segment_cutter_ref (self->cutter);
    frame_taker_start (self->tracks[i]->taker, &functions, self->tracks[i], log_label);
  }
}

Segmenter *
segmenter_new (Relay *relay, GPtrArray *caps, SegmentOutput *const *outputs, guint n_outputs,
    const SegmentLengths *lengths, const WeirLayerSet *layers, const gchar *label,
    GString *left_out, void (*failed) (const gchar *reason, gpointer data), gpointer data)
{
  Segmenter *self = g_new0 (Segmenter, 1);
  const SegmentOutputOps *to = outputs[0]->ops;
  g_autofree gchar *log_label = NULL;

  self->failed = failed;
  self->data = data;
  for (guint i = 0; i < caps->len; i++) {
    gchar *problem =
        try_track (self, relay, g_ptr_array_index (caps, i), i, to, layers, n_outputs > 1);

    if (problem) {
      left_out_add (left_out, i, "%s", problem);
      g_free (problem);
    }
  }
  log_label = g_strdup_printf ("%s %s", to->name, label);
  left_out_log (log_label, left_out->str);
  if (self->n_tracks > 0) {
    self->cutter = make_cutter (self, caps, outputs, n_outputs > 1, lengths, label);
    start (self, label);
  } else {
    g_clear_pointer (&self, segmenter_free);
  }
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
  for (guint i = 0; i < self->n_tracks; i++)
    frame_taker_free (self->tracks[i]->taker);
  if (self->cutter) {
    segment_cutter_end (self->cutter);
    segment_cutter_unref (self->cutter);
  }
  g_free (self);
}
