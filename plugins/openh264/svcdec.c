// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * SECTION:element-svcdec
 * @title: svcdec
 * @short_description: decodes H.264 with spatial and temporal layers, using OpenH264
 *
 * GStreamer's own openh264dec refuses the caps of a scalable stream. This element accepts them and
 * decodes the highest layer in the stream, or the highest one that #WeirSvcDec:target-spatial and
 * #WeirSvcDec:target-temporal allow. It removes the layers above before it calls OpenH264, because
 * OpenH264's own layer selection outputs no pictures. A change of target-spatial takes effect at
 * the next keyframe, which the element requests from upstream.
 *
 * The input must be whole access units. OpenH264 cannot decode inter-layer prediction or quality
 * layers: for such streams, set target-spatial=0 to decode the base layer.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 filesrc location=tests/data/svc/svc_3s3t.264 ! h264parse ! svcdec target-spatial=1 ! fakesink
 * ]|
 *
 * Since: 0.1
 */
#include "config.h"

#include "svcdec.h"

#include "core/svc/project.h"
#include "elementname.h"

#include <string.h>

#include <wels/codec_api.h>

GST_DEBUG_CATEGORY_STATIC (svcdec_debug);
#define GST_CAT_DEFAULT svcdec_debug

enum {
  PROP_0,
  PROP_TARGET_SPATIAL,
  PROP_TARGET_TEMPORAL,
};

#define DEFAULT_TARGET (-1)

// Without a profile, because a stream from RTP has none in its caps.
static GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS,
        GST_STATIC_CAPS ("video/x-h264, stream-format=(string)byte-stream, alignment=(string)au"));
