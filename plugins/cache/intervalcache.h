// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS

#define WEIR_TYPE_INTERVAL_CACHE (weir_interval_cache_get_type ())
G_DECLARE_FINAL_TYPE (WeirIntervalCache, weir_interval_cache, WEIR, INTERVAL_CACHE, GstElement)

GST_ELEMENT_REGISTER_DECLARE (intervalcache)

G_END_DECLS
