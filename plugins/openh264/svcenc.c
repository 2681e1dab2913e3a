// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * SECTION:element-svcenc
 * @title: svcenc
 * @short_description: encodes H.264 with spatial and temporal layers, using OpenH264
 *
 * GStreamer's own openh264enc encodes one layer. This element encodes each picture in 1 to 4
 * spatial layers (sizes), each with 1 to 4 temporal layers (frame rates), as one SVC stream.
 * svclayerfilter removes layers from it, svcdec decodes it, and any H.264 decoder decodes its base
 * layer.
 *
 * OpenH264 writes SVC syntax, but its spatial layers are independent: no layer is predicted from a
 * lower one, so the stream needs as many bits as separate streams. There are no quality layers. The
 * advantage over separate streams: all layers travel in one stream, in sync, with keyframes at the
 * same time; and svclayerfilter output-mode=avc turns each spatial layer into plain H.264 without
 * loss. Temporal layers do depend on each other and cost little.
 *
 * Each picture has one slice per layer, and every parameter set has a number of its own, because
 * GStreamer's h264parse breaks streams without these properties. Parameter sets are repeated at
 * every keyframe; a forced keyframe covers all layers. The element encodes on the streaming thread
 * only, so the same input gives the same bytes.
 *
 * With #WeirSvcEnc:simulcast each spatial layer is a stream of plain H.264 on a pad of its own: the
 * highest on `src`, the others on `layer_0`, `layer_1`, ..., lowest first. The element adds the
 * layer pads when it receives caps.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=60 ! video/x-raw,width=640,height=360 ! svcenc spatial-layers=2 temporal-layers=3 layer-bitrates=100000,400000 ! svclayerfilter max-spatial=0 ! svcdec ! fakesink
 * ]|
 *
 * Since: 0.1
 */
#include "config.h"

#include "svcenc.h"

#include "core/codec/paramids.h"
#include "core/codec/sps.h"
#include "core/svc/frame.h"
#include "elementname.h"
#include "svcenc_layers.h"

#include <string.h>

#include <wels/codec_api.h>

GST_DEBUG_CATEGORY_STATIC (svcenc_debug);
#define GST_CAT_DEFAULT svcenc_debug

enum {
  PROP_0,
  PROP_SPATIAL_LAYERS,
  PROP_TEMPORAL_LAYERS,
  PROP_LAYER_BITRATES,
  PROP_LAYER_SIZES,
  PROP_GOP_SIZE,
  PROP_SIMULCAST,
};

#define DEFAULT_SPATIAL_LAYERS 3
#define DEFAULT_TEMPORAL_LAYERS 3
#define DEFAULT_GOP_SIZE 60
#define DEFAULT_SIMULCAST FALSE

static GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS,
        GST_STATIC_CAPS ("video/x-raw, format=(string)I420, width=(int)[ 16, 3840 ], "
                         "height=(int)[ 16, 2160 ], framerate=(fraction)[ 0, MAX ]"));

#define SRC_CAPS                                                                                   \
  "video/x-h264, stream-format=(string)byte-stream, alignment=(string)au, "                        \
  "profile=(string){ constrained-baseline, scalable-baseline }"
static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (SRC_CAPS));
static GstStaticPadTemplate layer_template = GST_STATIC_PAD_TEMPLATE (
    "layer_%u", GST_PAD_SRC, GST_PAD_SOMETIMES, GST_STATIC_CAPS (SRC_CAPS));

struct _WeirSvcEnc {
  GstVideoEncoder parent;

  // Streaming thread only.
  ISVCEncoder *encoder;
  GstVideoInfo info;
  SvcEncLayer layers[SVC_ENC_LAYERS];
  guint n_layers;
  gboolean separate;            // simulcast
  GstPad *pads[SVC_ENC_LAYERS]; // of the layers below the highest

  // Under the object lock; applied when caps arrive.
  guint spatial_layers;
  guint temporal_layers;
  gchar *layer_bitrates;
  gchar *layer_sizes;
  guint gop_size;
  gboolean simulcast;
};