static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE (
    "src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE ("I420")));

struct _WeirSvcDec {
  GstVideoDecoder parent;

  // Streaming thread only.
  ISVCDecoder *decoder;
  GstVideoCodecState *input_state;
  gint width, height; // as negotiated downstream; 0 before
  WeirFrame frame;
  WeirSvc svc;
  WeirProjection projection;

  WeirLayerSet target; // under the object lock
};

G_DEFINE_FINAL_TYPE (WeirSvcDec, weir_svc_dec, GST_TYPE_VIDEO_DECODER)
GST_ELEMENT_REGISTER_DEFINE (svcdec, "svcdec", GST_RANK_NONE, WEIR_TYPE_SVC_DEC)

// ---- the decoder ----

static void
close_decoder (WeirSvcDec *self)
{
  if (!self->decoder)
    return;
  (*self->decoder)->Uninitialize (self->decoder);
  WelsDestroyDecoder (self->decoder);
  self->decoder = NULL;
}

static gboolean
open_decoder (WeirSvcDec *self)
{
  SDecodingParam param = { .uiTargetDqLayer = 255, // the highest layer in the data
    .eEcActiveIdc = ERROR_CON_DISABLE,
    .sVideoProperty = { .eVideoBsType = VIDEO_BITSTREAM_DEFAULT } };
  int quiet = WELS_LOG_QUIET;

  if (WelsCreateDecoder (&self->decoder) != 0) {
    self->decoder = NULL;
    return FALSE;
  }
  (*self->decoder)->SetOption (self->decoder, DECODER_OPTION_TRACE_LEVEL, &quiet);
  if ((*self->decoder)->Initialize (self->decoder, &param) == 0)
    return TRUE;
  WelsDestroyDecoder (self->decoder);
  self->decoder = NULL;
  return FALSE;
}

static WeirLayerSet
read_target (WeirSvcDec *self)
{
  WeirLayerSet target;

  GST_OBJECT_LOCK (self);
  target = self->target;
  GST_OBJECT_UNLOCK (self);
  return target;
}

static gboolean
weir_svc_dec_start (GstVideoDecoder *decoder)
{
  WeirSvcDec *self = WEIR_SVC_DEC (decoder);

  weir_frame_init (&self->frame, WEIR_CODEC_H264, FALSE);
  weir_svc_init (&self->svc);
  weir_projection_init (&self->projection, WEIR_CODEC_H264, read_target (self), WEIR_OUTPUT_SVC);
  self->width = self->height = 0;
  if (open_decoder (self))
    return TRUE;
  GST_ELEMENT_ERROR (self, LIBRARY, INIT, ("cannot create an OpenH264 decoder"), (NULL));
  return FALSE;
}

static gboolean
weir_svc_dec_stop (GstVideoDecoder *decoder)
{
  WeirSvcDec *self = WEIR_SVC_DEC (decoder);

  close_decoder (self);
  weir_frame_free (&self->frame);
  weir_svc_free (&self->svc);
  g_clear_pointer (&self->input_state, gst_video_codec_state_unref);
  return TRUE;
}

static gboolean
weir_svc_dec_flush (GstVideoDecoder *decoder)
{
  WeirSvcDec *self = WEIR_SVC_DEC (decoder);

  close_decoder (self);
  weir_frame_clear (&self->frame);
  weir_projection_init (&self->projection, WEIR_CODEC_H264, read_target (self), WEIR_OUTPUT_SVC);
  return open_decoder (self);
}

static gboolean
weir_svc_dec_set_format (GstVideoDecoder *decoder, GstVideoCodecState *state)
{
  WeirSvcDec *self = WEIR_SVC_DEC (decoder);

  g_clear_pointer (&self->input_state, gst_video_codec_state_unref);
  self->input_state = gst_video_codec_state_ref (state);
  return TRUE;
}

// ---- data ----

// Returns the part of the access unit to decode, with its length in `*len`, or NULL if there is
// none. (transfer full)
static guint8 *
strip (WeirSvcDec *self, const GstMapInfo *in, gsize *len)
{
  WeirProjection *p = &self->projection;
  guint8 *out = NULL;

  if (weir_frame_read_au (&self->frame, in->data, in->size, 0) < 0)
    return NULL;
  p->layers.wanted = read_target (self);
  weir_svc_note_frame (&self->svc, &self->frame);
  weir_project (p, &self->svc, &self->frame, NULL);
  if (p->verdict == WEIR_PICTURE_KEEP
      && weir_svc_rest (&self->svc, &self->frame, p->now, p->plain) != WEIR_REST_NOTHING) {
    out = g_malloc (in->size + self->frame.n_units * 4 + WEIR_SVC_SETS_MAX);
    *len = weir_svc_write (&self->svc, &self->frame, p->now, p->plain, p->renew, 0, out);
  }
  weir_frame_clear (&self->frame);
  return out;
}

static gboolean
negotiate (WeirSvcDec *self, gint width, gint height)
{
  GstVideoCodecState *state;

  if (self->width == width && self->height == height)
    return TRUE;
  state = gst_video_decoder_set_output_state (GST_VIDEO_DECODER (self), GST_VIDEO_FORMAT_I420,
      (guint) width, (guint) height, self->input_state);
  gst_video_codec_state_unref (state);
  self->width = width;
  self->height = height;
  return gst_video_decoder_negotiate (GST_VIDEO_DECODER (self));
}

static gboolean
copy_picture (WeirSvcDec *self, const SBufferInfo *info, guint8 *const planes[3], GstBuffer *out)
{
  const SSysMEMBuffer *memory = &info->UsrData.sSystemBuffer;
  GstVideoCodecState *state = gst_video_decoder_get_output_state (GST_VIDEO_DECODER (self));
  GstVideoFrame frame;
  gboolean ok = gst_video_frame_map (&frame, &state->info, out, GST_MAP_WRITE);

  gst_video_codec_state_unref (state);
  if (!ok)
    return FALSE;
  for (gint i = 0; i < 3; i++) {
    guint8 *to = GST_VIDEO_FRAME_PLANE_DATA (&frame, i);
    const guint8 *from = planes[i];

    for (gint row = 0; row < GST_VIDEO_FRAME_COMP_HEIGHT (&frame, i); row++) {
      memcpy (to, from, (gsize) GST_VIDEO_FRAME_COMP_WIDTH (&frame, i));
      to += GST_VIDEO_FRAME_PLANE_STRIDE (&frame, i);
      from += memory->iStride[i > 0];
    }
  }
  gst_video_frame_unmap (&frame);
  return TRUE;
}

static GstFlowReturn
show (WeirSvcDec *self, GstVideoCodecFrame *frame, const SBufferInfo *info, guint8 *const planes[3])
{
  GstVideoDecoder *decoder = GST_VIDEO_DECODER (self);
  const SSysMEMBuffer *memory = &info->UsrData.sSystemBuffer;
  GstFlowReturn ret;

  if (!negotiate (self, memory->iWidth, memory->iHeight)) {
    gst_video_decoder_release_frame (decoder, frame);
    return GST_FLOW_NOT_NEGOTIATED;
  }
  ret = gst_video_decoder_allocate_output_frame (decoder, frame);
  if (ret == GST_FLOW_OK && !copy_picture (self, info, planes, frame->output_buffer))
    ret = GST_FLOW_ERROR;
  if (ret != GST_FLOW_OK) {
    gst_video_decoder_release_frame (decoder, frame);
    return ret;
  }
  return gst_video_decoder_finish_frame (decoder, frame);
}

static GstFlowReturn
weir_svc_dec_handle_frame (GstVideoDecoder *decoder, GstVideoCodecFrame *frame)
{
  WeirSvcDec *self = WEIR_SVC_DEC (decoder);
  SBufferInfo info = { 0 };
  guint8 *planes[3] = { NULL }, *data;
  GstFlowReturn ret = GST_FLOW_OK;
  DECODING_STATE state;
  GstMapInfo map;
  gsize len = 0;

  if (!gst_buffer_map (frame->input_buffer, &map, GST_MAP_READ)) {
    gst_video_decoder_release_frame (decoder, frame);
    return GST_FLOW_ERROR;
  }
  data = strip (self, &map, &len);
  gst_buffer_unmap (frame->input_buffer, &map);
  if (self->projection.layers.waiting)
    gst_video_decoder_request_sync_point (decoder, frame, 0);
  if (!data) {
    gst_video_decoder_release_frame (decoder, frame);
    return GST_FLOW_OK;
  }
  state = (*self->decoder)->DecodeFrameNoDelay (self->decoder, data, (int) len, planes, &info);
  g_free (data);
  if (info.iBufferStatus == 1 && planes[0])
    return show (self, frame, &info, planes);
  if (state != dsErrorFree) {
    gst_video_decoder_request_sync_point (decoder, frame, 0);
    GST_VIDEO_DECODER_ERROR (self, 1, STREAM, DECODE, ("OpenH264 cannot decode the picture"),
        ("state 0x%x", (guint) state), ret);
  }
  gst_video_decoder_release_frame (decoder, frame);
  return ret;
}

// ---- properties ----

static void
weir_svc_dec_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  WeirSvcDec *self = WEIR_SVC_DEC (object);

  GST_OBJECT_LOCK (self);
  switch (id) {
    case PROP_TARGET_SPATIAL:
      self->target.spatial = (gint8) g_value_get_int (value);
      break;
    case PROP_TARGET_TEMPORAL:
      self->target.temporal = (gint8) g_value_get_int (value);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
      break;
  }
  GST_OBJECT_UNLOCK (self);
}

