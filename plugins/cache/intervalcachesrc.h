// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS

#define WEIR_TYPE_INTERVAL_CACHE_SRC (weir_interval_cache_src_get_type ())
G_DECLARE_FINAL_TYPE (
    WeirIntervalCacheSrc, weir_interval_cache_src, WEIR, INTERVAL_CACHE_SRC, GstElement)

GST_ELEMENT_REGISTER_DECLARE (intervalcachesrc)

G_END_DECLS