G_DEFINE_FINAL_TYPE (WeirSvcEnc, weir_svc_enc, GST_TYPE_VIDEO_ENCODER)
GST_ELEMENT_REGISTER_DEFINE (svcenc, "svcenc", GST_RANK_NONE, WEIR_TYPE_SVC_ENC)

// ---- the encoder ----

static void
fill_parameters (WeirSvcEnc *self, SEncParamExt *param, guint temporal_layers, guint gop_size)
{
  gfloat rate = self->info.fps_n > 0 ? (gfloat) self->info.fps_n / (gfloat) self->info.fps_d : 30;

  param->iUsageType = CAMERA_VIDEO_REAL_TIME;
  param->iPicWidth = self->info.width;
  param->iPicHeight = self->info.height;
  param->fMaxFrameRate = rate;
  param->iRCMode = RC_BITRATE_MODE;
  param->iTemporalLayerNum = (int) temporal_layers;
  param->iSpatialLayerNum = (int) self->n_layers;
  param->uiIntraPeriod = gop_size;
  param->eSpsPpsIdStrategy = CONSTANT_ID;
  param->bPrefixNalAddingCtrl = !self->separate;
  param->bSimulcastAVC = self->separate;
  param->bEnableFrameSkip = false;
  param->iMultipleThreadIdc = 1;
  param->iTargetBitrate = 0;
  for (guint i = 0; i < self->n_layers; i++) {
    SSpatialLayerConfig *config = &param->sSpatialLayers[i];

    config->iVideoWidth = self->layers[i].width;
    config->iVideoHeight = self->layers[i].height;
    config->fFrameRate = rate;
    config->iSpatialBitrate = (int) self->layers[i].bitrate;
    config->iMaxSpatialBitrate = UNSPECIFIED_BIT_RATE;
    config->sSliceArgument.uiSliceMode = SM_SINGLE_SLICE;
    param->iTargetBitrate += config->iSpatialBitrate;
  }
}

static void
close_encoder (WeirSvcEnc *self)
{
  if (!self->encoder)
    return;
  (*self->encoder)->Uninitialize (self->encoder);
  WelsDestroySVCEncoder (self->encoder);
  self->encoder = NULL;
}

static gboolean
open_encoder (WeirSvcEnc *self, guint temporal_layers, guint gop_size)
{
  SEncParamExt param;
  int format = videoFormatI420, quiet = WELS_LOG_QUIET;

  close_encoder (self);
  if (WelsCreateSVCEncoder (&self->encoder) != 0) {
    self->encoder = NULL;
    GST_ELEMENT_ERROR (self, LIBRARY, INIT, ("cannot create an OpenH264 encoder"), (NULL));
    return FALSE;
  }
  (*self->encoder)->SetOption (self->encoder, ENCODER_OPTION_TRACE_LEVEL, &quiet);
  (*self->encoder)->GetDefaultParams (self->encoder, &param);
  fill_parameters (self, &param, temporal_layers, gop_size);
  if ((*self->encoder)->InitializeExt (self->encoder, &param) != 0) {
    WelsDestroySVCEncoder (self->encoder);
    self->encoder = NULL;
    GST_ELEMENT_ERROR (self, LIBRARY, SETTINGS,
        ("OpenH264 rejects the layers: change spatial-layers, layer-sizes or layer-bitrates"),
        (NULL));
    return FALSE;
  }
  (*self->encoder)->SetOption (self->encoder, ENCODER_OPTION_DATAFORMAT, &format);
  return TRUE;
}

// ---- pads of simulcast ----

static GstCaps *
make_caps (WeirSvcEnc *self, guint layer)
{
  GstCaps *caps = gst_caps_new_simple ("video/x-h264", "stream-format", G_TYPE_STRING,
      "byte-stream", "alignment", G_TYPE_STRING, "au", "profile", G_TYPE_STRING,
      self->n_layers > 1 && !self->separate ? "scalable-baseline" : "constrained-baseline", NULL);

  gst_caps_set_simple (caps, "width", G_TYPE_INT, self->layers[layer].width, "height", G_TYPE_INT,
      self->layers[layer].height, NULL);
  return caps;
}

