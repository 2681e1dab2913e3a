// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/ts/ts_layers.h"

#define SETTLED_FRAMES 64 // a stream has shown all of its layers within so many

static void
raise_to (gint8 *top, const GstStructure *layer, const gchar *field)
{
  gint value;

  if (gst_structure_get_int (layer, field, &value))
    *top = (gint8) MAX (*top, value);
}

// Raises `top` to the highest layers that the filter has seen. Returns FALSE if it has not seen
// enough.
static gboolean
read_top (GstElement *filter, WeirLayerSet *top)
{
  g_autoptr (GstStructure) stats = NULL;
  const GValue *layers;
  guint64 n_frames = 0;

  g_object_get (filter, "stats", &stats, NULL);
  gst_structure_get_uint64 (stats, "frames-in", &n_frames);
  layers = gst_structure_get_value (stats, "layers");
  for (guint i = 0; layers && i < gst_value_array_get_size (layers); i++) {
    const GstStructure *layer = gst_value_get_structure (gst_value_array_get_value (layers, i));

    raise_to (&top->spatial, layer, "spatial");
    raise_to (&top->quality, layer, "quality");
    raise_to (&top->temporal, layer, "temporal");
  }
  return n_frames >= SETTLED_FRAMES;
}

gboolean
ts_layers_read_top (const GPtrArray *filters, WeirLayerSet *top)
{
  gboolean known = TRUE;

  *top = (WeirLayerSet) { 0, 0, 0 };
  for (guint i = 0; i < filters->len && known; i++)
    known = read_top (g_ptr_array_index (filters, i), top);
  return known;
}

static gint8
fold (gint8 chosen, gint8 top)
{
  return chosen >= top ? -1 : chosen;
}

gboolean
ts_layers_select_same (WeirLayerSet a, WeirLayerSet b, WeirLayerSet top)
{
  return fold (a.spatial, top.spatial) == fold (b.spatial, top.spatial)
         && fold (a.quality, top.quality) == fold (b.quality, top.quality)
         && fold (a.temporal, top.temporal) == fold (b.temporal, top.temporal);
}
