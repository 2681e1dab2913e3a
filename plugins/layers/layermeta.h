// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Tells the layer of what is in a buffer: put on by svclayerfilter in mode=tag, so that what comes
// behind need not read the packets again.

#include <gst/gst.h>

#include "core/codec/layers.h"

G_BEGIN_DECLS

typedef struct {
  GstMeta meta;
  WeirLayer layer;
} WeirLayerMeta;

GType weir_layer_meta_api_get_type (void);
const GstMetaInfo *weir_layer_meta_get_info (void);

// The buffer must be writable. A buffer has one layer: adding again replaces it.
WeirLayerMeta *weir_buffer_add_layer_meta (GstBuffer *buffer, const WeirLayer *layer);

// NULL if there is none.
WeirLayerMeta *weir_buffer_get_layer_meta (GstBuffer *buffer);

G_END_DECLS