static void
remove_pads (WeirSvcEnc *self)
{
  for (guint i = 0; i < SVC_ENC_LAYERS; i++) {
    if (!self->pads[i])
      continue;
    gst_pad_set_active (self->pads[i], FALSE);
    gst_element_remove_pad (GST_ELEMENT (self), g_steal_pointer (&self->pads[i]));
  }
}

static void
add_pad (WeirSvcEnc *self, guint layer)
{
  gchar *name = g_strdup_printf ("layer_%u", layer);
  GstPad *pad = gst_pad_new_from_static_template (&layer_template, name);
  gchar *id = gst_pad_create_stream_id (pad, GST_ELEMENT (self), name);
  GstCaps *caps = make_caps (self, layer);

  if (self->info.fps_n > 0)
    gst_caps_set_simple (
        caps, "framerate", GST_TYPE_FRACTION, self->info.fps_n, self->info.fps_d, NULL);
  gst_pad_use_fixed_caps (pad);
  gst_pad_set_active (pad, TRUE);
  gst_pad_push_event (pad, gst_event_new_stream_start (id));
  gst_pad_push_event (pad, gst_event_new_caps (caps));
  gst_pad_push_event (pad, gst_event_new_segment (&GST_VIDEO_ENCODER_INPUT_SEGMENT (self)));
  self->pads[layer] = pad;
  gst_element_add_pad (GST_ELEMENT (self), pad);
  gst_caps_unref (caps);
  g_free (id);
  g_free (name);
}

static gboolean
weir_svc_enc_set_format (GstVideoEncoder *encoder, GstVideoCodecState *state)
{
  WeirSvcEnc *self = WEIR_SVC_ENC (encoder);
  guint temporal_layers, gop_size;
  gchar *bitrates, *sizes, *wrong;
  gboolean ok;

  GST_OBJECT_LOCK (self);
  self->n_layers = self->spatial_layers;
  self->separate = self->simulcast;
  temporal_layers = self->temporal_layers;
  gop_size = self->gop_size;
  bitrates = g_strdup (self->layer_bitrates);
  sizes = g_strdup (self->layer_sizes);
  GST_OBJECT_UNLOCK (self);

  self->info = state->info;
  wrong = svc_enc_layers_fill (self->layers, self->n_layers, &self->info, sizes, bitrates);
  if (wrong)
    GST_ELEMENT_ERROR (self, LIBRARY, SETTINGS, ("svcenc: %s", wrong), (NULL));
  ok = !wrong && open_encoder (self, temporal_layers, gop_size);
  g_free (bitrates);
  g_free (sizes);
  g_free (wrong);
  if (!ok)
    return FALSE;
  remove_pads (self);
  for (guint i = 0; self->separate && i + 1 < self->n_layers; i++)
    add_pad (self, i);
  gst_video_codec_state_unref (
      gst_video_encoder_set_output_state (encoder, make_caps (self, self->n_layers - 1), state));
  return TRUE;
}

// ---- data ----

// Collects the NAL units of one spatial layer, or of all layers if `layer` is -1.
typedef struct {
  GByteArray *bytes;
  gint layer;
  gboolean renumber;
} Gather;

static const guint8 start_code[] = { 0, 0, 0, 1 };

// Appends a parameter set; renumbers it if needed. OpenH264 numbers the subset SPS of spatial layer
// d as d - 1, and the PPS of layer d as d.
static void
gather_parameters (Gather *g, const WeirUnit *unit)
{
  guint8 changed[WEIR_SPS_MAX];
  gboolean upper =
      unit->nal.type == WEIR_H264_SUBSET_SPS || (unit->nal.type == WEIR_H264_PPS && unit->id > 0);
  guint32 id = unit->nal.type == WEIR_H264_PPS ? (guint32) unit->sps + 1 : (guint32) unit->id + 1;
  gint len = -1;

  if (g->layer >= 0 && unit->id != g->layer)
    return;
  if (g->renumber && upper)
    len = weir_h264_set_sps_id (unit->data, unit->len, id, changed, sizeof changed);
  g_byte_array_append (g->bytes, start_code, sizeof start_code);
  if (len > 0)
    g_byte_array_append (g->bytes, changed, (guint) len);
  else
    g_byte_array_append (g->bytes, unit->data, (guint) unit->len);
}

