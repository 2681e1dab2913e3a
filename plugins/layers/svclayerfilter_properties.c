// SPDX-License-Identifier: LGPL-2.1-or-later
#include "svclayerfilter_private.h"

#include "enumtype.h"

enum {
  PROP_0,
  PROP_MAX_SPATIAL,
  PROP_MAX_TEMPORAL,
  PROP_MAX_QUALITY,
  PROP_TARGET_BITRATE,
  PROP_OUTPUT_MODE,
  PROP_SWITCH_MODE,
  PROP_MODE,
  PROP_INFER_TEMPORAL,
  PROP_LAYERS,
  PROP_STATS,
};

enum { SWITCH_SAFE, SWITCH_IMMEDIATE };

#define DEFAULT_MAX (-1)
#define DEFAULT_TARGET_BITRATE 0
#define DEFAULT_OUTPUT_MODE WEIR_OUTPUT_SVC
#define DEFAULT_SWITCH_MODE SWITCH_SAFE
#define DEFAULT_MODE LAYER_MODE_FILTER
#define DEFAULT_INFER_TEMPORAL FALSE

#define WEIR_TYPE_SVC_OUTPUT_MODE (weir_svc_output_mode_get_type ())
static GType
weir_svc_output_mode_get_type (void)
{
  static gsize type;
  static const GEnumValue values[] = {
    { WEIR_OUTPUT_SVC, "All selected layers", "svc" },
    { WEIR_OUTPUT_AVC, "Only the highest selected spatial layer, as plain H.264", "avc" },
    { WEIR_OUTPUT_BASE, "Only the base spatial layer, as plain H.264", "base" },
    { 0, NULL, NULL },
  };

  return weir_enum_type (&type, "WeirSvcOutputMode", values);
}

#define WEIR_TYPE_SVC_SWITCH_MODE (weir_svc_switch_mode_get_type ())
static GType
weir_svc_switch_mode_get_type (void)
{
  static gsize type;
  static const GEnumValue values[] = {
    { SWITCH_SAFE, "Change layers at the next picture where a decoder can follow", "safe" },
    { SWITCH_IMMEDIATE, "Change layers at the next picture", "immediate" },
    { 0, NULL, NULL },
  };

  return weir_enum_type (&type, "WeirSvcSwitchMode", values);
}

#define WEIR_TYPE_SVC_MODE (weir_svc_mode_get_type ())
static GType
weir_svc_mode_get_type (void)
{
  static gsize type;
  static const GEnumValue values[] = {
    { LAYER_MODE_FILTER, "Drop the layers above the selected ones", "filter" },
    { LAYER_MODE_TAG, "Drop nothing; add a meta with the layer to each buffer", "tag" },
    { 0, NULL, NULL },
  };

  return weir_enum_type (&type, "WeirSvcMode", values);
}

// Call with the object lock.
static void
add_layer (const WeirSvcLayerFilter *self, const WeirLayerRate *layer, GValue *array)
{
  GValue value = G_VALUE_INIT;
  const guint *size = self->sizes[layer->spatial % WEIR_SPATIAL_LAYERS];

  g_value_init (&value, GST_TYPE_STRUCTURE);
  g_value_take_boxed (
      &value, gst_structure_new ("layer", "spatial", G_TYPE_INT, layer->spatial, "temporal",
                  G_TYPE_INT, layer->temporal, "quality", G_TYPE_INT, layer->quality, "bitrate",
                  G_TYPE_UINT64, (guint64) layer->bitrate, "frame-rate", G_TYPE_DOUBLE,
                  layer->frame_rate, "width", G_TYPE_INT, (gint) size[0], "height", G_TYPE_INT,
                  (gint) size[1], "bytes", G_TYPE_UINT64, (guint64) layer->total_bytes, NULL));
  gst_value_array_append_and_take_value (array, &value);
}

// Call with the object lock.
static void
add_layers (const WeirSvcLayerFilter *self, GValue *array)
{
  for (gsize i = 0; i < self->rates.n; i++)
    add_layer (self, &self->rates.layers[i], array);
}

