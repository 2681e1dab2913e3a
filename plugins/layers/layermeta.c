// SPDX-License-Identifier: LGPL-2.1-or-later
#include "layermeta.h"

GType
weir_layer_meta_api_get_type (void)
{
  static gsize type;
  static const gchar *tags[] = { NULL };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type, gst_meta_api_type_register ("WeirLayerMetaAPI", tags));
  return type;
}

static gboolean
layer_meta_init (GstMeta *meta, gpointer params, GstBuffer *buffer)
{
  ((WeirLayerMeta *) meta)->layer = (WeirLayer) { 0 };
  return TRUE;
}

// Copies the meta: a copy of the buffer, or of a part of it, holds the same layer.
static gboolean
layer_meta_transform (GstBuffer *dest, GstMeta *meta, GstBuffer *buffer, GQuark type, gpointer data)
{
  if (!GST_META_TRANSFORM_IS_COPY (type))
    return FALSE;
  return weir_buffer_add_layer_meta (dest, &((WeirLayerMeta *) meta)->layer) != NULL;
}

const GstMetaInfo *
weir_layer_meta_get_info (void)
{
  static gsize info;

  if (g_once_init_enter (&info))
    g_once_init_leave (
        &info, (gsize) gst_meta_register (weir_layer_meta_api_get_type (), "WeirLayerMeta",
                   sizeof (WeirLayerMeta), layer_meta_init, NULL, layer_meta_transform));
  return (const GstMetaInfo *) info;
}

WeirLayerMeta *
weir_buffer_add_layer_meta (GstBuffer *buffer, const WeirLayer *layer)
{
  WeirLayerMeta *meta = weir_buffer_get_layer_meta (buffer);

  if (!meta)
    meta = (WeirLayerMeta *) gst_buffer_add_meta (buffer, weir_layer_meta_get_info (), NULL);
  if (meta)
    meta->layer = *layer;
  return meta;
}

WeirLayerMeta *
weir_buffer_get_layer_meta (GstBuffer *buffer)
{
  return (WeirLayerMeta *) gst_buffer_get_meta (buffer, weir_layer_meta_api_get_type ());
}