static void
gather_layer (Gather *g, const SLayerBSInfo *layer)
{
  const guint8 *at = layer->pBsBuf;

  if (g->layer >= 0 && layer->uiLayerType == VIDEO_CODING_LAYER && layer->uiSpatialId != g->layer)
    return;
  for (gint i = 0; i < layer->iNalCount; i++) {
    gsize len = (gsize) layer->pNalLengthInByte[i];
    WeirUnit unit;

    if (len > sizeof start_code
        && weir_unit_read (&unit, at + sizeof start_code, len - sizeof start_code)
        && weir_h264_is_parameters (unit.nal.type))
      gather_parameters (g, &unit);
    else
      g_byte_array_append (g->bytes, at, (guint) len);
    at += len;
  }
}

static GstBuffer *
gather (const WeirSvcEnc *self, const SFrameBSInfo *frame, gint layer)
{
  Gather g = { g_byte_array_sized_new ((guint) frame->iFrameSizeInBytes + 64), layer,
    !self->separate };
  gsize len;

  for (gint i = 0; i < frame->iLayerNum; i++)
    gather_layer (&g, &frame->sLayerInfo[i]);
  len = g.bytes->len;
  return gst_buffer_new_wrapped (g_byte_array_free (g.bytes, FALSE), len);
}

// Pushes each layer below the highest on its pad. Ignores pads that are not linked.
static GstFlowReturn
push_layers (WeirSvcEnc *self, const SFrameBSInfo *out, const GstVideoCodecFrame *frame)
{
  GstFlowReturn worst = GST_FLOW_OK;

  for (guint i = 0; i + 1 < self->n_layers; i++) {
    GstBuffer *buffer = gather (self, out, (gint) i);
    GstFlowReturn ret;

    GST_BUFFER_PTS (buffer) = frame->pts;
    GST_BUFFER_DTS (buffer) = frame->pts;
    GST_BUFFER_DURATION (buffer) = frame->duration;
    if (out->eFrameType != videoFrameTypeIDR)
      GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_DELTA_UNIT);
    ret = gst_pad_push (self->pads[i], buffer);
    if (ret < GST_FLOW_NOT_LINKED)
      worst = ret;
  }
  return worst;
}

static void
force_key (WeirSvcEnc *self)
{
  // Since OpenH264 1.8 the function has a third argument, which the C header omits.
  typedef int (*ForceIntraFrame) (ISVCEncoder *, bool, int);

  ((ForceIntraFrame) (void (*) (void)) (*self->encoder)->ForceIntraFrame) (self->encoder, true, -1);
}

static gboolean
encode (WeirSvcEnc *self, const GstVideoCodecFrame *frame, SFrameBSInfo *out)
{
  GstVideoFrame in;
  SSourcePicture picture = { .iColorFormat = videoFormatI420 };
  gboolean ok;

  if (!gst_video_frame_map (&in, &self->info, frame->input_buffer, GST_MAP_READ))
    return FALSE;
  for (gint i = 0; i < 3; i++) {
    picture.iStride[i] = GST_VIDEO_FRAME_PLANE_STRIDE (&in, i);
    picture.pData[i] = GST_VIDEO_FRAME_PLANE_DATA (&in, i);
  }
  picture.iPicWidth = self->info.width;
  picture.iPicHeight = self->info.height;
  picture.uiTimeStamp = (long long) (frame->pts / GST_MSECOND);
  ok = (*self->encoder)->EncodeFrame (self->encoder, &picture, out) == cmResultSuccess;
  gst_video_frame_unmap (&in);
  return ok;
}

