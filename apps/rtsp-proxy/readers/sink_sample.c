// SPDX-License-Identifier: LGPL-2.1-or-later
#include "readers/sink_sample.h"

guint64
sink_sample_get (const GstStructure *stats, const gchar *field)
{
  guint64 value = 0;

  gst_structure_get_uint64 (stats, field, &value);
  return value;
}

guint
sink_sample_find_state (const gchar *name)
{
  for (guint i = 0; name && i < READER_STATES; i++) {
    if (g_str_equal (name, reader_state_names[i]))
      return i;
  }
  return READER_STATES - 1;
}

void
sink_sample_add (const GstStructure *stats, ReaderSample *sample)
{
  gboolean catching_up = FALSE;

  if (!stats || !gst_structure_has_field (stats, "state")) {
    sample->state = READER_STATES - 1;
    return;
  }
  sample->state =
      MAX (sample->state, sink_sample_find_state (gst_structure_get_string (stats, "state")));
  sample->lag_ns = MAX (sample->lag_ns, sink_sample_get (stats, "lag"));
  sample->delay_ns = MAX (sample->delay_ns, sink_sample_get (stats, "delay"));
  sample->packets += sink_sample_get (stats, "packets-sent");
  sample->bytes += sink_sample_get (stats, "bytes-sent");
  sample->due += sink_sample_get (stats, "packets-due");
  sample->dropped += sink_sample_get (stats, "dropped");
  gst_structure_get_uint (stats, "priority", &sample->priority);
  gst_structure_get_boolean (stats, "catching-up", &catching_up);
  sample->catching_up |= catching_up;
}

// ---- layers ----

static gint8
get_layer (const GstStructure *from, const gchar *field)
{
  gint value = -1;

  gst_structure_get_int (from, field, &value);
  return (gint8) value;
}

void
sink_sample_layers (const GstStructure *stats, ReaderLayers *layers)
{
  layers->has_layers = TRUE;
  layers->wanted = (WeirLayerSet) { .spatial = get_layer (stats, "wanted-spatial"),
    .temporal = get_layer (stats, "wanted-temporal"),
    .quality = get_layer (stats, "wanted-quality") };
  layers->now = (WeirLayerSet) { .spatial = get_layer (stats, "spatial"),
    .temporal = get_layer (stats, "temporal"),
    .quality = get_layer (stats, "quality") };
}

gboolean
sink_sample_video (const GstStructure *stats, ReaderVideo *sample)
{
  *sample = (ReaderVideo) { 0 };
  if (!stats || !gst_structure_has_field (stats, "state"))
    return FALSE;
  gst_structure_get_boolean (stats, "catching-up", &sample->catching_up);
  sample->thinned = sink_sample_find_state (gst_structure_get_string (stats, "state")) > 0;
  sample->lag_ns = sink_sample_get (stats, "lag");
  sample->packets = sink_sample_get (stats, "packets-sent");
  sample->bytes = sink_sample_get (stats, "bytes-sent");
  return TRUE;
}

static void
add_rate (WeirRates *rates, const GstStructure *layer)
{
  WeirLayerRate *rate = &rates->layers[rates->n++];

  rate->spatial = (guint8) get_layer (layer, "spatial");
  rate->quality = (guint8) get_layer (layer, "quality");
  rate->temporal = (guint8) get_layer (layer, "temporal");
  rate->bitrate = (gdouble) sink_sample_get (layer, "bitrate");
}

void
sink_sample_rates (GstElement *sink, WeirRates *rates)
{
  GstStructure *stats = NULL;
  const GValue *layers;

  g_object_get (sink, "fanout-stats", &stats, NULL);
  if (stats) {
    rates->key_bitrate = (gdouble) sink_sample_get (stats, "keyframes-bitrate");
    rates->reference_bitrate = (gdouble) sink_sample_get (stats, "references-bitrate");
    rates->key_ns = (gint64) sink_sample_get (stats, "last-keyframe");
  }
  layers = stats ? gst_structure_get_value (stats, "layers") : NULL;
  for (guint i = 0; layers && i < gst_value_array_get_size (layers) && i < WEIR_RATES_LAYERS; i++)
    add_rate (rates, gst_value_get_structure (gst_value_array_get_value (layers, i)));
  g_clear_pointer (&stats, gst_structure_free);
}

gboolean
sink_set_layers (GstElement *sink, const gchar *host, gint port, WeirLayerSet layers)
{
  gboolean set = FALSE;

  g_signal_emit_by_name (sink, "set-layers", host, port, (gint) layers.spatial,
      (gint) layers.quality, (gint) layers.temporal, &set);
  return set;
}

gboolean
sink_restrict (GstElement *sink, const gchar *host, gint port, guint state)
{
  gboolean set = FALSE;

  g_signal_emit_by_name (sink, "restrict", host, port, state, &set);
  return set;
}
