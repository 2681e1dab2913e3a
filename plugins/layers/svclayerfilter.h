// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS

#define WEIR_TYPE_SVC_LAYER_FILTER (weir_svc_layer_filter_get_type ())
G_DECLARE_FINAL_TYPE (WeirSvcLayerFilter, weir_svc_layer_filter, WEIR, SVC_LAYER_FILTER, GstElement)

GST_ELEMENT_REGISTER_DECLARE (svclayerfilter)

G_END_DECLS