static GstFlowReturn
weir_svc_enc_handle_frame (GstVideoEncoder *encoder, GstVideoCodecFrame *frame)
{
  WeirSvcEnc *self = WEIR_SVC_ENC (encoder);
  SFrameBSInfo out = { 0 };
  GstFlowReturn ret, others = GST_FLOW_OK;

  if (GST_VIDEO_CODEC_FRAME_IS_FORCE_KEYFRAME (frame))
    force_key (self);
  if (!encode (self, frame, &out)) {
    gst_video_encoder_finish_frame (encoder, frame);
    GST_ELEMENT_ERROR (self, STREAM, ENCODE, ("OpenH264 cannot encode the picture"), (NULL));
    return GST_FLOW_ERROR;
  }
  if (out.eFrameType == videoFrameTypeIDR)
    GST_VIDEO_CODEC_FRAME_SET_SYNC_POINT (frame);
  if (self->separate)
    others = push_layers (self, &out, frame);
  if (out.iLayerNum > 0)
    frame->output_buffer = gather (self, &out, self->separate ? (gint) self->n_layers - 1 : -1);
  ret = gst_video_encoder_finish_frame (encoder, frame);
  return ret == GST_FLOW_OK ? others : ret;
}

static gboolean
weir_svc_enc_sink_event (GstVideoEncoder *encoder, GstEvent *event)
{
  WeirSvcEnc *self = WEIR_SVC_ENC (encoder);

  if (GST_EVENT_TYPE (event) == GST_EVENT_EOS || GST_EVENT_TYPE (event) == GST_EVENT_FLUSH_START
      || GST_EVENT_TYPE (event) == GST_EVENT_FLUSH_STOP
      || GST_EVENT_TYPE (event) == GST_EVENT_SEGMENT) {
    for (guint i = 0; i < SVC_ENC_LAYERS; i++) {
      if (self->pads[i])
        gst_pad_push_event (self->pads[i], gst_event_ref (event));
    }
  }
  return GST_VIDEO_ENCODER_CLASS (weir_svc_enc_parent_class)->sink_event (encoder, event);
}

static gboolean
weir_svc_enc_stop (GstVideoEncoder *encoder)
{
  close_encoder (WEIR_SVC_ENC (encoder));
  remove_pads (WEIR_SVC_ENC (encoder));
  return TRUE;
}

// ---- properties ----

static void
weir_svc_enc_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  WeirSvcEnc *self = WEIR_SVC_ENC (object);

  GST_OBJECT_LOCK (self);
  switch (id) {
    case PROP_SPATIAL_LAYERS:
      self->spatial_layers = g_value_get_uint (value);
      break;
    case PROP_TEMPORAL_LAYERS:
      self->temporal_layers = g_value_get_uint (value);
      break;
    case PROP_LAYER_BITRATES:
      g_free (self->layer_bitrates);
      self->layer_bitrates = g_value_dup_string (value);
      break;
    case PROP_LAYER_SIZES:
      g_free (self->layer_sizes);
      self->layer_sizes = g_value_dup_string (value);
      break;
    case PROP_GOP_SIZE:
      self->gop_size = g_value_get_uint (value);
      break;
    case PROP_SIMULCAST:
      self->simulcast = g_value_get_boolean (value);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
      break;
  }
  GST_OBJECT_UNLOCK (self);
}

static void
weir_svc_enc_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  WeirSvcEnc *self = WEIR_SVC_ENC (object);

  GST_OBJECT_LOCK (self);
  switch (id) {
    case PROP_SPATIAL_LAYERS:
      g_value_set_uint (value, self->spatial_layers);
      break;
    case PROP_TEMPORAL_LAYERS:
      g_value_set_uint (value, self->temporal_layers);
      break;
    case PROP_LAYER_BITRATES:
      g_value_set_string (value, self->layer_bitrates);
      break;
    case PROP_LAYER_SIZES:
      g_value_set_string (value, self->layer_sizes);
      break;
    case PROP_GOP_SIZE:
      g_value_set_uint (value, self->gop_size);
      break;
    case PROP_SIMULCAST:
      g_value_set_boolean (value, self->simulcast);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
      break;
  }
  GST_OBJECT_UNLOCK (self);
}

static void
weir_svc_enc_init (WeirSvcEnc *self)
{
  self->spatial_layers = DEFAULT_SPATIAL_LAYERS;
  self->temporal_layers = DEFAULT_TEMPORAL_LAYERS;
  self->gop_size = DEFAULT_GOP_SIZE;
  self->simulcast = DEFAULT_SIMULCAST;
}

