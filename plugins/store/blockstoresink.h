// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/base/gstbasesink.h>

G_BEGIN_DECLS

#define WEIR_TYPE_BLOCK_STORE_SINK (weir_block_store_sink_get_type ())
G_DECLARE_FINAL_TYPE (
    WeirBlockStoreSink, weir_block_store_sink, WEIR, BLOCK_STORE_SINK, GstBaseSink)
GST_ELEMENT_REGISTER_DECLARE (blockstoresink)

G_END_DECLS