// Call with the object lock.
static GstStructure *
layer_filter_make_stats (const WeirSvcLayerFilter *self)
{
  const LayerCounts *c = &self->counts;
  GValue layers = G_VALUE_INIT;
  GstStructure *stats;

  stats = gst_structure_new ("application/x-weir-svclayerfilter-stats", "in", G_TYPE_UINT64, c->in,
      "out", G_TYPE_UINT64, c->out, "left-out", G_TYPE_UINT64, c->left_out, "unfit", G_TYPE_UINT64,
      c->unfit, "late", G_TYPE_UINT64, c->late, "bad", G_TYPE_UINT64, c->bad, "flushed",
      G_TYPE_UINT64, c->flushed, "cut", G_TYPE_UINT64, c->cut, "put-in", G_TYPE_UINT64, c->put_in,
      "frames-in", G_TYPE_UINT64, c->frames_in, "frames-out", G_TYPE_UINT64, c->frames_out,
      "key-requests", G_TYPE_UINT64, c->key_requests, "spatial", G_TYPE_INT, self->now.spatial,
      "temporal", G_TYPE_INT, self->now.temporal, "quality", G_TYPE_INT, self->now.quality,
      "plain-layer", G_TYPE_INT, self->plain, "target-met", G_TYPE_BOOLEAN, self->fits, NULL);
  g_value_init (&layers, GST_TYPE_ARRAY);
  add_layers (self, &layers);
  gst_structure_take_value (stats, "layers", &layers);
  return stats;
}

static void
weir_svc_layer_filter_set_property (
    GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  WeirSvcLayerFilter *self = WEIR_SVC_LAYER_FILTER (object);
  LayerSettings *settings = &self->settings;

  GST_OBJECT_LOCK (self);
  switch (id) {
    case PROP_MAX_SPATIAL:
      settings->limit.spatial = (gint8) g_value_get_int (value);
      break;
    case PROP_MAX_TEMPORAL:
      settings->limit.temporal = (gint8) g_value_get_int (value);
      break;
    case PROP_MAX_QUALITY:
      settings->limit.quality = (gint8) g_value_get_int (value);
      break;
    case PROP_TARGET_BITRATE:
      settings->target_bitrate = g_value_get_uint64 (value);
      break;
    case PROP_OUTPUT_MODE:
      settings->output = (WeirOutput) g_value_get_enum (value);
      break;
    case PROP_SWITCH_MODE:
      settings->immediate = g_value_get_enum (value) == SWITCH_IMMEDIATE;
      break;
    case PROP_MODE:
      settings->mode = (LayerMode) g_value_get_enum (value);
      break;
    case PROP_INFER_TEMPORAL:
      settings->infer_temporal = g_value_get_boolean (value);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
      break;
  }
  GST_OBJECT_UNLOCK (self);
}

static void
weir_svc_layer_filter_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  WeirSvcLayerFilter *self = WEIR_SVC_LAYER_FILTER (object);
  const LayerSettings *settings = &self->settings;

  GST_OBJECT_LOCK (self);
  switch (id) {
    case PROP_MAX_SPATIAL:
      g_value_set_int (value, settings->limit.spatial);
      break;
    case PROP_MAX_TEMPORAL:
      g_value_set_int (value, settings->limit.temporal);
      break;
    case PROP_MAX_QUALITY:
      g_value_set_int (value, settings->limit.quality);
      break;
    case PROP_TARGET_BITRATE:
      g_value_set_uint64 (value, settings->target_bitrate);
      break;
    case PROP_OUTPUT_MODE:
      g_value_set_enum (value, (gint) settings->output);
      break;
    case PROP_SWITCH_MODE:
      g_value_set_enum (value, settings->immediate ? SWITCH_IMMEDIATE : SWITCH_SAFE);
      break;
    case PROP_MODE:
      g_value_set_enum (value, (gint) settings->mode);
      break;
    case PROP_INFER_TEMPORAL:
      g_value_set_boolean (value, settings->infer_temporal);
      break;
    case PROP_LAYERS:
      add_layers (self, value);
      break;
    case PROP_STATS:
      g_value_take_boxed (value, layer_filter_make_stats (self));
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
      break;
  }
  GST_OBJECT_UNLOCK (self);
}