static void
weir_svc_enc_finalize (GObject *object)
{
  WeirSvcEnc *self = WEIR_SVC_ENC (object);

  close_encoder (self);
  g_free (self->layer_bitrates);
  g_free (self->layer_sizes);
  G_OBJECT_CLASS (weir_svc_enc_parent_class)->finalize (object);
}

static void
weir_svc_enc_class_init (WeirSvcEncClass *klass)
{
  GObjectClass *gobject_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstVideoEncoderClass *encoder_class = GST_VIDEO_ENCODER_CLASS (klass);
  const GParamFlags rw = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY;

  GST_DEBUG_CATEGORY_INIT (svcenc_debug, "svcenc", 0, "SVC encoder");

  gobject_class->set_property = weir_svc_enc_set_property;
  gobject_class->get_property = weir_svc_enc_get_property;
  gobject_class->finalize = weir_svc_enc_finalize;
  encoder_class->set_format = weir_svc_enc_set_format;
  encoder_class->handle_frame = weir_svc_enc_handle_frame;
  encoder_class->sink_event = weir_svc_enc_sink_event;
  encoder_class->stop = weir_svc_enc_stop;

  g_object_class_install_property (gobject_class, PROP_SPATIAL_LAYERS,
      g_param_spec_uint ("spatial-layers", "Spatial layers", "Number of spatial layers (sizes)", 1,
          SVC_ENC_LAYERS, DEFAULT_SPATIAL_LAYERS, rw));
  g_object_class_install_property (gobject_class, PROP_TEMPORAL_LAYERS,
      g_param_spec_uint ("temporal-layers", "Temporal layers",
          "Number of temporal layers (frame rates); each doubles the frame rate of the one below",
          1, SVC_ENC_LAYERS, DEFAULT_TEMPORAL_LAYERS, rw));
  /**
   * WeirSvcEnc:layer-bitrates:
   *
   * The bit rate of each spatial layer alone, in bits per second, at least 1000, as a
   * comma-separated list, lowest layer first: 150000,450000,1400000. If unset, each layer gets 0.05
   * bits per pixel, at least 50 kb/s.
   */
  g_object_class_install_property (gobject_class, PROP_LAYER_BITRATES,
      g_param_spec_string ("layer-bitrates", "Layer bit rates",
          "Bit rate of each spatial layer in bits per second, lowest layer first, comma-separated; "
          "NULL = 0.05 bits per pixel",
          NULL, rw));
  /**
   * WeirSvcEnc:layer-sizes:
   *
   * The size of each spatial layer in pixels, in even numbers, as a comma-separated list, lowest
   * layer first: 320x180,640x360,1280x720. The last size must be that of the input. If unset, each
   * layer has half the width and height of the layer above.
   */
  g_object_class_install_property (gobject_class, PROP_LAYER_SIZES,
      g_param_spec_string ("layer-sizes", "Layer sizes",
          "Size of each spatial layer as WIDTHxHEIGHT, lowest layer first, comma-separated; NULL = "
          "each half of the one above",
          NULL, rw));
  /**
   * WeirSvcEnc:gop-size:
   *
   * Number of pictures from one keyframe to the next. OpenH264 rounds it to a multiple of the
   * temporal pattern (1, 2, 4 or 8 pictures for 1 to 4 temporal layers). With 0 only the first
   * picture and requested ones are keyframes.
   */
  g_object_class_install_property (gobject_class, PROP_GOP_SIZE,
      g_param_spec_uint ("gop-size", "GOP size",
          "Number of pictures from one keyframe to the next; 0 = keyframes only on request", 0,
          100000, DEFAULT_GOP_SIZE, rw));
  g_object_class_install_property (gobject_class, PROP_SIMULCAST,
      g_param_spec_boolean ("simulcast", "Simulcast",
          "Encode each spatial layer as a plain H.264 stream on its own pad: the highest on src, "
          "the others on layer_0, layer_1, ...",
          DEFAULT_SIMULCAST, rw));

  weir_element_class_set_default_name (gobject_class);
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_add_static_pad_template (element_class, &layer_template);
  gst_element_class_set_static_metadata (element_class, "Scalable H.264 encoder",
      "Codec/Encoder/Video", "Encodes H.264 with spatial and temporal layers, using OpenH264",
      "Weir");
}
