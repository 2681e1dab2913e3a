// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/base/gstbasesink.h>
#include <gst/gst.h>

G_BEGIN_DECLS

#define WEIR_TYPE_FANOUT_SINK (weir_fanout_sink_get_type ())
G_DECLARE_FINAL_TYPE (WeirFanoutSink, weir_fanout_sink, WEIR, FANOUT_SINK, GstBaseSink)

GST_ELEMENT_REGISTER_DECLARE (fanoutsink)

G_END_DECLS