void
svc_layer_filter_properties_install (GObjectClass *klass)
{
  const GParamFlags ro = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS;
  const GParamFlags rw = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING;

  klass->set_property = weir_svc_layer_filter_set_property;
  klass->get_property = weir_svc_layer_filter_get_property;

  g_object_class_install_property (klass, PROP_MAX_SPATIAL,
      g_param_spec_int ("max-spatial", "Highest spatial layer",
          "Highest spatial layer to keep (dependency id in SVC); -1 = all", -1, 7, DEFAULT_MAX,
          rw));
  g_object_class_install_property (klass, PROP_MAX_TEMPORAL,
      g_param_spec_int ("max-temporal", "Highest temporal layer",
          "Highest temporal layer to keep; -1 = all", -1, 7, DEFAULT_MAX, rw));
  g_object_class_install_property (klass, PROP_MAX_QUALITY,
      g_param_spec_int ("max-quality", "Highest quality layer",
          "Highest quality layer to keep in the highest spatial layer; -1 = all", -1, 15,
          DEFAULT_MAX, rw));
  /**
   * WeirSvcLayerFilter:target-bitrate:
   *
   * Highest bit rate of the output in bits per second: within the other limits, the element keeps
   * the layer set with the highest measured bit rate that fits. The measured rate is a moving
   * average over periods of 200 ms; a new period counts 1/16. If even the base layer exceeds the
   * target, the base layer is kept and `target-met` in #WeirSvcLayerFilter:stats is FALSE. 0 means
   * no target.
   */
  g_object_class_install_property (klass, PROP_TARGET_BITRATE,
      g_param_spec_uint64 ("target-bitrate", "Target bit rate",
          "Keeps the layers that fit into this bit rate in bits per second; 0 = no target", 0,
          G_MAXUINT64, DEFAULT_TARGET_BITRATE, rw));
  /**
   * WeirSvcLayerFilter:output-mode:
   *
   * Form of the output, for H.264 only. A change takes effect at the next IDR.
   */
  g_object_class_install_property (klass, PROP_OUTPUT_MODE,
      g_param_spec_enum ("output-mode", "Output mode", "Form of the output, for H.264 only",
          WEIR_TYPE_SVC_OUTPUT_MODE, DEFAULT_OUTPUT_MODE, rw));
  g_object_class_install_property (klass, PROP_SWITCH_MODE,
      g_param_spec_enum ("switch-mode", "Switch mode", "When a change of layers takes effect",
          WEIR_TYPE_SVC_SWITCH_MODE, DEFAULT_SWITCH_MODE, rw));
  g_object_class_install_property (klass, PROP_MODE,
      g_param_spec_enum ("mode", "Mode", "Drop layers, or only mark each buffer with its layer",
          WEIR_TYPE_SVC_MODE, DEFAULT_MODE, rw));
  /**
   * WeirSvcLayerFilter:infer-temporal:
   *
   * H.264 without prefix NAL units does not name temporal layers, but encoders with temporal layers
   * give lower layers a higher nal_ref_idc. With this property the element derives the temporal
   * layer from nal_ref_idc; the result is right from the second group of pictures on.
   */
  g_object_class_install_property (klass, PROP_INFER_TEMPORAL,
      g_param_spec_boolean ("infer-temporal", "Infer temporal layers",
          "Derive the temporal layers of plain H.264 from nal_ref_idc", DEFAULT_INFER_TEMPORAL,
          rw));
  /**
   * WeirSvcLayerFilter:layers:
   *
   * The layers seen so far, lowest first, each a structure with `spatial`, `temporal`, `quality`
   * (#gint), `bitrate` (#guint64, bits per second of this layer alone), `frame-rate` (#gdouble,
   * pictures per second of this layer alone), `width` and `height` (#gint, in pixels, 0 if unknown)
   * and `bytes` (#guint64, since the start). Updated every 200 ms of stream time.
   */
  g_object_class_install_property (klass, PROP_LAYERS,
      gst_param_spec_array ("layers", "Layers", "The layers seen so far, with bit rate and size",
          g_param_spec_boxed ("layer", "Layer", "One layer", GST_TYPE_STRUCTURE, ro), ro));
  /**
   * WeirSvcLayerFilter:stats:
   *
   * Counts are #guint64. Buffers: `in`; `out`; and by reason the dropped ones: `left-out` (above
   * the selected layers), `unfit` (of a picture that cannot be decoded), `late` (arrived after its
   * frame was sent, or twice), `bad` (malformed, or a fragment whose start was lost), `flushed`.
   * `cut`: buffers in `out` that were shortened. `put-in`: inserted packets of parameter sets, not
   * counted in `out`. Pictures: `frames-in`, `frames-out`. `key-requests`: keyframes requested from
   * upstream. The current selection: `spatial`, `temporal`, `quality` (#gint, -1 = all);
   * `plain-layer` (#gint, the spatial layer that is output as plain H.264, -1 = none); `target-met`
   * (#gboolean). And `layers`, the same as the property: Python cannot read the property, but can
   * call `stats.get_array('layers')`.
   */
  g_object_class_install_property (klass, PROP_STATS,
      g_param_spec_boxed ("stats", "Statistics",
          "Counts of buffers, by reason for the dropped ones, and the current selection",
          GST_TYPE_STRUCTURE, ro));

  gst_type_mark_as_plugin_api (WEIR_TYPE_SVC_OUTPUT_MODE, 0);
  gst_type_mark_as_plugin_api (WEIR_TYPE_SVC_SWITCH_MODE, 0);
  gst_type_mark_as_plugin_api (WEIR_TYPE_SVC_MODE, 0);
}