static void
weir_svc_dec_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  WeirSvcDec *self = WEIR_SVC_DEC (object);
  WeirLayerSet target = read_target (self);

  switch (id) {
    case PROP_TARGET_SPATIAL:
      g_value_set_int (value, target.spatial);
      break;
    case PROP_TARGET_TEMPORAL:
      g_value_set_int (value, target.temporal);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
      break;
  }
}

static void
weir_svc_dec_init (WeirSvcDec *self)
{
  self->target = WEIR_LAYER_SET_ALL;
  gst_video_decoder_set_packetized (GST_VIDEO_DECODER (self), TRUE);
  gst_video_decoder_set_needs_format (GST_VIDEO_DECODER (self), TRUE);
}

static void
weir_svc_dec_class_init (WeirSvcDecClass *klass)
{
  GObjectClass *gobject_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstVideoDecoderClass *decoder_class = GST_VIDEO_DECODER_CLASS (klass);
  const GParamFlags rw = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING;

  GST_DEBUG_CATEGORY_INIT (svcdec_debug, "svcdec", 0, "SVC decoder");

  gobject_class->set_property = weir_svc_dec_set_property;
  gobject_class->get_property = weir_svc_dec_get_property;
  decoder_class->start = weir_svc_dec_start;
  decoder_class->stop = weir_svc_dec_stop;
  decoder_class->flush = weir_svc_dec_flush;
  decoder_class->set_format = weir_svc_dec_set_format;
  decoder_class->handle_frame = weir_svc_dec_handle_frame;

  g_object_class_install_property (gobject_class, PROP_TARGET_SPATIAL,
      g_param_spec_int ("target-spatial", "Target spatial layer",
          "Highest spatial layer to decode; -1 = the highest in the stream", -1, 7, DEFAULT_TARGET,
          rw));
  g_object_class_install_property (gobject_class, PROP_TARGET_TEMPORAL,
      g_param_spec_int ("target-temporal", "Target temporal layer",
          "Highest temporal layer to decode; -1 = the highest in the stream", -1, 7, DEFAULT_TARGET,
          rw));

  weir_element_class_set_default_name (gobject_class);
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class, "Scalable H.264 decoder",
      "Codec/Decoder/Video", "Decodes H.264 with spatial and temporal layers, using OpenH264",
      "Weir");
}
