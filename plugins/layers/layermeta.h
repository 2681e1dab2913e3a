// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A meta with the layer of a buffer's data. svclayerfilter mode=tag adds it, so that elements
// downstream need not parse the packets again.

#include <gst/gst.h>

#include "core/codec/layers.h"

G_BEGIN_DECLS

typedef struct {
  GstMeta meta;
  WeirLayer layer;
} WeirLayerMeta;

GType weir_layer_meta_api_get_type (void);
const GstMetaInfo *weir_layer_meta_get_info (void);

// Adds the meta, or replaces the layer of an existing one. The buffer must be writable.
WeirLayerMeta *weir_buffer_add_layer_meta (GstBuffer *buffer, const WeirLayer *layer);

// Returns NULL if the buffer has no such meta.
WeirLayerMeta *weir_buffer_get_layer_meta (GstBuffer *buffer);

G_END_DECLS
